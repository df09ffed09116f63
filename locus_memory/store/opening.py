"""A store wherever one is accepted: itself, that of a backend, or the one a string makes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from typing_extensions import override

from locus_memory._internal.resource import Resource
from locus_memory.store.base import BaseStore

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend

__all__ = ["StoreUser", "borrowed", "store_of"]


def store_of(where: str | BaseStore | Backend) -> tuple[BaseStore, bool]:
    """Return a store, and whether the caller owns it and so closes it; see `registry.as_store`.

    Raises:
        ConfigurationError: As `registry.as_store`.
    """
    if isinstance(where, BaseStore):
        return where, False
    # The registry knows the backends, which know this contract: it is loaded if it is needed.
    from locus_memory.registry import as_store  # noqa: PLC0415

    return as_store(where)


@asynccontextmanager
async def borrowed(where: str | BaseStore | Backend) -> AsyncGenerator[BaseStore]:
    """Yield a store; it is closed afterwards where a string made it.

    Raises:
        ConfigurationError: As `registry.as_store`.
    """
    store, owned = store_of(where)
    try:
        yield store
    finally:
        if owned:
            await store.close()


class StoreUser(Resource):
    """Something over a store; it opens and closes the store only where a string made it.

    Attributes:
        store: The store.
    """

    store: BaseStore
    _owned: bool

    @override
    async def open(self) -> None:
        """Open the store, if it is this object's own."""
        if self._owned:
            await self.store.open()

    @override
    async def close(self) -> None:
        """Close the store, if it is this object's own; calling it again is harmless."""
        if self._owned:
            await self.store.close()
