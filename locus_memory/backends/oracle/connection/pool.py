"""The connections of one event loop, in a pool of oracledb's: one of its own, or the caller's.

The driver loses connections to calls that are cancelled
(https://github.com/oracle/python-oracledb/issues/392), and a statement that is cancelled waits for
the server. So each call works in a task of its own, which nobody cancels: a cancelled call leaves
its task behind, and the connection comes back when the task is done, or is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar, cast

from typing_extensions import override

from locus_memory.backends.oracle.connection.driver import DRIVER_ERRORS, Connection, Pool
from locus_memory.backends.sql import pool as sql

__all__ = ["LoopPool"]

T = TypeVar("T")

Work = Callable[[Connection], Awaitable[T]]


class LoopPool(sql.LoopPool[Connection]):
    """Lends connections to the calls of one event loop.

    Args:
        make: Makes the driver's pool, which connects when it is needed.
        size: The most that are lent at once.
        acquire_timeout: Seconds to wait for one.
        call_timeout: Milliseconds of one round trip; `None`: those of the caller's pool, or no
            limit.
        where: The name of the database in messages.
        is_own: Whether the pool is closed here.
    """

    def __init__(
        self,
        make: Callable[[], Pool],
        *,
        size: int,
        acquire_timeout: float,
        call_timeout: int | None,
        where: str,
        is_own: bool,
    ) -> None:
        before = asyncio.all_tasks()
        self._pool = make()
        self._pool_tasks = asyncio.all_tasks() - before
        self._call_timeout = call_timeout
        self._tasks: set[asyncio.Task[Any]] = set()
        self._working: dict[asyncio.Task[Any], Connection] = {}
        super().__init__(size=size, acquire_timeout=acquire_timeout, where=where, is_own=is_own)

    async def run(self, work: Work[T]) -> T:
        """Return the result of `work` for a connection, which it leaves without a transaction.

        Raises:
            BackendUnavailableError: No connection came back in time.
            BackendClosedError: The pool is closed.
            Exception: The error of `work`, after a rollback.
        """
        task = self._started(self._lend(work))
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
            return await work(connection)
        except asyncio.CancelledError:
            # The event loop ends: the driver is in the middle of a statement.
            _terminate(connection)
            raise
        except BaseException as error:
            _free_cursors(error)
            with contextlib.suppress(*DRIVER_ERRORS):
                await connection.rollback()
            raise
        finally:
            del self._working[task]
            await self.release(connection)

    async def _settle(self, task: asyncio.Task[Any]) -> None:
        """Wait for the task of a cancelled call for a moment, then close its connection."""
        if task not in self._working:
            # It waits for a connection, or opens one for somebody else.
            task.add_done_callback(_retrieve)
            task.cancel()
            return
        await asyncio.wait([task], timeout=sql.SETTLING)
        if not task.done() and task in self._working:
            _terminate(self._working[task])
            await asyncio.wait([task], timeout=sql.SETTLING)
        if task.done() and not task.cancelled():
            # The caller has another error to raise.
            task.exception()
        else:
            task.add_done_callback(_retrieve)

    @override
    async def _take(self) -> Connection | None:
        # The driver loses a connection whose caller is cancelled.
        taking = self._started(self._acquired())
        try:
            await asyncio.wait([taking])
        except BaseException:
            taking.add_done_callback(self._keep)
            raise
        return taking.result()

    async def _acquired(self) -> Connection:
        connection: Connection = await self._pool.acquire()
        if self._call_timeout is not None:
            connection.call_timeout = self._call_timeout
        return connection

    def _keep(self, taking: asyncio.Task[Connection]) -> None:
        """Give back a connection that no call waits for any more."""
        if not taking.cancelled() and taking.exception() is None:
            self._started(self._put(taking.result()))

    def _started(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    @override
    async def _put(self, connection: Connection) -> None:
        given: Any = connection
        with contextlib.suppress(*DRIVER_ERRORS):
            if connection.is_healthy() and connection.transaction_in_progress:
                await connection.rollback()
            await (self._pool.release if connection.is_healthy() else self._pool.drop)(given)

    @override
    def _opened(self) -> int:
        return self._pool.opened

    @override
    async def _shut(self) -> None:
        with contextlib.suppress(*DRIVER_ERRORS):
            async with asyncio.timeout(sql.SETTLING):
                await self._pool.close(force=True)

    @override
    async def _stop(self) -> None:
        await self._shut()
        if self._tasks:
            await asyncio.wait([*self._tasks], timeout=sql.SETTLING)

    @override
    def abandon(self) -> None:
        # The system closes the sockets later, which the driver hides.
        for task in self._pool_tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined] # noqa: SLF001 - its loop does not run


def _free_cursors(error: BaseException | None) -> None:
    """Clear the variables of the calls that failed, which hold cursors of the driver.

    A cursor that the garbage collector finds later waits for a lock, which its own thread holds if
    the collector runs inside the driver.
    """
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__context__


def _terminate(connection: Connection) -> None:
    """Close the socket of a connection; the pool, which drops it, needs the rest."""
    given: Any = connection
    whole = given._impl  # noqa: SLF001 - without it the pool keeps the place of the connection
    given.terminate()
    given._impl = whole  # noqa: SLF001


def _retrieve(task: asyncio.Future[Any]) -> None:
    """Take the error of a task, so that the event loop does not report it."""
    if not task.cancelled():
        task.exception()
