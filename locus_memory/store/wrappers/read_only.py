"""A store that refuses every write, for any backend."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from locus_memory.errors import BackendWriteError
from locus_memory.store.wrappers.base import WRITES, StoreWrapper

__all__ = ["ReadOnlyStore"]


class ReadOnlyStore(StoreWrapper):
    """A store whose writes raise `BackendWriteError`; the inner store never sees them.

    It protects against mistakes of this process. Opening it may still create the tables of an empty
    database, and delete expired items. Against other programs, use the rights of the database.

    Args:
        store: The inner store, a backend that has one, or a provider string.
    """


def _refused(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that refuses the verb of the same name."""

    @wraps(verb)
    async def refused(self: ReadOnlyStore, *args: Any, **kwargs: Any) -> Any:
        del args, kwargs
        raise BackendWriteError(
            f"{verb.__name__}: this store is read-only: write through {self.inner!r} itself"
        )

    return refused


for _name in WRITES:
    setattr(ReadOnlyStore, _name, _refused(getattr(StoreWrapper, _name)))
