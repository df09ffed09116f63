"""An adapter over a store, which it closes if the store is its own."""

from __future__ import annotations

from typing_extensions import override

from locus_memory.backends.base import Backend
from locus_memory.store.base import BaseStore
from locus_memory.store.opening import StoreUser, store_of

__all__ = ["OverStore"]


class OverStore(StoreUser):
    """An adapter over a store; used as `async with`, it closes the store of a provider string."""

    def _take(self, where: str | BaseStore | Backend) -> BaseStore:
        """Keep the store of a provider string or a backend, or one that is passed in.

        Raises:
            ConfigurationError: `where` has no store.
        """
        self.store, self._owned = store_of(where)
        return self.store

    @override
    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.store!r})"

    @override
    async def open(self) -> None:
        """Connect now, also a store that is passed in: its server tells what it can do."""
        await self.store.open()
