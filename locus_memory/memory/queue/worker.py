"""The worker: handles the jobs of a thread in order, and several threads at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import Context, copy_context
from functools import partial
from typing import Any, Final

from locus_memory._internal.cancellation import is_being_cancelled
from locus_memory.errors import LocusMemoryError
from locus_memory.events import emit, uncollected
from locus_memory.memory.options import ExtractionOptions
from locus_memory.memory.queue.lease import Lease
from locus_memory.memory.queue.queue import ExtractionQueue, Job

__all__ = ["Worker"]

_SLACK: Final = 10.0
"""Seconds that a lease lasts beyond the extractor's limit: to save the memories."""

_AT_ONCE: Final = 4
"""How many threads are extracted from at the same time in the background."""

_BACKOFF: Final = 4


class Worker:
    """A worker that handles jobs in tasks of the running event loop: at most one per thread.

    All waiting jobs of a thread are handled together. A job leaves the queue when it is done or
    has failed too often. If the process ends before, the job is still queued at the next start.

    Args:
        queue: The jobs.
        handle: Does the work of the jobs of one thread, and raises its errors.
        options: When a thread is extracted from, and how long that may take.
        clock: Returns seconds since the epoch.
    """

    def __init__(
        self,
        queue: ExtractionQueue,
        handle: Callable[[Sequence[Job]], Awaitable[None]],
        options: ExtractionOptions,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._queue = queue
        self._handle = handle
        self._options = options
        self._clock = clock
        self._known: dict[str, set[str]] = {}
        self._failed: set[str] = set()
        self._closed = False
        self._started = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._forced: set[str] = set()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._pauses: dict[str, float] = {}
        self._slots: AbstractAsyncContextManager[Any] = nullcontext()

    @property
    def pending(self) -> int:
        """The number of jobs that wait or run, as far as this process knows."""
        return sum(map(len, self._known.values()))

    async def start(self) -> None:
        """Take up the jobs that an earlier process left; only once per event loop."""
        self._bind()
        if self._started:
            return
        self._started = True
        taken_up = False
        try:
            taken_up = await self._take_up()
        finally:
            self._started = taken_up

    def add(self, job: Job, *, is_awaited: bool = False) -> asyncio.Task[None] | None:
        """Take up a job that was just queued; returns the task that handles its thread.

        Args:
            job: The job.
            is_awaited: Whether the work is part of the run that queued the job.
        """
        self._known.setdefault(job.lane, set()).add(job.key)
        return self._wake(job.lane, context=copy_context() if is_awaited else None)

    async def drain(self) -> int:
        """Try all waiting jobs, and wait for them; returns how many jobs still wait.

        A failed job waits for the next time.
        """
        self._bind()
        await self._take_up()
        for lane in list(self._known):
            self._wake(lane, forced=True)
        while running := self._running():
            await asyncio.wait(running)
        return self.pending

    async def close(self, timeout: float) -> None:  # noqa: ASYNC109 - a bound, then clean up
        """Drain for at most `timeout` seconds; unfinished jobs stay queued."""
        try:
            if self._known or self._started:
                async with asyncio.timeout(timeout):
                    await self.drain()
        except TimeoutError as error:
            emit("memory.drain_timeout", error=error, pending=self.pending)
        finally:
            self._closed = True
            self._stop_timers()
            running = self._running()
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def _running(self) -> list[asyncio.Task[None]]:
        return [task for task in self._tasks.values() if not task.done()]

    def _bind(self) -> None:
        """Start over in another event loop: the tasks of a loop that ended never continue."""
        loop = asyncio.get_running_loop()
        if loop is self._loop:
            return
        self._loop = loop
        self._tasks, self._again, self._forced, self._timers = {}, set(), set(), {}
        self._started = False
        inline = self._options.extract_mode == "inline"
        self._slots = nullcontext() if inline else asyncio.Semaphore(_AT_ONCE)

    async def _take_up(self) -> bool:
        """Find jobs in the store and wake their threads; returns whether that worked."""
        try:
            keys = await self._queue.names()
        except Exception as error:  # noqa: BLE001 - reported; it is tried again at the next run
            emit("memory.queue_failed", error=error)
            return False
        for lane, names in _by_lane(keys).items():
            self._known[lane] = self._known.get(lane, set()) | names
            self._wake(lane, forced=True)
        return True

    def _wake(
        self, lane: str, *, forced: bool = False, context: Context | None = None
    ) -> asyncio.Task[None] | None:
        if self._closed:
            return None
        self._bind()
        if forced:
            self._forced.add(lane)
        task = self._tasks.get(lane)
        if task is not None and not task.done():
            self._again.add(lane)
            return task
        task = asyncio.create_task(
            self._work(lane), name="locus-memory-extraction", context=context or uncollected()
        )
        self._tasks[lane] = task
        return task

    def _wake_later(self, lane: str) -> None:
        """Wake a thread once it has been quiet long enough; a new job delays that."""
        self._stop_timer(lane)
        if not self._closed:
            wake = partial(self._wake, lane, forced=True)
            pause = self._pauses.pop(lane, self._options.batch_quiet)
            self._timers[lane] = asyncio.get_running_loop().call_later(pause, wake)

    def _stop_timer(self, lane: str) -> None:
        timer = self._timers.pop(lane, None)
        if timer is not None:
            timer.cancel()

    def _stop_timers(self) -> None:
        for lane in list(self._timers):
            self._stop_timer(lane)

    async def _work(self, lane: str) -> None:
        self._failed.discard(lane)
        self._stop_timer(lane)
        try:
            async with self._slots:
                more = True
                while more:
                    self._again.discard(lane)
                    done = await self._step(lane)
                    more = done or (lane in self._again and lane not in self._failed)
        except Exception as error:  # noqa: BLE001 - reported; the jobs stay in the store
            emit("memory.queue_failed", error=error)
            self._failed.add(lane)
        finally:
            self._forced.discard(lane)
            self._tasks.pop(lane, None)
            if self._known.get(lane):
                self._wake_later(lane)

    async def _step(self, lane: str) -> bool:
        """Handle the waiting jobs of a thread; returns whether there may be more."""
        jobs = await self._queue.waiting(lane)
        self._known[lane] = {job.key for job in jobs}
        if not jobs:
            del self._known[lane]
            return False
        waiting = sum(len(job.messages) for job in jobs)
        if waiting < self._options.batch_messages and lane not in self._forced:
            return False
        now = self._clock()
        with Lease(now + self._options.extract_timeout + _SLACK) as lease:
            head = await self._queue.claim(jobs[0], lease, now)
            return head is not None and await self._attempt(lane, [head, *jobs[1:]])

    async def _attempt(self, lane: str, jobs: Sequence[Job]) -> bool:
        head = jobs[0]
        if head.attempts > self._options.max_attempts:
            # Each attempt ended its process, and another one would too.
            await self._queue.finish([head])
            self._drop(lane, [head], LocusMemoryError("the process ended during each attempt"))
            return True
        try:
            await self._handle(jobs)
        except (GeneratorExit, KeyboardInterrupt):
            # Nothing can be awaited after these errors.
            raise
        except BaseException as error:
            if is_being_cancelled():
                await self._give_back(head)
                raise
            await self._fail(lane, jobs, error)
            return False
        await self._queue.finish(jobs)
        self._known[lane] -= {job.key for job in jobs}
        self._retry()
        return True

    async def _fail(self, lane: str, jobs: Sequence[Job], error: BaseException) -> None:
        attempts = jobs[0].attempts
        emit("memory.extract_failed", error=error, thread=jobs[0].thread, attempts=attempts)
        self._failed.add(lane)
        self._pauses[lane] = self._options.batch_quiet * _BACKOFF ** (attempts - 1)
        self._drop(lane, await self._queue.fail(jobs, self._options.max_attempts), error)

    async def _give_back(self, job: Job) -> None:
        try:
            await self._queue.give_back(job)
        except Exception as error:  # noqa: BLE001 - reported; the lease ends by itself
            emit("memory.queue_failed", error=error)

    def _drop(self, lane: str, jobs: Iterable[Job], error: BaseException) -> None:
        for job in jobs:
            self._known[lane].discard(job.key)
            emit(
                "memory.extract_dropped",
                error=error,
                thread=job.thread,
                messages=len(job.messages),
                message_ids=job.message_ids,
                attempts=job.attempts,
            )

    def _retry(self) -> None:
        """Wake the threads that failed: after one success, others may succeed too."""
        for lane in list(self._failed):
            self._failed.discard(lane)
            self._wake(lane)


def _by_lane(keys: Iterable[str]) -> dict[str, set[str]]:
    lanes: dict[str, set[str]] = {}
    for key in keys:
        lanes.setdefault(Job.lane_of(key), set()).add(key)
    return lanes
