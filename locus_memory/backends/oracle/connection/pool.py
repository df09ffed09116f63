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
from typing import Any, TypeVar, cast

from locus_memory.backends.oracle.connection.driver import DRIVER_ERRORS, Connection, Pool
from locus_memory.backends.sql.connections import LONGEST_IDLE, SETTLING, Connections

__all__ = ["BorrowedPool", "Connect", "LoopPool", "OwnPool"]

T = TypeVar("T")

Connect = Callable[[], Awaitable[Connection]]
Work = Callable[[Connection], Awaitable[T]]


class LoopPool(ABC):
    """Lends connections to the calls of one event loop."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._working: dict[asyncio.Task[Any], Connection] = {}

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
        connection = await self.acquire()
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._working[task] = connection
        try:
            result = await work(connection)
        except asyncio.CancelledError:
            # The event loop ends: the driver is in the middle of a statement.
            del self._working[task]
            await self.release(connection, usable=False)
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
            del self._working[task]
        await self.release(connection, usable=usable)

    async def _settle(self, task: asyncio.Task[Any]) -> None:
        """Wait for the task of a cancelled call for a moment, then close its connection."""
        if task not in self._working:
            # It waits for a connection, or opens one for somebody else.
            self._dismiss(task)
            return
        await asyncio.wait([task], timeout=SETTLING)
        if not task.done() and task in self._working:
            self._working[task].terminate()
            await asyncio.wait([task], timeout=SETTLING)
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
    async def acquire(self) -> Connection:
        """Return a connection that no other call has."""

    @abstractmethod
    async def release(self, connection: Connection, *, usable: bool) -> None:
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


class OwnPool(Connections[Connection], LoopPool):
    """Connections that are opened and closed here."""

    async def release(self, connection: Connection, *, usable: bool) -> None:
        """Take a connection back, and give it to the call that waits longest."""
        self.give_back(connection, usable=usable)

    async def _is_alive(self, connection: Connection, idle: float) -> bool:
        if not connection.is_healthy() or idle < LONGEST_IDLE:
            return connection.is_healthy()
        try:
            async with asyncio.timeout(SETTLING):
                await connection.ping()
        except (*DRIVER_ERRORS, TimeoutError):
            return False
        return True

    def _transport(self, connection: Connection) -> Any:
        # Without it, the system closes the socket later.
        return getattr(getattr(connection, "_impl", None), "_transport", None)

    async def _end(self) -> None:
        await super()._end()
        if self._tasks:
            await asyncio.wait([*self._tasks], timeout=SETTLING)


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

    async def acquire(self) -> Connection:
        """Return a connection of the caller's pool."""
        return cast("Connection", await self._pool.acquire())

    async def release(self, connection: Connection, *, usable: bool) -> None:
        """Give it back to the caller's pool, which does without it if it is of no use."""
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
