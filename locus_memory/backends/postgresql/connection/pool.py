"""The connections of one event loop: opened when needed, lent to one call at a time.

asyncpg's own pool sends every release through a task of its own: a read takes a third longer with
it, and a thousand of 50 tasks take twice as long. While it closes, it refuses nobody who waits
already. A call that waits for it when the event loop is closed reports an error.
"""

from __future__ import annotations

import asyncio
import select
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from typing_extensions import override

from locus_memory.backends.postgresql.connection.driver import (
    DRIVER_ERRORS,
    Connection,
    InterfaceError,
    Pool,
)
from locus_memory.backends.sql.connections import LONGEST_IDLE, SETTLING, TURNS, Connections
from locus_memory.errors import (
    BackendError,
    ConfigurationError,
)

__all__ = ["BorrowedPool", "Connect", "LoopPool", "OwnPool", "is_gone"]

Connect = Callable[[], Awaitable[Connection]]

_FAREWELL: Final = 5.0
"""Seconds to close a connection whose statement was cancelled."""

_LEAST_TO_SHARE: Final = 4
"""The least size of a caller's pool that lends two connections for long."""


_settling: Final[set[asyncio.Task[None]]] = set()
"""The event loop itself holds its tasks weakly."""


class LoopPool(ABC):
    """Lends connections to the calls of one event loop."""

    @abstractmethod
    async def open(self) -> None:
        """Connect, before anything is lent."""

    @abstractmethod
    async def acquire(self) -> Connection:
        """Return a connection that nobody else has."""

    @abstractmethod
    async def release(self, connection: Connection, *, broken: bool = False) -> None:
        """Take a connection back; a `broken` one is closed."""

    async def outside(self, connect: Connect) -> Connection:
        """Return a connection that `close` does not wait for."""
        return await connect()

    async def end_outside(self, connection: Connection) -> None:
        """Close what `outside` returned; the server is told to end a cancelled statement."""
        try:
            async with asyncio.timeout(_FAREWELL):
                await connection.close()
        except (*DRIVER_ERRORS, asyncio.CancelledError):
            connection.terminate()
            raise

    async def settle(self, connection: Connection) -> None:
        """Take back the connection of a call that was cancelled, once its statement is over.

        Whoever is cancelled again meanwhile does not wait for that. The driver's own request to
        the server is not broken off: it would be reported to the event loop as an error.
        """
        settling = asyncio.create_task(self._settled(connection))
        _settling.add(settling)
        settling.add_done_callback(_settling.discard)
        await asyncio.wait([settling])

    async def _settled(self, connection: Connection) -> None:
        await self.release(connection, broken=not await _is_over(connection))

    @abstractmethod
    async def close(self) -> None:
        """Wait for what is lent, and close the connections opened here."""

    @abstractmethod
    def abandon(self) -> None:
        """Close the connections without their event loop, which does not run any more."""

    def has_ended(self) -> bool:
        """Whether there is nothing left to close, since the event loop ended."""
        return False


class OwnPool(Connections[Connection], LoopPool):
    """Connections that are opened and closed here."""

    async def release(self, connection: Connection, *, broken: bool = False) -> None:
        """Take a connection back, and give it to the call that waits longest."""
        unusable = broken or connection.is_closed() or connection.is_in_transaction()
        self.give_back(connection, usable=not unusable)

    async def _is_alive(self, connection: Connection, idle: float) -> bool:
        """Return whether the other side has not closed the connection meanwhile."""
        if idle >= LONGEST_IDLE:
            return False
        for _ in range(TURNS):
            if connection.is_closed():
                return False
            if not _has_something_to_read(connection):
                return True
            # The server is silent unless it is asked: this is most likely its farewell.
            await asyncio.sleep(0)
        return not connection.is_closed()

    def _transport(self, connection: Connection) -> Any:
        return _transport(connection)


class BorrowedPool(LoopPool):
    """Lends from a pool of the caller's, which is never closed here.

    Args:
        pool: The pool, which belongs to one event loop.
        acquire_timeout: Seconds to wait for a connection.
        where: What it leads to, for messages.
    """

    def __init__(self, pool: Pool, *, acquire_timeout: float, where: str) -> None:
        self._pool = pool
        self._where = where
        self._acquire_timeout = acquire_timeout
        # asyncpg does not say which loop a pool belongs to.
        if getattr(pool, "_loop", None) is not asyncio.get_running_loop():
            raise ConfigurationError(
                f"{where}: the asyncpg pool passed in belongs to another event loop; use it "
                "there, or pass the database's URL instead"
            )

    async def open(self) -> None:
        """See whether the caller's pool has a connection."""
        await self.release(await self.acquire())

    async def acquire(self) -> Connection:
        """Return a connection of the caller's pool."""
        async with asyncio.timeout(self._acquire_timeout):
            proxy: Any = await self._pool.acquire()
        # It has every method of a connection.
        return cast("Connection", proxy)

    async def release(self, connection: Connection, *, broken: bool = False) -> None:
        """Give it back to the caller's pool, which does without it if it is closed."""
        if broken and not is_gone(connection):
            connection.terminate()
        await self._pool.release(connection)

    @override
    async def outside(self, connect: Connect) -> Connection:
        """Return a connection of the caller's pool, unless that leaves too few.

        Raises:
            BackendError: The pool is too small.
        """
        if self._pool.get_max_size() < _LEAST_TO_SHARE:
            raise BackendError(
                f"{self._where}: an index needs two connections while it is built, and the pool "
                f"passed in has fewer than {_LEAST_TO_SHARE}; call compact() of a store that "
                "opens its own"
            )
        return await self.acquire()

    @override
    async def end_outside(self, connection: Connection) -> None:
        await self.settle(connection)

    async def close(self) -> None:
        """Leave the caller's pool open."""

    def abandon(self) -> None:
        """Leave the caller's pool alone."""


def is_gone(connection: Connection) -> bool:
    """Whether a connection is closed, or went back to the caller's pool as it was."""
    try:
        return connection.is_closed()
    except InterfaceError:
        return True


async def _is_over(connection: Connection) -> bool:
    """Wait until a cancelled statement is over; returns whether the connection can be used."""
    try:
        async with asyncio.timeout(SETTLING):
            # The driver lets the server acknowledge the cancellation first.
            await connection.execute("ROLLBACK" if connection.is_in_transaction() else "SELECT 1")
    except BaseException:  # noqa: BLE001 - whoever calls has an error to raise already
        return False
    return True


def _has_something_to_read(connection: Connection) -> bool:
    socket = _transport(connection).get_extra_info("socket")
    if socket is None or not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(socket.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _transport(connection: Connection) -> Any:
    return cast("Any", connection)._transport  # noqa: SLF001 - asyncpg hides it
