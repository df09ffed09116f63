"""Reads from standbys, which see what was written through the same pool.

A standby replays the log of its primary a moment later. After a write, the next read asks the
primary for its position in the log, once, and takes a standby that has replayed the log up to
there. A standby that has not, or that fails, is no error: the primary answers instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from locus_memory.backends.loops import PerLoop
from locus_memory.backends.postgresql.connection.driver import (
    DRIVER_ERRORS,
    Connection,
)
from locus_memory.backends.postgresql.connection.driver_errors import is_repeatable
from locus_memory.backends.postgresql.connection.pool import LoopPool
from locus_memory.errors import BackendClosedError, BackendError, ConfigurationError
from locus_memory.events import emit

__all__ = ["WRITTEN", "Standbys", "is_reading", "may_ask_standby", "reading"]

WRITTEN: Final = "SELECT (pg_catalog.pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint"
"""The position of a primary in its log, in bytes."""

_REPLAYED: Final = """
SELECT CASE WHEN pg_catalog.pg_is_in_recovery()
  THEN (pg_catalog.pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::bigint END
"""
"""The position of a standby; null where the server is a primary by now."""

_REST: Final = 5.0
"""Seconds that standbys are left alone after one failed."""

T = TypeVar("T")

_reading: ContextVar[bool | None] = ContextVar("reading", default=None)
"""Whether this task only reads, and standbys may answer it; `None`: it may write."""


@contextmanager
def reading(*, of_standbys: bool | None) -> Generator[None]:
    """Say that the statements of this task only read; `None`: that they may write.

    Such a statement runs once more if its connection is lost.

    Args:
        of_standbys: Whether standbys may answer.
    """
    token = _reading.set(of_standbys)
    try:
        yield
    finally:
        _reading.reset(token)


def is_reading() -> bool:
    """Whether the statements of this task only read."""
    return _reading.get() is not None


def may_ask_standby() -> bool:
    """Whether a standby may answer the statements of this task."""
    return bool(_reading.get())


class Standbys:
    """The standbys of a database, in the event loops of one pool.

    Args:
        make: Makes the connections of an event loop.
        position: Asks the primary for its position in the log.
        where: The database, for messages.
    """

    def __init__(
        self, make: Callable[[], LoopPool], position: Callable[[], Awaitable[int]], where: str
    ) -> None:
        self._make = make
        self._position = position
        self._where = where
        self._pools: PerLoop[LoopPool] = PerLoop(where)
        self._replayed: WeakKeyDictionary[Connection, int] = WeakKeyDictionary()
        # The tables may have been made a moment ago, so the first read asks as well.
        self._written, self._known = 1, 0
        self._needed = -1
        self._rests_until = 0.0

    def wrote(self) -> None:
        """Record that the primary was asked for something, which may have been a write."""
        self._written += 1

    async def answer(self, work: Callable[[Connection], Awaitable[T]]) -> tuple[T] | None:
        """Return what `work` returns on a standby that has all that was written through this pool.

        `None`: there is none just now, or it failed, so that the primary is to be asked.

        Raises:
            BackendError: The primary does not answer.
        """
        if asyncio.get_running_loop().time() < self._rests_until:
            return None
        written = self._written
        if written != self._known:
            self._needed = max(self._needed, await self._position())
            self._known = written
        try:
            loop_pool = self._pools.here() or await self._pools.opened(self._open)
            async with loop_pool.lent() as connection:
                return (await work(connection),) if await self._is_ahead(connection) else None
        except BackendClosedError:
            raise
        except (*DRIVER_ERRORS, BackendError, ConfigurationError) as error:
            if not is_repeatable(error):
                self._failed(error)
        return None

    async def _open(self) -> LoopPool:
        loop_pool = self._make()
        await loop_pool.open()
        return loop_pool

    async def _is_ahead(self, connection: Connection) -> bool:
        """Return whether a standby has what is needed; one that became the primary is left."""
        whole: Any = connection._con  # noqa: SLF001 - the pool lends it in another wrapper each time
        if self._replayed.get(whole, -2) >= self._needed:
            return True
        position: int | None = await connection.fetchval(_REPLAYED)
        if position is None:
            # It is looked for among the others the next time.
            connection.terminate()
            return False
        self._replayed[whole] = position
        return position >= self._needed

    def _failed(self, error: BaseException) -> None:
        """Leave the standbys alone for a while."""
        self._rests_until = asyncio.get_running_loop().time() + _REST
        kept = error if isinstance(error, Exception) else None
        emit("postgresql.standby_failed", error=kept, database=self._where)

    async def close(self) -> None:
        """Close the connections."""
        await self._pools.close()
