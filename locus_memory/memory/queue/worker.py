"""The worker: handles the jobs of a thread in order, and several threads at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import Context, copy_context
from functools import partial
from typing import Any, Final

from locus_memory._internal.cancellation import is_being_cancelled
from locus_memory._internal.running.live import QUEUES
from locus_memory.errors import LocusMemoryError
from locus_memory.events import emit, uncollected
from locus_memory.memory.queue.allowance import Allowance
from locus_memory.memory.queue.company import company_of
from locus_memory.memory.queue.jobs import Job, Outcome, Waiting
from locus_memory.memory.queue.lease import Lease
from locus_memory.memory.queue.lounge import Lounge, scope_of
from locus_memory.memory.queue.pace import Pace, rest_of
from locus_memory.memory.queue.queue import ExtractionQueue
from locus_memory.store.item import Namespace

__all__ = ["Worker"]

_SLACK: Final = 10.0
"""Seconds that a lease lasts beyond the extractor's limit: to save the memories."""

_AT_ONCE: Final = 4
"""How many threads are extracted from at the same time in the background."""

_MOST_ATTEMPTS: Final = 5
"""How often an extraction that fails is tried."""

_BACKOFF: Final = 4

_ENDLESS: Final = 2**31


class Worker:
    """A worker that handles jobs in tasks of the running event loop: at most one per thread.

    All waiting jobs of a thread are handled together, and with a `least`, short sessions of a scope
    as well: they wait for one another, or for a longer one, until `drain` or `close`. A job leaves
    the queue when it is done or has failed too often. If the process ends before, the job is still
    queued at the next start.

    Args:
        queue: The jobs.
        handle: Does the work of jobs, those of a thread together, and raises its errors. Its
            outcome is written together with the deletion of the jobs.
        pace: When a thread is handled, and how long that may take.
        clock: Returns seconds since the epoch.
        allowance: The calls and tokens a day, where no run waits; `None`: any number.
    """

    def __init__(
        self,
        queue: ExtractionQueue,
        handle: Callable[[Sequence[Job]], Awaitable[Outcome]],
        pace: Pace,
        clock: Callable[[], float],
        allowance: Allowance | None = None,
    ) -> None:
        self._queue = queue
        self._handle = handle
        self._clock = clock
        self._pace = pace
        self._allowance = allowance
        # The thread of each scope that got the last job.
        self._latest: dict[Namespace, str] = {}
        # The threads that got a job in this process.
        self._own: set[str] = set()
        self._insisted: set[str] = set()
        self._parked: set[str] = set()
        # The jobs of each thread, with their characters.
        self._known: dict[str, dict[str, int]] = {}
        self._lounge = Lounge()
        # The threads of the calls under way.
        self._busy: set[str] = set()
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
        self._forming: AbstractAsyncContextManager[Any] = nullcontext()
        QUEUES.add(self, "extraction")

    @property
    def pending(self) -> int:
        """The number of jobs that wait or run, as far as this process knows."""
        return sum(map(len, self._known.values()))

    async def start(self) -> None:
        """Take up the jobs that other processes left; only once per event loop.

        With `by_session`, the newest thread of a scope may go on: it is handled once it was quiet
        for as long as `Pace.quiet`, counted from its last job. The other threads are over.
        """
        self._bind()
        if self._started:
            if not self._pace.is_manual:
                self._demand(self._lounge.ended(self._clock()))
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
        self._known.setdefault(job.lane, {})[job.key] = job.characters
        if not self._pace.by_session:
            return self._wake(job.lane, context=copy_context() if is_awaited else None)
        self._bind()
        self._own.add(job.lane)
        self._lounge.drop(job.lane)
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
            lanes = [each for each in self._known if _is_in(each, scope)]
            insisted = lanes if insists else ()
            self._insisted.update(insisted)
            await self._urge(lanes)
            self._insisted.difference_update(insisted)
        await self._settle()
        return sum(len(names) for lane, names in self._known.items() if _is_in(lane, scope))

    async def flush(self, lane: str) -> None:
        """Try the waiting jobs of a thread now, and wait for them."""
        if not self._pace.is_manual:
            task = self._wake(lane, forced=True)
            if task is not None:
                await asyncio.wait([task])

    async def close(self, timeout: float) -> None:  # noqa: ASYNC109 - a bound, then clean up
        """Handle what waits for at most `timeout` seconds; unfinished jobs stay queued.

        With `by_session`, a session that only other processes know is left if it may go on.
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
            for lane in list(self._timers):
                self._stop_timer(lane)
            running = self._running()
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _finish(self) -> None:
        if not self._pace.by_session:
            await self.drain()
        elif not self._pace.is_manual:
            self._bind()
            await self._urge(self._ours())
            for lane in self._known.keys() - self._failed:
                self._wake(lane)
            await self._settle()
            await self._urge([lane for lane in self._ours() if lane not in self._failed])

    def _ours(self) -> list[str]:
        """Return the threads that `close` handles, whenever their last turn was."""
        ends = self._lounge.end
        return [lane for lane in self._known if lane in self._own or ends(lane) is not None]

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
        self._slots = nullcontext() if self._pace.is_inline else asyncio.Semaphore(_AT_ONCE)
        self._forming = asyncio.Lock() if self._pace.least else nullcontext()

    async def _find(self) -> Mapping[str, Waiting] | None:
        """Find the jobs in the store; `None`: that failed."""
        try:
            found = await self._queue.lanes()
        except Exception as error:  # noqa: BLE001 - reported; it is tried again at the next run
            emit("memory.queue_failed", error=error)
            return None
        for lane, each in found.items():
            self._known[lane] = self._known.get(lane, {}) | each.keys
        return found

    def _take_up(self, found: Mapping[str, Waiting]) -> None:
        """Wake the threads found in the store, but those that may go on later."""
        quiet, now = self._pace.quiet, self._clock()
        pauses = {lane: rest_of(each.queued_at, quiet, now) for lane, each in found.items()}
        going_on = (lane for lane in found if pauses[lane] > 0 and self._pace.by_session)
        for lane in sorted(going_on, key=lambda lane: found[lane].queued_at or ""):
            self._latest[scope_of(lane)] = lane
        for lane in sorted(self._known, key=self._is_short):
            if lane in found and lane == self._latest.get(scope_of(lane)):
                self._pauses[lane] = pauses[lane]
                self._wake_later(lane)
            else:
                self._wake(lane, forced=lane in found or not self._pace.by_session)

    async def _urge(self, lanes: Sequence[str]) -> None:
        """Handle threads; the long ones first, so that they take the short ones along."""
        self._failed.difference_update(lanes)
        short = [lane for lane in lanes if self._is_short(lane)]
        for lane in short:
            if self._lounge.end(lane) is None:
                self._lounge.put(lane, self._clock() + self._pace.longest)
        for lane in lanes:
            if not self._is_short(lane):
                self._wake(lane, forced=True)
        await self._settle()
        self._demand([lane for lane in short if lane not in self._failed])
        await self._settle()

    def _demand(self, lanes: Sequence[str]) -> None:
        """Handle threads whose wait has ended."""
        waiting = [lane for lane in lanes if lane in self._known]
        for lane in waiting:
            self._lounge.put(lane, 0.0)
        for lane in waiting:
            self._wake(lane, forced=True)

    def _is_short(self, lane: str) -> bool:
        return sum(self._known.get(lane, {}).values()) < self._pace.least

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
        # From here on: a session that fails with another one is not tried again by itself.
        self._failed.discard(lane)
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
            pause = self._pauses.pop(lane, self._pace.quiet)
            self._timers[lane] = asyncio.get_running_loop().call_later(pause, wake)

    def _stop_timer(self, lane: str) -> None:
        timer = self._timers.pop(lane, None)
        if timer is not None:
            timer.cancel()

    async def _work(self, lane: str) -> None:
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
        now = self._clock()
        with Lease(now + self._pace.timeout + _SLACK) as lease:
            async with self._forming:
                sessions = await self._allowed(lane, await self._formed(lane, now))
                jobs = await self._queue.claim(sessions, lane, lease, now)
                self._busy.update(job.lane for job in jobs)
            try:
                return bool(jobs) and await self._attempt(lane, jobs)
            finally:
                self._busy.difference_update(job.lane for job in jobs)

    async def _formed(self, lane: str, now: float) -> list[list[Job]]:
        """Return the sessions to handle together now: a thread's, and short ones of its scope.

        The longest one, or else the newest, comes last.
        """
        if lane in self._busy:
            return []
        jobs = await self._load(lane)
        if not self._known[lane]:
            self._leave(lane)
        if not jobs:
            return []
        is_over = lane in self._forced or self._is_over(lane, jobs)
        if not is_over or lane in self._failed or self._is_parked(lane, jobs[0]):
            return []
        if not self._pace.least or jobs[0].is_ingested:
            return [jobs]
        others = [each for each in self._lounge.of(scope_of(lane)) if each not in self._busy]
        sessions = await company_of(lane, jobs, others, self._load, self._pace.least)
        return [] if await self._waits(lane, jobs, sessions, now) else sessions

    async def _allowed(self, lane: str, sessions: list[list[Job]]) -> list[list[Job]]:
        """Return the sessions, or none if the calls of today are used up and nobody insists."""
        if not sessions or self._allowance is None or lane in self._insisted:
            return sessions
        rest = self._pauses[lane] = await self._allowance.take()
        return [] if rest else sessions

    async def _load(self, lane: str) -> list[Job]:
        """Return a thread's jobs, but for those that were done while they were read."""
        before = set(self._known.get(lane, ()))
        found = await self._queue.waiting(lane)
        known = self._known.get(lane, {})
        jobs = [job for job in found if job.key in known or job.key not in before]
        new = {key: size for key, size in known.items() if key not in before}
        self._known[lane] = {job.key: job.characters for job in jobs} | new
        return jobs

    async def _waits(
        self, lane: str, jobs: Sequence[Job], sessions: Sequence[Sequence[Job]], now: float
    ) -> bool:
        """Return whether a session waits for others: it is short, with what may travel with it."""
        told = sum(job.characters for session in sessions for job in session)
        if told >= self._pace.least:
            return False
        end = now + rest_of(jobs[0].queued_at, self._pace.longest, now)
        known = self._lounge.end(lane)
        end = end if known is None else min(known, end)
        self._lounge.put(lane, end)
        self._pauses[lane] = end - now
        return end > now

    def _is_over(self, lane: str, jobs: Sequence[Job]) -> bool:
        """Return whether the jobs of a thread are to be handled, though nothing demands it."""
        if not self._pace.by_session:
            return True
        rest = rest_of(jobs[-1].queued_at, self._pace.quiet, self._clock())
        self._pauses[lane] = rest
        return rest == 0

    def _leave(self, lane: str) -> None:
        """Forget a thread without jobs."""
        self._known.pop(lane, None)
        self._own.discard(lane)
        self._lounge.drop(lane)
        self._stop_timer(lane)
        scope = scope_of(lane)
        if self._latest.get(scope) == lane:
            del self._latest[scope]

    def _is_parked(self, lane: str, job: Job) -> bool:
        """Return whether a job waits until somebody insists: each attempt ended its process."""
        spent = job.attempts >= _MOST_ATTEMPTS and job.lease is not None
        if not (self._pace.by_session and spent) or lane in self._insisted:
            return False
        if lane not in self._parked:
            self._parked.add(lane)
            error = LocusMemoryError("the process ended during each attempt")
            emit("memory.extract_parked", error=error, thread=job.thread, attempts=job.attempts)
        return True

    async def _attempt(self, lane: str, jobs: Sequence[Job]) -> bool:
        head = jobs[0]
        if head.attempts > _MOST_ATTEMPTS and not self._pace.by_session:
            # Each attempt ended its process, and another one would too.
            await self._queue.finish([head])
            self._drop([head], LocusMemoryError("the process ended during each attempt"))
            return True
        try:
            outcome = await self._handle(jobs)
        except (GeneratorExit, KeyboardInterrupt):
            # Nothing can be awaited after these errors.
            raise
        except BaseException as error:
            if is_being_cancelled():
                await self._give_back(jobs)
                raise
            await self._fail(lane, jobs, error)
            return False
        done = await self._complete(outcome)
        if not done:
            # Others have the jobs or erased some of them: see what is left.
            return True
        self._forget(done)
        self._retry()
        # A session that goes on meanwhile waits for its next pause.
        return len(done) < len(jobs) or not self._pace.by_session

    def _forget(self, done: Iterable[Job]) -> None:
        for job in done:
            known = self._known.get(job.lane, {})
            known.pop(job.key, None)
            if self._pace.by_session and not known:
                self._leave(job.lane)

    async def _complete(self, outcome: Outcome) -> Sequence[Job]:
        """Write an outcome; returns its jobs, or none if another process has them now."""
        if not await self._queue.complete(outcome):
            return ()
        outcome.written()
        return outcome.jobs

    async def _fail(self, lane: str, jobs: Sequence[Job], error: BaseException) -> None:
        head = next(job for job in jobs if job.lane == lane)
        emit("memory.extract_failed", error=error, thread=head.thread, attempts=head.attempts)
        self._failed.update(job.lane for job in jobs)
        steps = min(head.attempts, _MOST_ATTEMPTS)
        self._pauses[lane] = self._pace.quiet * _BACKOFF ** (steps - 1)
        spent = await self._queue.fail(jobs, _ENDLESS if self._pace.by_session else _MOST_ATTEMPTS)
        self._drop(spent, error)

    async def _give_back(self, jobs: Sequence[Job]) -> None:
        try:
            await self._queue.give_back(jobs)
        except Exception as error:  # noqa: BLE001 - reported; the lease ends by itself
            emit("memory.queue_failed", error=error)

    def _drop(self, jobs: Iterable[Job], error: BaseException) -> None:
        for job in jobs:
            self._known[job.lane].pop(job.key, None)
            job.report_dropped(error)

    def _retry(self) -> None:
        """Wake the threads that failed: after one success, others may succeed too."""
        if self._pace.is_manual:
            return
        for lane in list(self._failed):
            self._failed.discard(lane)
            self._wake(lane, forced=self._pace.by_session)


def _is_in(lane: str, scope: Namespace | None) -> bool:
    return scope is None or scope_of(lane) == scope
