"""An adapter over a store, which it opens and closes if the store is its own."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from locus_memory.backends.base import Backend
from locus_memory.registry import as_store
from locus_memory.store.base import BaseStore

__all__ = ["OverStore"]


class OverStore:
    """An adapter over a store; used as `async with`, it closes the store of a provider string."""

    _store: BaseStore
    _owned: bool

    def _take(self, where: str | BaseStore | Backend) -> BaseStore:
        """Keep the store of a provider string or a backend, or one that is passed in.

        Raises:
            ConfigurationError: `where` has no store.
        """
        self._store, self._owned = as_store(where)
        return self._store

    async def open(self) -> None:
        """Connect and set up now, rather than on first use."""
        await self._store.open()

    async def close(self) -> None:
        """Close the store of a provider string."""
        if self._owned:
            await self._store.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
