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
from typing import Final
from weakref import WeakKeyDictionary

from locus_memory.backends.loops import PerLoop
from locus_memory.backends.postgresql.connection.driver import DRIVER_ERRORS, Connection
from locus_memory.backends.postgresql.connection.pool import LoopPool
from locus_memory.errors import BackendClosedError, BackendError, ConfigurationError
from locus_memory.events import emit

__all__ = ["WRITTEN", "Standbys", "is_reading", "on_primary", "reading"]

WRITTEN: Final = "SELECT (pg_catalog.pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint"
"""The position of a primary in its log, in bytes."""

_REPLAYED: Final = """
SELECT CASE WHEN pg_catalog.pg_is_in_recovery()
  THEN (pg_catalog.pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::bigint END
"""
"""The position of a standby; null where the server is a primary by now."""

_REST: Final = 5.0
"""Seconds that standbys are left alone after one failed."""

_reading: ContextVar[bool] = ContextVar("reading", default=False)


@contextmanager
def reading() -> Generator[None]:
    """Let a standby answer the statements of this task: they only read."""
    token = _reading.set(True)
    try:
        yield
    finally:
        _reading.reset(token)


@contextmanager
def on_primary() -> Generator[None]:
    """Let no standby answer, for a task that began in one that only reads."""
    token = _reading.set(False)
    try:
        yield
    finally:
        _reading.reset(token)


def is_reading() -> bool:
    """Whether a standby may answer the statements of this task."""
    return _reading.get()


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

    async def acquire(self) -> tuple[LoopPool, Connection] | None:
        """Return a connection to a standby that has all that was written through this pool.

        `None`: there is none just now, so that the primary is to be asked.

        Raises:
            BackendError: The primary does not answer.
        """
        loop = asyncio.get_running_loop()
        if loop.time() < self._rests_until:
            return None
        await self._learn_what_is_needed()
        try:
            loop_pool = self._pools.here() or await self._pools.opened(self._open)
            connection = await loop_pool.acquire()
        except BackendClosedError:
            raise
        except (*DRIVER_ERRORS, BackendError, ConfigurationError) as error:
            self.failed(error)
            return None
        if await self._is_ahead(loop_pool, connection):
            return loop_pool, connection
        return None

    async def _learn_what_is_needed(self) -> None:
        written = self._written
        if written != self._known:
            self._needed = max(self._needed, await self._position())
            self._known = written

    async def _open(self) -> LoopPool:
        loop_pool = self._make()
        await loop_pool.open()
        return loop_pool

    async def _is_ahead(self, loop_pool: LoopPool, connection: Connection) -> bool:
        """Whether a standby has what is needed; its connection is given back if not."""
        if self._replayed.get(connection, -2) >= self._needed:
            return True
        try:
            position: int | None = await connection.fetchval(_REPLAYED)
        except asyncio.CancelledError:
            await loop_pool.settle(connection)
            raise
        except BaseException as error:
            await loop_pool.release(connection, broken=True)
            if not isinstance(error, DRIVER_ERRORS):
                raise
            self.failed(error)
            return False
        if position is not None:
            self._replayed[connection] = position
            if position >= self._needed:
                return True
        # A standby that became the primary is looked for among the others the next time.
        await loop_pool.release(connection, broken=position is None)
        return False

    def failed(self, error: BaseException) -> None:
        """Leave the standbys alone for a while."""
        self._rests_until = asyncio.get_running_loop().time() + _REST
        kept = error if isinstance(error, Exception) else None
        emit("postgresql.standby_failed", error=kept, database=self._where)

    async def close(self) -> None:
        """Close the connections."""
        await self._pools.close()
