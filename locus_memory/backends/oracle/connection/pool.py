"""The connections of one event loop: opened when needed, lent to one call at a time.

The pool of oracledb has lost connections to calls that were cancelled or waited too long
(https://github.com/oracle/python-oracledb/issues/392), and a statement that is cancelled waits for
the server. So each call works in a task of its own, which nobody cancels: a cancelled call leaves
its task behind, and the connection comes back when the task is done, or is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar, cast

from locus_memory._internal.running.live import POOLS, PoolUse
from locus_memory.backends.loops import sever, until_the_loop_ends
from locus_memory.backends.oracle.connection.driver import DRIVER_ERRORS, Connection, Pool
from locus_memory.backends.waiting import WaitingLine
from locus_memory.errors import BackendClosedError, BackendUnavailableError

__all__ = ["BorrowedPool", "Connect", "LoopPool", "OwnPool"]

T = TypeVar("T")

Connect = Callable[[], Awaitable[Connection]]
Work = Callable[[Connection], Awaitable[T]]

_Turn = asyncio.Future[Connection | None]

_LONGEST_IDLE: Final = 240.0
"""Seconds: firewalls forget a connection that is quiet for longer, without a word."""

_SETTLING: Final = 1.0
"""Seconds that the statement of a cancelled call may take before its connection is closed."""


class LoopPool(ABC):
    """Lends connections to the calls of one event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._lent: dict[asyncio.Task[Any], Connection] = {}

    async def run(self, work: Work[T]) -> T:
        """Return the result of `work` for a connection, which it leaves without a transaction.

        Raises:
            BackendUnavailableError: No connection came back in time.
            BackendClosedError: The pool is closed.
            Exception: The error of `work`, after a rollback.
        """
        task = asyncio.ensure_future(self._lend(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            await self._settle(task)
            raise
        return task.result()

    async def _lend(self, work: Work[T]) -> T:
        connection = await self._acquire()
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._lent[task] = connection
        try:
            result = await work(connection)
        except asyncio.CancelledError:
            # The event loop ends: the driver is in the middle of a statement.
            del self._lent[task]
            await self._release(connection, usable=False)
            raise
        except BaseException as error:
            _free_cursors(error)
            await self._return(task, connection, failed=True)
            raise
        await self._return(task, connection, failed=False)
        return result

    async def _return(
        self, task: asyncio.Task[Any], connection: Connection, *, failed: bool
    ) -> None:
        try:
            usable = await _settled(connection, failed=failed)
        finally:
            del self._lent[task]
        await self._release(connection, usable=usable)

    async def _settle(self, task: asyncio.Task[Any]) -> None:
        """Wait for the task of a cancelled call for a moment, then close its connection."""
        if task not in self._lent:
            # It waits for a connection, or opens one for somebody else.
            self._dismiss(task)
            return
        await asyncio.wait([task], timeout=_SETTLING)
        if not task.done() and task in self._lent:
            self._lent[task].terminate()
            await asyncio.wait([task], timeout=_SETTLING)
        if task.done() and not task.cancelled():
            # The caller has another error to raise.
            task.exception()
        else:
            task.add_done_callback(_retrieve)

    def _dismiss(self, task: asyncio.Task[Any]) -> None:
        task.add_done_callback(_retrieve)
        task.cancel()

    @abstractmethod
    async def open(self) -> None:
        """Connect, before the first call."""

    @abstractmethod
    async def _acquire(self) -> Connection:
        """Return a connection that no other call has."""

    @abstractmethod
    async def _release(self, connection: Connection, *, usable: bool) -> None:
        """Take a connection back."""

    @abstractmethod
    async def close(self) -> None:
        """Wait for the calls, and close the connections opened here."""

    @abstractmethod
    def abandon(self) -> None:
        """Close the connections without their event loop, which does not run."""

    def has_ended(self) -> bool:
        """Return whether the connections were closed because the event loop ended."""
        return False


class OwnPool(LoopPool):
    """Opens at most `size` connections; the one used last is lent first.

    Args:
        connect: Opens one.
        size: The most that are open at once.
        acquire_timeout: Seconds to wait for one.
        where: The name of the database in messages.
    """

    def __init__(self, connect: Connect, *, size: int, acquire_timeout: float, where: str) -> None:
        super().__init__()
        self._connect = connect
        self._size = self._places = size
        self._acquire_timeout = acquire_timeout
        self._where = where
        self._idle: list[tuple[Connection, float]] = []
        self._waiting: WaitingLine[_Turn] = WaitingLine(acquire_timeout, self._waited_too_long)
        self._closed = self._ended = False
        self._ending = until_the_loop_ends(self._end)
        POOLS.add(self, where)

    def use(self) -> PoolUse:
        """Return the use of the connections now."""
        return PoolUse(len(self._lent), len(self._idle), self._size, len(self._waiting))

    async def open(self) -> None:
        """Open the first connection, and close all when the event loop ends, at the latest."""
        await self.run(_nothing)
        await anext(self._ending)

    async def _acquire(self) -> Connection:
        if self._closed:
            raise self._refusal()
        connection = await self._take()
        if connection is None:
            if self._places:
                self._places -= 1
            else:
                connection = await self._turn()
        return await self._opened() if connection is None else connection

    async def _take(self) -> Connection | None:
        """Take an idle connection that still works."""
        while self._idle:
            connection, since = self._idle.pop()
            alive = False
            try:
                is_new = self._loop.time() - since < _LONGEST_IDLE
                alive = connection.is_healthy() and (is_new or await _answers(connection))
            finally:
                if not alive:
                    self._drop(connection)
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

    async def _opened(self) -> Connection:
        # The driver is not interrupted while it connects.
        opening = asyncio.ensure_future(self._connect())
        self._tasks.add(cast("asyncio.Task[Any]", opening))
        opening.add_done_callback(self._tasks.discard)
        try:
            await asyncio.wait([opening])
        except asyncio.CancelledError:
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

    def _keep(self, opening: asyncio.Future[Connection]) -> None:
        """Give a new connection, for which no call waits, to another call."""
        if opening.cancelled() or opening.exception() is not None:
            self._leave()
        else:
            self._give_back(opening.result(), usable=True)

    async def _release(self, connection: Connection, *, usable: bool) -> None:
        self._give_back(connection, usable=usable)

    def _give_back(self, connection: Connection, *, usable: bool) -> None:
        if usable and not self._closed:
            self._hand_on(connection)
        else:
            self._drop(connection)

    def _hand_on(self, connection: Connection) -> None:
        turn = self._waiting.take()
        if turn is not None:
            turn.set_result(connection)
        else:
            self._idle.append((connection, self._loop.time()))

    def _drop(self, connection: Connection) -> None:
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
        idle, self._idle, self._closed = self._idle, [], True
        self._waiting.end(self._refusal)
        if self._tasks:
            await asyncio.wait([*self._tasks])
        for connection, _ in idle:
            await _closed(connection)
        await self._ending.aclose()

    def _refusal(self) -> BackendClosedError:
        return BackendClosedError(f"{self._where}: used after close()")

    async def _end(self) -> None:
        self._closed = self._ended = True
        self._waiting.end(self._refusal)
        self._terminate()
        if self._tasks:
            await asyncio.wait([*self._tasks], timeout=_SETTLING)

    def _terminate(self) -> None:
        for connection in (*self._lent.values(), *(each for each, _ in self._idle)):
            connection.terminate()
        self._idle.clear()

    def has_ended(self) -> bool:
        """Return whether the connections were closed because the event loop ended."""
        return self._ended

    def abandon(self) -> None:
        """Close the sockets; the event loop is closed, or does not run."""
        self._closed = True
        for connection in (*self._lent.values(), *(each for each, _ in self._idle)):
            _sever(connection)
        self._idle.clear()


class BorrowedPool(LoopPool):
    """Lends from a pool of the caller's, which is never closed here.

    Args:
        pool: The pool, which belongs to one event loop.
    """

    def __init__(self, pool: Pool) -> None:
        super().__init__()
        self._pool = pool

    async def open(self) -> None:
        """Check that the caller's pool has a connection."""
        await self.run(_nothing)

    async def _acquire(self) -> Connection:
        return cast("Connection", await self._pool.acquire())

    async def _release(self, connection: Connection, *, usable: bool) -> None:
        given = cast("Any", connection)
        with contextlib.suppress(*DRIVER_ERRORS):
            await (self._pool.release(given) if usable else self._pool.drop(given))

    async def close(self) -> None:
        """Leave the caller's pool open, without a call of ours."""
        if self._tasks:
            await asyncio.wait([*self._tasks])

    def abandon(self) -> None:
        """Leave the caller's pool alone."""


def _free_cursors(error: BaseException | None) -> None:
    """Clear the variables of the calls that failed, which hold cursors of the driver.

    A cursor that the garbage collector finds later waits for a lock, which its own thread holds if
    the collector runs inside the driver.
    """
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__context__


async def _nothing(connection: Connection) -> None:
    del connection


def _retrieve(task: asyncio.Future[Any]) -> None:
    """Take the error of a task, so that the event loop does not report it."""
    if not task.cancelled():
        task.exception()


async def _settled(connection: Connection, *, failed: bool) -> bool:
    """Roll back what a call has left; return whether the connection can be used."""
    try:
        if connection.is_healthy() and (failed or connection.transaction_in_progress):
            await connection.rollback()
        return connection.is_healthy()
    except DRIVER_ERRORS:
        return False


async def _answers(connection: Connection) -> bool:
    try:
        async with asyncio.timeout(_SETTLING):
            await connection.ping()
    except (*DRIVER_ERRORS, TimeoutError):
        return False
    return True


async def _closed(connection: Connection) -> None:
    try:
        async with asyncio.timeout(_SETTLING):
            await connection.close()
    except (*DRIVER_ERRORS, TimeoutError):
        connection.terminate()


def _sever(connection: Connection) -> None:
    """Close the socket of a connection whose event loop is closed."""
    # The driver hides its transport; without it, the system closes the socket later.
    transport = getattr(getattr(connection, "_impl", None), "_transport", None)
    with contextlib.suppress(Exception):
        connection.terminate()
    sever(transport)
