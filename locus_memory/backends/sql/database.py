"""A SQL database, shared by any number of tasks and event loops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Final, Generic, Protocol, TypeVar

from typing_extensions import override

from locus_memory._internal.resource import warn_unless_closed
from locus_memory.backends.base import SharedConnection
from locus_memory.backends.loops import OfOneLoop, PerLoop
from locus_memory.errors import BackendUnavailableError

__all__ = ["SQLDatabase"]

_STATEMENTS: Final = 1_000
"""How many templates are remembered with their names filled in."""


class _Names(Protocol):
    """The names of the tables of a backend."""

    def fill(self, template: str) -> str:
        """Return a statement in which the library's names replace those in braces."""
        ...


class _LoopPool(OfOneLoop, Protocol):
    """The connections of one event loop."""

    async def open(self) -> None:
        """Connect, before anything is lent."""


PoolT = TypeVar("PoolT", bound=_LoopPool)
NamesT = TypeVar("NamesT", bound=_Names)
FeaturesT = TypeVar("FeaturesT")


class SQLDatabase(SharedConnection, ABC, Generic[PoolT, NamesT, FeaturesT]):
    """Connections to a SQL database, opened on first use, of each event loop its own.

    The tables are made, or brought up to date, before the first statement.

    Args:
        where: The name of the database in messages: the provider and a place.
        names: The names of the tables.
        translated: Translates the errors of the driver in its block.
        owned: Whether the connections are opened here, and not those of a caller's pool.

    Attributes:
        where: The name of the database in messages.
    """

    def __init__(
        self,
        where: str,
        names: NamesT,
        translated: Callable[[str], AbstractContextManager[None]],
        *,
        owned: bool,
    ) -> None:
        self.where = where
        self.place = where.partition(" ")[2] or where
        self._use(names)
        self._translated = translated
        self._loop_pools: PerLoop[PoolT] = PerLoop(where)
        self._features: FeaturesT | None = None
        loop_pools = self._loop_pools
        self._warning = warn_unless_closed(self, where, lambda: owned and loop_pools.is_open())

    def _use(self, names: NamesT) -> None:
        self._names = names
        # It takes a template, and returns the statement with the names of our tables.
        self.sql = lru_cache(_STATEMENTS)(names.fill)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.where})"

    @abstractmethod
    def _make_pool(self) -> PoolT:
        """Return the connections of the running event loop, not open yet."""

    @abstractmethod
    async def _prepare(self, loop_pool: PoolT) -> FeaturesT:
        """Bring the tables up to date, and return the features of the database."""

    @property
    def features(self) -> FeaturesT:
        """The features of the database.

        Raises:
            BackendUnavailableError: It was not opened yet.
        """
        if self._features is None:
            raise BackendUnavailableError(f"{self.where}: not open yet")
        return self._features

    @override
    async def open(self) -> None:
        """Connect and bring the tables up to date now, rather than on first use.

        Raises:
            BackendUnavailableError: There is no connection.
            ConfigurationError: The server refuses the user, or has no such database; it is of a
                kind that does not work; a newer locus_memory made the tables; the caller's pool
                belongs to another event loop.
            BackendError: The tables are not there, and the user may not create them.
            BackendClosedError: After `close()`.
        """
        await self._ready()

    async def _ready(self) -> PoolT:
        """Return the pool of this event loop, the database open."""
        return self._loop_pools.here() or await self._loop_pools.opened(self._open_pool)

    async def _open_pool(self) -> PoolT:
        loop_pool = self._make_pool()
        with self._translated(self.where):
            await loop_pool.open()
            if self._features is None:
                try:
                    # The same whichever event loop comes first.
                    self._features = await self._prepare(loop_pool)
                except BaseException:
                    await loop_pool.close()
                    raise
        return loop_pool

    @override
    async def close(self) -> None:
        """Let running calls of this event loop end, and close all connections."""
        self._warning.detach()
        await self._loop_pools.close()
