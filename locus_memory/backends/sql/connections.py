"""The connections of one event loop: opened when needed, lent to one call at a time."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, Protocol, TypeVar

from locus_memory._internal.running.live import POOLS, PoolUse
from locus_memory.backends.loops import sever, until_the_loop_ends
from locus_memory.backends.waiting import WaitingLine
from locus_memory.errors import BackendClosedError, BackendUnavailableError

__all__ = ["LONGEST_IDLE", "SETTLING", "TURNS", "Connections"]

LONGEST_IDLE: Final = 240.0
"""Seconds: firewalls forget a connection that is quiet for longer, without a word."""

SETTLING: Final = 1.0
"""Seconds that the statement of a cancelled call may take before its connection is closed."""

TURNS: Final = 6
"""How many turns the event loop may need to notice that a connection was closed."""


class _Closable(Protocol):
    """A connection of a driver."""

    async def close(self) -> None:
        """Take leave of the server."""

    def terminate(self) -> None:
        """Close the socket at once."""


C = TypeVar("C", bound=_Closable)


class Connections(ABC, Generic[C]):
    """Opens at most `size` connections; the one used last is lent first.

    Args:
        connect: Opens one; the driver is not interrupted while it connects.
        size: The most that are open at once.
        acquire_timeout: Seconds to wait for one.
        where: The name of the database in messages.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[C]],
        *,
        size: int,
        acquire_timeout: float,
        where: str,
    ) -> None:
        super().__init__()
        self._connect = connect
        self._size = self._places = size
        self._acquire_timeout = acquire_timeout
        self._where = where
        self._loop = asyncio.get_running_loop()
        self._idle: list[tuple[C, float]] = []
        self._lent: set[C] = set()
        self._opening: set[asyncio.Future[C]] = set()
        self._waiting: WaitingLine[asyncio.Future[C | None]] = WaitingLine(
            acquire_timeout, self._waited_too_long
        )
        self._returned: asyncio.Event | None = None
        self._closed = self._ended = False
        self._ending = until_the_loop_ends(self._end)
        POOLS.add(self, where)

    @abstractmethod
    async def _is_alive(self, connection: C, idle: float) -> bool:
        """Return whether a connection still works that was idle for so many seconds."""

    @abstractmethod
    def _transport(self, connection: C) -> Any:
        """Return the transport of a connection, which the driver hides; `None` without one."""

    def use(self) -> PoolUse:
        """Return the use of the connections now."""
        return PoolUse(len(self._lent), len(self._idle), self._size, len(self._waiting))

    async def open(self) -> None:
        """Open the first connection, and close all when the event loop ends, at the latest."""
        try:
            self.give_back(await self.acquire(), usable=True)
        except BaseException:
            # No call will use it: a connection that is still being opened is closed again.
            self._closed = True
            raise
        await anext(self._ending)

    async def acquire(self) -> C:
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

    async def _take(self) -> C | None:
        """Take an idle connection that still works."""
        while self._idle:
            connection, since = self._idle.pop()
            self._lent.add(connection)
            alive = False
            try:
                alive = await self._is_alive(connection, self._loop.time() - since)
            finally:
                if not alive:
                    self.give_back(connection, usable=False)
            if alive:
                return connection
        return None

    async def _turn(self) -> C | None:
        """Wait for a connection, or for the place of one that was closed (`None`)."""
        turn: asyncio.Future[C | None] = self._loop.create_future()
        self._waiting.join(turn, turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if not turn.cancelled() and turn.exception() is None:
                # It came just as the wait was cancelled.
                given = turn.result()
                if given is None:
                    self._leave()
                else:
                    self._hand_on(given)
            raise

    def _waited_too_long(self) -> BackendUnavailableError:
        return BackendUnavailableError(
            f"{self._where}: all {self._size} connections are busy, and none came back within "
            f"{self._acquire_timeout:g} s"
        )

    async def _opened(self) -> C:
        opening = asyncio.ensure_future(self._connect())
        self._opening.add(opening)
        opening.add_done_callback(self._opening.discard)
        try:
            await asyncio.wait([opening])
        except BaseException:
            # A driver that is interrupted would report an error to the event loop.
            opening.add_done_callback(self._keep)
            raise
        try:
            connection = opening.result()
        except BaseException:
            self._leave()
            raise
        if self._closed:
            self._drop(connection)
            raise self._refusal()
        return connection

    def _keep(self, opening: asyncio.Future[C]) -> None:
        """Give a new connection, for which no call waits, to another call."""
        if opening.cancelled() or opening.exception() is not None:
            self._leave()
        else:
            self.give_back(opening.result(), usable=True)

    def give_back(self, connection: C, *, usable: bool) -> None:
        """Take a connection back for the call that waits longest; close one of no use."""
        self._lent.discard(connection)
        if self._loop.is_closed():
            self._sever(connection)
            return
        if usable and not self._closed:
            self._hand_on(connection)
        else:
            self._drop(connection)
        if self._returned is not None and not self._lent:
            self._returned.set()

    def _hand_on(self, connection: C) -> None:
        turn = self._waiting.take()
        if turn is not None:
            turn.set_result(connection)
        else:
            self._idle.append((connection, self._loop.time()))

    def _drop(self, connection: C) -> None:
        connection.terminate()
        self._leave()

    def _leave(self) -> None:
        """Let another call open a connection in place of one that is closed."""
        turn = self._waiting.take()
        if turn is not None:
            turn.set_result(None)
        else:
            self._places += 1

    async def close(self) -> None:
        """Refuse the calls that wait, let running calls end, and close the connections."""
        self._closed = True
        self._waiting.end(self._refusal)
        if self._lent:
            self._returned = asyncio.Event()
            await self._returned.wait()
        if self._opening:
            await asyncio.wait([*self._opening])
        idle, self._idle = self._idle, []
        for connection, _ in idle:
            await _close(connection)
        await self._ending.aclose()

    def _refusal(self) -> BackendClosedError:
        return BackendClosedError(f"{self._where}: used after close()")

    async def _end(self) -> None:
        """Close the connections because the event loop ends."""
        self._closed = self._ended = True
        self._waiting.end(self._refusal)
        for opening in self._opening:
            opening.cancel()
        for connection in (*self._lent, *(each for each, _ in self._idle)):
            connection.terminate()
        self._idle.clear()
        for _ in range(TURNS):
            await asyncio.sleep(0)

    def has_ended(self) -> bool:
        """Return whether the connections were closed because the event loop ended."""
        return self._ended

    def abandon(self) -> None:
        """Close the sockets; the event loop is closed, or does not run."""
        self._closed = True
        for connection in (*self._lent, *(each for each, _ in self._idle)):
            self._sever(connection)
        self._idle.clear()
        self._lent.clear()

    def _sever(self, connection: C) -> None:
        transport = self._transport(connection)
        with contextlib.suppress(Exception):
            connection.terminate()
        sever(transport)


async def _close(connection: _Closable) -> None:
    try:
        async with asyncio.timeout(SETTLING):
            await connection.close()
    except Exception:  # noqa: BLE001 - a server that takes no leave is left all the same
        connection.terminate()
