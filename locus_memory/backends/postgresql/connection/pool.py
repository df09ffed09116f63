"""The connections of one event loop: opened when needed, lent to one call at a time.

asyncpg's own pool sends every release through a task of its own: a read takes a third longer with
it, and a thousand of 50 tasks take twice as long. While it closes, it refuses nobody who waits
already. A call that waits for it when the event loop is closed reports an error.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from typing_extensions import override

from locus_memory._internal.running.live import POOLS, PoolUse
from locus_memory.backends.loops import sever, until_the_loop_ends
from locus_memory.backends.postgresql.connection.driver import (
    DRIVER_ERRORS,
    Connection,
    InterfaceError,
    Pool,
)
from locus_memory.backends.waiting import WaitingLine
from locus_memory.errors import (
    BackendClosedError,
    BackendError,
    BackendUnavailableError,
    ConfigurationError,
)

__all__ = ["BorrowedPool", "Connect", "LoopPool", "OwnPool", "is_gone"]

Connect = Callable[[], Awaitable[Connection]]

_Turn = asyncio.Future[Connection | None]

_LONGEST_IDLE: Final = 240.0
"""Seconds: firewalls forget, without a word, what was quiet for longer."""

_SETTLING: Final = 1.0
"""Seconds a cancelled statement is waited for, before its connection is given up."""

_FAREWELL: Final = 5.0
"""Seconds to close a connection whose statement was cancelled."""

_LEAST_TO_SHARE: Final = 4
"""The least size of a caller's pool that lends two connections for long."""

_TURNS: Final = 6
"""How many turns the event loop may need to notice that a connection was closed."""


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


class OwnPool(LoopPool):
    """Opens at most `size` connections; the one used last is lent first.

    Args:
        connect: Opens one.
        size: How many may be open at once.
        acquire_timeout: Seconds to wait for one.
        where: What they lead to, for messages.
    """

    def __init__(self, connect: Connect, *, size: int, acquire_timeout: float, where: str) -> None:
        self._connect = connect
        self._size = size
        self._acquire_timeout = acquire_timeout
        self._where = where
        self._loop = asyncio.get_running_loop()
        self._places = size
        self._idle: list[tuple[Connection, float]] = []
        self._lent: set[Connection] = set()
        self._opening: set[asyncio.Future[Connection]] = set()
        self._waiting: WaitingLine[_Turn] = WaitingLine(acquire_timeout, self._waited_too_long)
        self._returned: asyncio.Event | None = None
        self._closed = self._ended = False
        self._ending = until_the_loop_ends(self._end)
        POOLS.add(self, where)

    def use(self) -> PoolUse:
        """Return the use of the connections now."""
        return PoolUse(len(self._lent), len(self._idle), self._size, len(self._waiting))

    async def open(self) -> None:
        """Open the first connection, and close all when the event loop ends, at the latest."""
        try:
            await self.release(await self.acquire())
        except BaseException:
            # Nobody will use it: what is still being opened is closed again.
            self._closed = True
            raise
        await anext(self._ending)

    async def _end(self) -> None:
        self._terminate()
        for _ in range(_TURNS):
            await asyncio.sleep(0)

    async def acquire(self) -> Connection:
        """Return an idle connection, or a new one, or the first that comes back.

        Raises:
            BackendUnavailableError: None came back in time.
            BackendClosedError: The pool was closed.
        """
        if self._closed:
            raise self._refusal()
        connection = await self._take()
        if connection is None:
            if self._places:
                self._places -= 1
            else:
                connection = await self._turn()
            if connection is None:
                connection = await self._opened()
        self._lent.add(connection)
        return connection

    async def _take(self) -> Connection | None:
        while self._idle:
            connection, since = self._idle.pop()
            alive = False
            try:
                alive = self._loop.time() - since < _LONGEST_IDLE and await _is_alive(connection)
            finally:
                if not alive:
                    connection.terminate()
                    self._leave()
            if alive:
                return connection
        return None

    async def _turn(self) -> Connection | None:
        """Wait for a connection, or for the place of one that was closed (`None`)."""
        turn: _Turn = self._loop.create_future()
        self._waiting.join(turn, turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if not turn.cancelled() and turn.exception() is None:
                # It came just as the wait was cancelled.
                self._pass_on(turn.result())
            raise

    def _waited_too_long(self) -> BackendUnavailableError:
        return BackendUnavailableError(
            f"{self._where}: all {self._size} connections are busy, and none came back within "
            f"{self._acquire_timeout:g} s"
        )

    async def _opened(self) -> Connection:
        opening = asyncio.ensure_future(self._connect())
        self._opening.add(opening)
        opening.add_done_callback(self._opening.discard)
        try:
            await asyncio.wait([opening])
        except BaseException:
            # The driver reports a connection that is broken off to the event loop, as an error.
            opening.add_done_callback(self._keep)
            raise
        try:
            connection = opening.result()
        except BaseException:
            self._leave()
            raise
        if self._closed:
            connection.terminate()
            self._leave()
            raise self._refusal()
        return connection

    def _keep(self, opening: asyncio.Future[Connection]) -> None:
        """Give a new connection, which nobody waits for any more, to somebody else."""
        if opening.cancelled() or opening.exception() is not None:
            self._leave()
        elif self._closed:
            opening.result().terminate()
            self._leave()
        else:
            self._hand_on(opening.result())

    async def release(self, connection: Connection, *, broken: bool = False) -> None:
        """Take a connection back, and give it to whoever waits longest."""
        self._lent.discard(connection)
        if self._loop.is_closed():
            _drop(connection)
            return
        if broken or self._closed or connection.is_closed() or connection.is_in_transaction():
            connection.terminate()
            self._leave()
        else:
            self._hand_on(connection)
        if self._returned is not None and not self._lent:
            self._returned.set()

    def _pass_on(self, what: Connection | None) -> None:
        """Give the next who waits a connection, or the place of one (`None`)."""
        if what is None:
            self._leave()
        else:
            self._hand_on(what)

    def _hand_on(self, connection: Connection) -> None:
        turn = self._waiting.take()
        if turn is not None:
            turn.set_result(connection)
        else:
            self._idle.append((connection, self._loop.time()))

    def _leave(self) -> None:
        """Let somebody else open a connection in place of one that is gone."""
        turn = self._waiting.take()
        if turn is not None:
            turn.set_result(None)
        else:
            self._places += 1

    async def close(self) -> None:
        """Refuse whoever waits, let running calls end, and close the connections."""
        self._closed = True
        self._waiting.end(self._refusal)
        if self._lent:
            self._returned = asyncio.Event()
            await self._returned.wait()
        if self._opening:
            await asyncio.wait([*self._opening])
        idle, self._idle = self._idle, []
        for connection, _ in idle:
            await _closed(connection)
        await self._ending.aclose()

    def _refusal(self) -> BackendClosedError:
        return BackendClosedError(f"{self._where}: used after close()")

    def _terminate(self) -> None:
        self._closed = self._ended = True
        self._waiting.end(self._refusal)
        for opening in self._opening:
            opening.cancel()
        for connection in (*self._lent, *(connection for connection, _ in self._idle)):
            connection.terminate()
        self._idle.clear()

    def has_ended(self) -> bool:
        """Whether the connections were closed as the event loop ended."""
        return self._ended

    def abandon(self) -> None:
        """Close the sockets; the event loop is closed, or nobody runs it."""
        self._closed = True
        for connection in (*self._lent, *(connection for connection, _ in self._idle)):
            _drop(connection)
        self._idle.clear()
        self._lent.clear()


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
        async with asyncio.timeout(_SETTLING):
            # The driver lets the server acknowledge the cancellation first.
            await connection.execute("ROLLBACK" if connection.is_in_transaction() else "SELECT 1")
    except BaseException:  # noqa: BLE001 - whoever calls has an error to raise already
        return False
    return True


async def _is_alive(connection: Connection) -> bool:
    """Whether an idle connection was not closed by the other side meanwhile."""
    for _ in range(_TURNS):
        if connection.is_closed():
            return False
        if not _has_something_to_read(connection):
            return True
        # The server is silent unless it is asked: this is most likely its farewell.
        await asyncio.sleep(0)
    return not connection.is_closed()


def _has_something_to_read(connection: Connection) -> bool:
    socket = _transport(connection).get_extra_info("socket")
    if socket is None or not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(socket.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _transport(connection: Connection) -> Any:
    return cast("Any", connection)._transport  # noqa: SLF001 - asyncpg hides it


async def _closed(connection: Connection) -> None:
    try:
        async with asyncio.timeout(_SETTLING):
            await connection.close()
    except DRIVER_ERRORS:
        connection.terminate()


def _drop(connection: Connection) -> None:
    """Close the socket of a connection whose event loop is closed."""
    transport = _transport(connection)
    with contextlib.suppress(RuntimeError):
        connection.terminate()
    sever(transport)
