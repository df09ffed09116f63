"""The connections of one event loop, in a pool of asyncpg's: one of its own, or the caller's.

Three things are not left to asyncpg. A call waits for a connection in a line that `close` can end;
asyncpg's own refuses nobody who waits already. A connection that the server closed while it was
idle is replaced before a statement runs on it. And a driver that connects is not interrupted: it
would report an error to the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Final
from weakref import WeakSet

from locus_memory._internal.running.live import POOLS, PoolUse
from locus_memory.backends.loops import sever, until_the_loop_ends
from locus_memory.backends.postgresql.connection.driver import (
    DRIVER_ERRORS,
    Connection,
    OwnConnection,
    Pool,
    asyncpg,
    errors,
)
from locus_memory.backends.postgresql.connection.driver_errors import is_readonly
from locus_memory.errors import (
    BackendClosedError,
    BackendError,
    BackendUnavailableError,
    ConfigurationError,
)

__all__ = ["LoopPool"]

_LONGEST_IDLE: Final = 240.0
"""Seconds: firewalls forget a connection that is quiet for longer, without a word."""

_SETTLING: Final = 1.0
"""Seconds that the statement of a cancelled call may take before its connection is closed."""

_FAREWELL: Final = 5.0
"""Seconds to close a connection whose statement was cancelled."""

_TURNS: Final = 6
"""How many turns the event loop may need to notice that a connection was closed."""

_LEAST_TO_SHARE: Final = 4
"""The least size of a caller's pool that lends two connections for long."""


class LoopPool:
    """Lends connections to the calls of one event loop.

    Args:
        connect: Opens a connection.
        size: The most that are open at once.
        acquire_timeout: Seconds to wait for one.
        where: The database, for messages.
        borrowed: The caller's pool, which is never closed here; it has a size of its own.

    Raises:
        ConfigurationError: The caller's pool belongs to another event loop.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[OwnConnection]],
        *,
        size: int,
        acquire_timeout: float,
        where: str,
        borrowed: Pool | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        # asyncpg does not say which loop a pool belongs to.
        if borrowed is not None and getattr(borrowed, "_loop", None) is not self._loop:
            raise ConfigurationError(
                f"{where}: the asyncpg pool passed in belongs to another event loop; use it "
                "there, or pass the database's URL instead"
            )
        self._connect, self._where, self._acquire_timeout = connect, where, acquire_timeout
        self._opened: WeakSet[OwnConnection] = WeakSet()
        self._is_own = borrowed is None
        self._pool: Pool = borrowed or asyncpg.create_pool(
            min_size=0,
            max_size=size,
            max_inactive_connection_lifetime=_LONGEST_IDLE,
            connect=self._connected,
            connection_class=OwnConnection,
        )
        self._size = self._pool.get_max_size()
        self._free = asyncio.Semaphore(self._size)
        self._waiting = 0
        self._closed = self._ended = False
        self._ending = until_the_loop_ends(self._end)
        if self._is_own:
            POOLS.add(self, where)

    def use(self) -> PoolUse:
        """Return the use of the connections now."""
        idle = self._pool.get_idle_size()
        return PoolUse(self._pool.get_size() - idle, idle, self._size, self._waiting)

    async def open(self) -> None:
        """Open the first connection, and close all when the event loop ends, at the latest."""
        if self._is_own:
            await self._pool
        await self.release(await self.acquire())
        await anext(self._ending)

    async def _connected(self, *_: Any, **__: Any) -> OwnConnection:
        """Open a connection for the pool; one that nobody waits for any more is closed again."""
        opening = asyncio.ensure_future(self._connect())
        try:
            await asyncio.wait([opening])
        except BaseException:
            opening.add_done_callback(_drop)
            raise
        self._opened.add(opening.result())
        return opening.result()

    async def acquire(self) -> Connection:
        """Return a connection that nobody else has, and that the server has not closed.

        Raises:
            BackendUnavailableError: None came back in time.
            BackendClosedError: The pool was closed.
        """
        self._waiting += 1
        try:
            async with asyncio.timeout(self._acquire_timeout):
                await self._free.acquire()
        except TimeoutError:
            raise self._busy() from None
        finally:
            self._waiting -= 1
        try:
            return await self._lent()
        except BaseException:
            self._give_place()
            raise

    async def _lent(self) -> Connection:
        timeout = None if self._is_own else self._acquire_timeout
        while not self._closed:
            connection = await self._pool.acquire(timeout=timeout)
            is_alive = False
            try:
                is_alive = await _is_alive(connection) and not self._closed
            finally:
                if not is_alive:
                    _terminate(connection)
            if is_alive:
                return connection
        raise BackendClosedError(f"{self._where}: used after close()")

    def _busy(self) -> BackendUnavailableError:
        return BackendUnavailableError(
            f"{self._where}: all {self._size} connections are busy, and none came back within "
            f"{self._acquire_timeout:g} s"
        )

    async def release(self, connection: Connection) -> None:
        """Take a connection back, once a cancelled statement is over and nothing is uncommitted.

        Whoever is cancelled again meanwhile does not wait for that.
        """
        try:
            if self._loop.is_closed():
                _sever(connection)
            elif _is_gone(connection) or not connection.is_in_transaction():
                await self._pool.release(connection, timeout=_SETTLING)
            else:
                await asyncio.shield(self._rolled_back(connection))
        except DRIVER_ERRORS:
            # The pool has closed it, and opens another one.
            pass
        finally:
            self._give_place()

    def _give_place(self) -> None:
        if not self._loop.is_closed():
            self._free.release()

    async def _rolled_back(self, connection: Connection) -> None:
        try:
            async with asyncio.timeout(_SETTLING):
                await connection.execute("ROLLBACK")
        except DRIVER_ERRORS:
            _terminate(connection)
        await self._pool.release(connection)

    @contextlib.asynccontextmanager
    async def lent(self) -> AsyncGenerator[Connection]:
        """Lend a connection to a block; see `acquire`."""
        connection = await self.acquire()
        try:
            yield connection
        except DRIVER_ERRORS as error:
            # A primary that takes no writes any more may have been replaced by another host.
            if is_readonly(error):
                _terminate(connection)
            raise
        finally:
            await self.release(connection)

    @contextlib.asynccontextmanager
    async def outside(self) -> AsyncGenerator[Connection]:
        """Lend a connection that `close` does not wait for, unless that leaves too few.

        Raises:
            BackendError: The caller's pool is too small.
        """
        if self._is_own:
            own = await self._connect()
            try:
                yield own
            finally:
                await _left(own)
        elif self._size < _LEAST_TO_SHARE:
            raise BackendError(
                f"{self._where}: an index needs two connections while it is built, and the pool "
                f"passed in has fewer than {_LEAST_TO_SHARE}; call compact() of a store that "
                "opens its own"
            )
        else:
            async with self.lent() as connection:
                yield connection

    async def close(self) -> None:
        """Refuse the calls that wait, let running calls end, and close what was opened here."""
        self._closed = True
        # One place more: each call that waits hands it on to the next one, and is refused.
        self._free.release()
        for _ in range(self._size + 1):
            await self._free.acquire()
        if self._is_own:
            with contextlib.suppress(*DRIVER_ERRORS):
                async with asyncio.timeout(_SETTLING):
                    await self._pool.close()
        await self._ending.aclose()

    async def _end(self) -> None:
        """Close the connections because the event loop ends."""
        self._closed = self._ended = True
        if self._is_own:
            self._pool.terminate()
            for _ in range(_TURNS):
                await asyncio.sleep(0)

    def has_ended(self) -> bool:
        """Return whether the connections were closed because the event loop ended."""
        return self._ended

    def abandon(self) -> None:
        """Close the sockets opened here; the event loop is closed, or does not run."""
        self._closed = True
        for connection in list(self._opened):
            _sever(connection)


async def _left(connection: Connection) -> None:
    """Close a connection; the server is told to end a cancelled statement."""
    try:
        async with asyncio.timeout(_FAREWELL):
            await connection.close()
    except (*DRIVER_ERRORS, asyncio.CancelledError):
        connection.terminate()
        raise


def _drop(opening: asyncio.Future[OwnConnection]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().terminate()


def _is_gone(connection: Connection) -> bool:
    """Return whether a connection is closed, or went back to its pool as it was."""
    try:
        return bool(connection.is_closed())
    except errors.InterfaceError:
        return True


def _terminate(connection: Connection) -> None:
    if not _is_gone(connection):
        connection.terminate()


async def _is_alive(connection: Connection) -> bool:
    """Return whether the other side has not closed the connection meanwhile."""
    for _ in range(_TURNS):
        if _is_gone(connection):
            return False
        if not _has_something_to_read(connection):
            return True
        # The server is silent unless it is asked: this is most likely its farewell.
        await asyncio.sleep(0)
    return not _is_gone(connection)


def _has_something_to_read(connection: Connection) -> bool:
    socket = _transport(connection).get_extra_info("socket")
    if socket is None or not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(socket.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _sever(connection: Connection) -> None:
    transport = _transport(connection)
    with contextlib.suppress(Exception):
        connection.terminate()
    sever(transport)


def _transport(connection: Connection) -> Any:
    return connection._transport  # noqa: SLF001 - asyncpg hides it
