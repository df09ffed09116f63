"""The connections of one event loop, which a pool of the driver opens and lends.

Not left to a driver is the line of the calls that wait: it has a limit of its own, and `close` ends
it. Closing the pool of a driver would let them wait, or fail while a call has a connection.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from typing import Final, Generic, TypeVar

from locus_memory._internal.running.live import POOLS, PoolUse
from locus_memory.backends.loops import Turns, until_the_loop_ends
from locus_memory.errors import BackendClosedError

__all__ = ["LONGEST_IDLE", "SETTLING", "TURNS", "LoopPool"]

LONGEST_IDLE: Final = 240
"""Seconds: firewalls forget a connection that is quiet for longer, without a word."""

SETTLING: Final = 1.0
"""Seconds that the statement of a cancelled call may take before its connection is closed."""

TURNS: Final = 6
"""How many turns the event loop may need to notice that a connection was closed."""

C = TypeVar("C")


class LoopPool(ABC, Generic[C]):
    """Lends at most `size` connections to the calls of one event loop.

    Args:
        size: The most that are lent at once.
        acquire_timeout: Seconds to wait for one.
        where: The name of the database in messages.
        is_own: Whether the driver's pool is opened here, and is not the caller's.
    """

    def __init__(self, *, size: int, acquire_timeout: float, where: str, is_own: bool) -> None:
        self._size, self._acquire_timeout = size, acquire_timeout
        self._where, self._is_own = where, is_own
        self._loop = asyncio.get_running_loop()
        self._free = Turns(size, acquire_timeout, where)
        self._lent = 0
        self._closed = self._ended = False
        self._ending = until_the_loop_ends(self._end)
        if is_own:
            POOLS.add(self, where)

    @abstractmethod
    async def _take(self) -> C | None:
        """Take a connection of the driver's pool; `None` after closing one that is of no use."""

    @abstractmethod
    async def _put(self, connection: C) -> None:
        """Give a connection back to the driver's pool, with nothing uncommitted."""

    @abstractmethod
    def _opened(self) -> int:
        """Return the number of open connections."""

    @abstractmethod
    async def _shut(self) -> None:
        """Close the driver's pool, of which nothing is lent."""

    @abstractmethod
    async def _stop(self) -> None:
        """Close the driver's pool at once: the event loop ends."""

    @abstractmethod
    def abandon(self) -> None:
        """Close the connections opened here without their event loop, which does not run."""

    def use(self) -> PoolUse:
        """Return the use of the connections now."""
        idle = 0 if self._closed else max(0, self._opened() - self._lent)
        return PoolUse(self._lent, idle, self._size, self._free.waiting)

    async def open(self) -> None:
        """Open the first connection, and close all when the event loop ends, at the latest."""
        try:
            await self.release(await self.acquire())
        except BaseException:
            await self._end()
            raise
        await anext(self._ending)

    async def acquire(self) -> C:
        """Return a connection that nobody else has, and that the server has not closed.

        Raises:
            BackendUnavailableError: None came back in time.
            BackendClosedError: The pool was closed.
        """
        await self._free.take()
        self._lent += 1
        try:
            while not self._closed:
                connection = await self._take()
                if connection is not None:
                    return connection
        except BaseException:
            self._give_place()
            raise
        self._give_place()
        raise BackendClosedError(f"{self._where}: used after close()")

    async def release(self, connection: C) -> None:
        """Take a connection back; whoever is cancelled meanwhile does not wait for it."""
        try:
            await self._put(connection)
        finally:
            self._give_place()

    def _give_place(self) -> None:
        self._lent -= 1
        if not self._loop.is_closed():
            self._free.release()

    async def close(self) -> None:
        """Refuse the calls that wait, let running calls end, and close what was opened here.

        Whoever is cancelled meanwhile does not wait for running calls: they lose their connections.
        """
        self._closed = True
        # One place more: each call that waits hands it on to the next one, and is refused.
        self._free.release()
        try:
            for _ in range(self._size + 1):
                await self._free.acquire()
            if self._is_own:
                await self._shut()
        finally:
            await self._ending.aclose()

    async def _end(self) -> None:
        """Close the connections because the event loop ends."""
        self._closed = self._ended = True
        if self._is_own:
            with contextlib.suppress(Exception):
                await self._stop()
            for _ in range(TURNS):
                await asyncio.sleep(0)

    def has_ended(self) -> bool:
        """Return whether the connections were closed because the event loop ended."""
        return self._ended
