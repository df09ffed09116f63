"""A schedule: a task in the background, from time to time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from locus_memory._internal.cancellation import raise_if_cancelled
from locus_memory.events import uncollected

__all__ = ["Schedule"]

_FIRST: Final = 60.0
_HOUR: Final = 3_600.0


class Schedule:
    """A schedule that looks for due work once a minute is over, and then from hour to hour.

    The work runs in a task of the event loop, at most once at a time. A timer wakes an idle
    process. `touch` compares the clock as well, so it is enough to move a clock by hand.

    Args:
        work: Does the work that is due. An error is reported, and the next time comes all the same.
        clock: Returns seconds since the epoch.
        hours: The shortest interval of the work.
        failed: Reports an error.
    """

    def __init__(
        self,
        work: Callable[[], Awaitable[object]],
        clock: Callable[[], float],
        hours: float,
        *,
        failed: Callable[[Exception], None],
    ) -> None:
        self._work = work
        self._clock = clock
        self._failed = failed
        self._every = min(hours * _HOUR, _HOUR)
        self._next = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def touch(self) -> None:
        """Start the work if it is time; call this from time to time, in the event loop."""
        if self._closed:
            return
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            # The task of a loop that ended never continues.
            self._loop, self._task = loop, None
            self._plan(_FIRST)
        is_at_work = self._task is not None and not self._task.done()
        if not is_at_work and self._clock() >= self._next:
            self._task = asyncio.create_task(
                self._run(), name="locus-memory-schedule", context=uncollected()
            )

    async def wait(self) -> None:
        """Wait for the work in progress, if there is any."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """End the work in progress; the next process finishes it."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None and self._loop is asyncio.get_running_loop():
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _plan(self, seconds: float) -> None:
        self._next = self._clock() + seconds
        if self._timer is not None:
            self._timer.cancel()
        if not self._closed:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._wake)

    def _wake(self) -> None:
        """Start the work, unless the clock says that it is not time."""
        if self._clock() < self._next:
            self._plan(self._next - self._clock())
        self.touch()

    async def _run(self) -> None:
        try:
            await self._work()
        except Exception as error:  # noqa: BLE001 - reported; the next time comes all the same
            raise_if_cancelled(error)
            self._failed(error)
        finally:
            self._plan(self._every)
