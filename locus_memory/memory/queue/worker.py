"""The worker: handles the jobs of a thread in order, and several threads at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import Context, copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from locus_memory._internal.cancellation import is_being_cancelled
from locus_memory._internal.running.live import QUEUES
from locus_memory.errors import LocusMemoryError
from locus_memory.events import emit, uncollected
from locus_memory.memory.moments import read_moment
from locus_memory.memory.options import ExtractionOptions
from locus_memory.memory.queue.lease import Lease
from locus_memory.memory.queue.queue import ExtractionQueue, Job, Outcome, Waiting
from locus_memory.store.encoding import decode_namespace
from locus_memory.store.item import Namespace

__all__ = ["EAGER", "Pace", "Worker"]

_SLACK: Final = 10.0
"""Seconds that a lease lasts beyond the extractor's limit: to save the memories."""

_AT_ONCE: Final = 4
"""How many threads are extracted from at the same time in the background."""

_BACKOFF: Final = 4

_ENDLESS: Final = 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """When a worker handles the jobs of a thread.

    Attributes:
        by_session: A thread is handled once it was quiet for `batch_quiet`, or once another thread
            of the same scope has a job, whichever process queued these jobs; and no job is ever
            dropped.
        is_manual: Nothing is handled until `drain` insists on it.
        least: With `by_session`: the characters of a thread's waiting jobs from which `close`
            handles it. With fewer, it may go on in the next process.
    """

    by_session: bool = False
    is_manual: bool = False
    least: int = 0


EAGER: Final = Pace()
"""A thread is handled at once, or as soon as enough of its messages wait."""


class Worker:
    """A worker that handles jobs in tasks of the running event loop: at most one per thread.

    All waiting jobs of a thread are handled together. A job leaves the queue when it is done or
    has failed too often. If the process ends before, the job is still queued at the next start.

    Args:
        queue: The jobs.
        handle: Does the work of the jobs of one thread, and raises its errors. Its outcome is
            written together with the deletion of the jobs; `None`: everything is written already,
            unless the queue does not hold the jobs any more.
        options: When a thread is extracted from, and how long that may take.
        clock: Returns seconds since the epoch.
        pace: When a thread is handled.
        note: Reads of a job that `close` leaves what the next process has to know; `None`: nothing.
    """

    def __init__(
        self,
        queue: ExtractionQueue,
        handle: Callable[[Sequence[Job]], Awaitable[Outcome | None]],
        options: ExtractionOptions,
        *,
        clock: Callable[[], float],
        pace: Pace = EAGER,
        note: Callable[[Job], Awaitable[None]] | None = None,
    ) -> None:
        self._queue = queue
        self._handle = handle
        self._options = options
        self._clock = clock
        self._pace = pace
        self._note = note
        # The thread of each scope that got the last job.
        self._latest: dict[Namespace, str] = {}
        # The threads that got a job in this process.
        self._own: set[str] = set()
        self._insisted: set[str] = set()
        self._parked: set[str] = set()
        self._known: dict[str, set[str]] = {}
        self._failed: set[str] = set()
        self._closing = False
        self._closed = False
        self._started = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._forced: set[str] = set()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._pauses: dict[str, float] = {}
        self._slots: AbstractAsyncContextManager[Any] = nullcontext()
        QUEUES.add(self, "extraction")

    @property
    def pending(self) -> int:
        """The number of jobs that wait or run, as far as this process knows."""
        return sum(map(len, self._known.values()))

    async def start(self) -> None:
        """Take up the jobs that other processes left; only once per event loop.

        With `by_session`, the newest thread of a scope may go on: it is handled once it was quiet
        for as long as `batch_quiet`, counted from its last job. The other threads are over.
        """
        self._bind()
        if self._started:
            return
        self._started = True
        found: Mapping[str, Waiting] | None = None
        try:
            found = await self._find()
        finally:
            self._started = found is not None
        if not self._pace.is_manual:
            self._take_up(found or {})

    def add(self, job: Job, *, is_awaited: bool = False) -> asyncio.Task[None] | None:
        """Take up a job that was just queued; returns the task that handles its thread.

        Args:
            job: The job.
            is_awaited: Whether the work is part of the run that queued the job.
        """
        self._known.setdefault(job.lane, set()).add(job.key)
        if not self._pace.by_session:
            return self._wake(job.lane, context=copy_context() if is_awaited else None)
        self._bind()
        self._own.add(job.lane)
        self.end_others(job.namespace, job.lane)
        self._latest[job.namespace] = job.lane
        self._wake_later(job.lane)
        return None

    def end_others(self, namespace: Namespace, lane: str) -> asyncio.Task[None] | None:
        """Handle the last session of a scope, unless it is this one; returns the task, if any.

        Args:
            namespace: The scope.
            lane: The session that begins or goes on.
        """
        before = self._latest.get(namespace, lane)
        if self._pace.is_manual or before == lane or before not in self._known:
            return None
        return self._wake(before, forced=True)

    async def drain(self, scope: Namespace | None = None, *, insists: bool = False) -> int:
        """Try all waiting jobs, and wait for them; returns how many jobs still wait.

        A failed job waits for the next time.

        Args:
            scope: Only the jobs of this scope; `None`: all.
            insists: Also try jobs that the pace leaves alone, and jobs that ended their process
                at each attempt.
        """
        self._bind()
        await self._find()
        if insists or not self._pace.is_manual:
            for lane in [each for each in self._known if _is_in(each, scope)]:
                if insists:
                    self._insisted.add(lane)
                self._wake(lane, forced=True)
        await self._settle()
        return sum(len(names) for lane, names in self._known.items() if _is_in(lane, scope))

    async def flush(self, lane: str) -> None:
        """Try the waiting jobs of a thread now, and wait for them."""
        if not self._pace.is_manual:
            task = self._wake(lane, forced=True)
            if task is not None:
                await asyncio.wait([task])

    async def close(self, timeout: float) -> None:  # noqa: ASYNC109 - a bound, then clean up
        """Handle what may not wait for at most `timeout` seconds; unfinished jobs stay queued.

        That is everything, or with `by_session` the threads that are quiet and those that got a
        job in this process and have the `least` characters. A shorter one is left: the next
        process may go on with it, so that its parts are handled together, and a part that is too
        short for the work is not handled in vain. Once nothing follows, the first process to
        start after `batch_quiet` handles it.
        """
        self._closing = True
        try:
            if self._known or self._started:
                async with asyncio.timeout(timeout):
                    await self._finish()
        except TimeoutError as error:
            emit("memory.drain_timeout", error=error, pending=self.pending)
        finally:
            self._closed = True
            self._stop_timers()
            running = self._running()
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _finish(self) -> None:
        if not self._pace.by_session:
            await self.drain()
        elif not self._pace.is_manual:
            self._bind()
            for lane in list(self._known):
                self._wake(lane)
            await self._settle()

    async def _settle(self) -> None:
        """Wait until no thread is handled any more."""
        while running := self._running():
            await asyncio.wait(running)

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

    async def _find(self) -> Mapping[str, Waiting] | None:
        """Find the jobs in the store; `None`: that failed."""
        try:
            found = await self._queue.lanes()
        except Exception as error:  # noqa: BLE001 - reported; it is tried again at the next run
            emit("memory.queue_failed", error=error)
            return None
        for lane, each in found.items():
            self._known[lane] = self._known.get(lane, set()) | each.keys
        return found

    def _take_up(self, found: Mapping[str, Waiting]) -> None:
        """Wake the threads found in the store, but those that may go on later."""
        pauses = {lane: self._rest(each.queued_at) for lane, each in found.items()}
        going_on = (lane for lane in found if pauses[lane] > 0 and self._pace.by_session)
        for lane in sorted(going_on, key=lambda lane: found[lane].queued_at or ""):
            self._latest[_scope_of(lane)] = lane
        for lane in self._known:
            if lane in found and lane == self._latest.get(_scope_of(lane)):
                self._pauses[lane] = pauses[lane]
                self._wake_later(lane)
            else:
                self._wake(lane, forced=lane in found or not self._pace.by_session)

    def _rest(self, queued_at: str | None) -> float:
        """Return for how many seconds a session may go on whose last job is of a moment.

        A moment in the future says nothing: another clock is wrong.
        """
        moment = read_moment(queued_at)
        quiet = self._options.batch_quiet
        waited = quiet if moment is None else self._clock() - moment.timestamp()
        return 0.0 if abs(waited) >= quiet else min(quiet - waited, quiet)

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
        if not (self._closed or self._pace.is_manual):
            # Another process may have queued a job of the session meanwhile.
            wake = partial(self._wake, lane, forced=not self._pace.by_session)
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
            self._insisted.discard(lane)
            self._tasks.pop(lane, None)
            if self._known.get(lane):
                self._wake_later(lane)

    async def _step(self, lane: str) -> bool:
        """Handle the waiting jobs of a thread; returns whether there may be more."""
        jobs = await self._queue.waiting(lane)
        self._known[lane] = {job.key for job in jobs}
        if not jobs:
            self._leave(lane)
            return False
        if not (lane in self._forced or self._is_over(lane, jobs)):
            await self._note_left(lane, jobs)
            return False
        if self._is_parked(lane, jobs[0]):
            return False
        now = self._clock()
        with Lease(now + self._options.extract_timeout + _SLACK) as lease:
            head = await self._queue.claim(jobs[0], lease, now)
            return head is not None and await self._attempt(lane, [head, *jobs[1:]])

    def _is_over(self, lane: str, jobs: Sequence[Job]) -> bool:
        """Return whether the jobs of a thread are to be handled, though nothing demands it."""
        if not self._pace.by_session:
            waiting = sum(len(job.messages) for job in jobs)
            return waiting >= self._options.batch_messages
        rest = self._rest(jobs[-1].queued_at)
        if rest == 0:
            return True
        if self._closing and lane in self._own:
            return sum(job.characters for job in jobs) >= self._pace.least
        self._pauses[lane] = rest
        return False

    async def _note_left(self, lane: str, jobs: Sequence[Job]) -> None:
        """Note jobs of this process that `close` leaves."""
        if self._note is None or not self._closing or lane not in self._own:
            return
        try:
            for job in jobs:
                await self._note(job)
        except Exception as error:  # noqa: BLE001 - reported; the end of the session reads them
            emit("memory.extract_failed", error=error, thread=jobs[0].thread, attempts=0)

    def _leave(self, lane: str) -> None:
        """Forget a thread without jobs."""
        self._known.pop(lane, None)
        self._own.discard(lane)
        scope = _scope_of(lane)
        if self._latest.get(scope) == lane:
            del self._latest[scope]

    def _is_parked(self, lane: str, job: Job) -> bool:
        """Return whether a job waits until somebody insists: each attempt ended its process."""
        spent = job.attempts >= self._options.max_attempts and job.lease is not None
        if not (self._pace.by_session and spent) or lane in self._insisted:
            return False
        if lane not in self._parked:
            self._parked.add(lane)
            error = LocusMemoryError("the process ended during each attempt")
            emit("memory.extract_parked", error=error, thread=job.thread, attempts=job.attempts)
        return True

    async def _attempt(self, lane: str, jobs: Sequence[Job]) -> bool:
        head = jobs[0]
        if head.attempts > self._options.max_attempts and not self._pace.by_session:
            # Each attempt ended its process, and another one would too.
            await self._queue.finish([head])
            self._drop(lane, [head], LocusMemoryError("the process ended during each attempt"))
            return True
        try:
            outcome = await self._handle(jobs)
        except (GeneratorExit, KeyboardInterrupt):
            # Nothing can be awaited after these errors.
            raise
        except BaseException as error:
            if is_being_cancelled():
                await self._give_back(head)
                raise
            await self._fail(lane, jobs, error)
            return False
        done = await self._finished(jobs) if outcome is None else await self._complete(outcome)
        if not done:
            # Others have the jobs or erased some of them: see what is left.
            return True
        self._known[lane] -= {job.key for job in done}
        self._retry()
        if not self._pace.by_session:
            return True
        if not self._known[lane]:
            self._leave(lane)
        # A session that goes on meanwhile waits for its next pause.
        return len(done) < len(jobs)

    async def _finished(self, jobs: Sequence[Job]) -> Sequence[Job]:
        """Delete jobs whose results are written; returns them, or none if others have them now."""
        if not await self._queue.holds(jobs):
            return ()
        await self._queue.finish(jobs)
        return jobs

    async def _complete(self, outcome: Outcome) -> Sequence[Job]:
        """Write an outcome; returns its jobs, or none if another process has them now."""
        if not await self._queue.complete(outcome):
            return ()
        outcome.written()
        return outcome.jobs

    async def _fail(self, lane: str, jobs: Sequence[Job], error: BaseException) -> None:
        attempts = jobs[0].attempts
        emit("memory.extract_failed", error=error, thread=jobs[0].thread, attempts=attempts)
        self._failed.add(lane)
        most = self._options.max_attempts
        steps = min(attempts, most) if self._pace.by_session else attempts
        self._pauses[lane] = self._options.batch_quiet * _BACKOFF ** (steps - 1)
        spent = await self._queue.fail(jobs, _ENDLESS if self._pace.by_session else most)
        self._drop(lane, spent, error)

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
        if self._pace.is_manual:
            return
        for lane in list(self._failed):
            self._failed.discard(lane)
            self._wake(lane, forced=self._pace.by_session)


def _scope_of(lane: str) -> Namespace:
    return decode_namespace(lane)[:-1]


def _is_in(lane: str, scope: Namespace | None) -> bool:
    return scope is None or _scope_of(lane) == scope
