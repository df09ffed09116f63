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
    checkpointer does not. A backend overrides what it has of `store` and `checkpointer`, and
    returns the same object each time.

    Attributes:
        provider: The name it goes by in provider strings.
    """

    provider: str

    @property
    def store(self) -> BaseStore:
        """The store.

        Raises:
            ConfigurationError: The provider has none.
        """
        raise ConfigurationError(f"{self.provider}: has no store, only checkpoints")

    @property
    def checkpointer(self) -> BaseCheckpointer[StateT]:
        """The checkpointer.

        Raises:
            ConfigurationError: The provider has none.
        """
        raise ConfigurationError(f"{self.provider}: has no checkpoints, only a store")

    async def problems(self) -> list[str]:
        """Return what is wrong with the database as a whole, as far as it can tell by itself.

        It may read all of it. What is wrong with an item or a checkpoint, `integrity.verify`
        finds.
        """
        return []

    @abstractmethod
    @override
    async def close(self) -> None:
        """Close the connection; calling it again is harmless."""


class ComposedBackend(Backend[Any]):
    """A store and a checkpointer made apart, for a provider that has no backend of its own.

    Args:
        provider: The name it goes by.
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
        """Close both, the second even where the first fails."""
        try:
            if self._store is not None:
                await self._store.close()
        finally:
            if self._checkpointer is not None:
                await self._checkpointer.close()
