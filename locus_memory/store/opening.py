"""The store of an argument: a store, a backend or a provider string."""

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
    """Return a store, and whether the caller owns it; see `registry.as_store`.

    Raises:
        ConfigurationError: As for `registry.as_store`.
    """
    # The registry imports the backends, which import this contract: it is imported when needed.
    from locus_memory.registry import as_store  # noqa: PLC0415

    return as_store(where)


@asynccontextmanager
async def borrowed(where: str | BaseStore | Backend) -> AsyncGenerator[BaseStore]:
    """Yield a store; the store of a provider string is closed afterwards.

    Raises:
        ConfigurationError: As for `registry.as_store`.
    """
    store, owned = store_of(where)
    try:
        yield store
    finally:
        if owned:
            await store.close()


class StoreUser(Resource):
    """The base class of objects on a store; they open and close only the store of a string.

    Attributes:
        store: The store.
    """

    store: BaseStore
    _owned: bool

    @override
    async def open(self) -> None:
        """Open the store, if this object owns it."""
        if self._owned:
            await self.store.open()

    @override
    async def close(self) -> None:
        """Close the store, if this object owns it; calling it again is harmless."""
        if self._owned:
            await self.store.close()
