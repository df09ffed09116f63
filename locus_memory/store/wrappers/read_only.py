"""A store that refuses every write, for any backend."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

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

    @override
    async def _call(self, verb: str, /, *args: Any, **kwargs: Any) -> Any:
        if verb in WRITES:
            raise BackendWriteError(
                f"{verb}: this store is read-only: write through {self.inner!r} itself"
            )
        return await super()._call(verb, *args, **kwargs)
