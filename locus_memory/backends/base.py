"""Both contracts over one connection."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic

from typing_extensions import override

from locus_memory._internal.resource import Resource
from locus_memory.checkpoint.base import BaseCheckpointer, StateT
from locus_memory.errors import ConfigurationError
from locus_memory.store.base import BaseStore

__all__ = ["Backend", "ComposedBackend"]


class Backend(Resource, ABC, Generic[StateT]):
    """A store and a checkpointer that share one connection.

    The backend owns the connection: closing the backend closes it, closing its store or its
    checkpointer does not. A backend overrides `store`, `checkpointer` or both, and returns the
    same object each time.

    Attributes:
        provider: Its name in provider strings.
    """

    provider: str

    @property
    def store(self) -> BaseStore:
        """The store.

        Raises:
            ConfigurationError: The provider has no store.
        """
        raise ConfigurationError(f"{self.provider}: has no store, only checkpoints")

    @property
    def checkpointer(self) -> BaseCheckpointer[StateT]:
        """The checkpointer.

        Raises:
            ConfigurationError: The provider has no checkpointer.
        """
        raise ConfigurationError(f"{self.provider}: has no checkpoints, only a store")

    async def problems(self) -> list[str]:
        """Return the problems of the database as a whole that it can detect itself.

        It may read the whole database. `integrity.verify` finds problems of single items and
        checkpoints.
        """
        return []

    @abstractmethod
    @override
    async def close(self) -> None:
        """Close the connection; calling it again is harmless."""


class ComposedBackend(Backend[Any]):
    """A separate store and checkpointer, for a provider without its own backend class.

    Args:
        provider: Its name in provider strings.
        store: The store, if there is one; the backend opens and closes it.
        checkpointer: The checkpointer, if there is one; the backend opens and closes it.
    """

    def __init__(
        self,
        provider: str,
        store: BaseStore | None = None,
        checkpointer: BaseCheckpointer | None = None,
    ) -> None:
        self.provider = provider
        self._store = store
        self._checkpointer = checkpointer

    @property
    def store(self) -> BaseStore:
        """The store."""
        return super().store if self._store is None else self._store

    @property
    def checkpointer(self) -> BaseCheckpointer:
        """The checkpointer."""
        return super().checkpointer if self._checkpointer is None else self._checkpointer

    async def open(self) -> None:
        """Open both; if the second fails, the first is closed again."""
        if self._store is not None:
            await self._store.open()
        if self._checkpointer is None:
            return
        try:
            await self._checkpointer.open()
        except BaseException:
            if self._store is not None:
                await self._store.close()
            raise

    async def close(self) -> None:
        """Close both, the second even if the first fails."""
        try:
            if self._store is not None:
                await self._store.close()
        finally:
            if self._checkpointer is not None:
                await self._checkpointer.close()
