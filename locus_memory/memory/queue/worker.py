"""The worker: handles the jobs that wait, each thread's in order, and several at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from itertools import accumulate
from math import inf
from typing import Any, Final

from locus_memory._internal.cancellation import is_being_cancelled
from locus_memory._internal.running.lease import Lease
from locus_memory._internal.running.live import QUEUES
from locus_memory.errors import LocusMemoryError
from locus_memory.events import emit, uncollected
from locus_memory.memory.extraction.extraction import Extraction
from locus_memory.memory.extraction.thread import roles_and_texts
from locus_memory.memory.options import MemoryOptions
from locus_memory.memory.queue.jobs import Job, sessions_of
from locus_memory.memory.queue.pace import A_CALL, Allowance, Pace, Trip
from locus_memory.memory.queue.queue import ExtractionQueue
from locus_memory.store.item import Namespace

__all__ = ["Worker"]

_SLACK: Final = 10.0
"""Seconds that a lease lasts beyond the extractor's limit: to save the memories."""

_AT_ONCE: Final = 4
"""How many calls are made at the same time in the background."""

_MOST_ATTEMPTS: Final = 5
"""How often an extraction that fails, or ends its process, is tried."""

_BACKOFF: Final = 4

_ENDLESS: Final = 2**31


@dataclass(slots=True, eq=False)
class _Unit:
    """The threads that are looked at together: by session, those of a scope; by turn, a single one.

    Attributes:
        name: The scope, or the thread.
        namespace: Their scope.
        jobs: The keys of the jobs of each thread that wait, as far as this process knows. The
            thread that got a job last is the last one.
        own: The threads that got a job in this process.
        ended: The threads that are over at the next look, whatever the clock says.
        failed: The threads that failed, each with the loop's time at which it is tried again.
        insists: Whether also what waits for somebody is tried.
        again: Whether the threads are to be looked at once more.
        waits: What is set once a thread that somebody waits for was tried.
        task: The task that handles them.
        timer: When they are looked at next.
    """

    name: Namespace | str
    namespace: Namespace
    jobs: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    own: set[str] = field(default_factory=set[str])
    ended: set[str] = field(default_factory=set[str])
    failed: dict[str, float] = field(default_factory=dict[str, float])
    insists: bool = False
    again: bool = False
    waits: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])
    task: asyncio.Task[None] | None = None
    timer: asyncio.TimerHandle | None = None

    def keep(self, lane: str, keys: frozenset[str]) -> None:
        """Note which jobs of a thread are left; a thread without jobs is forgotten."""
        self.jobs[lane] = keys
        if not keys:
            del self.jobs[lane]
            self.own.discard(lane)

    def answer(self, lanes: Iterable[str]) -> None:
        """End the waits for threads."""
        for lane in self.waits.keys() & set(lanes):
            self.waits.pop(lane).set()

    def stop_timer(self) -> None:
        """Look at the threads only if something happens."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer = None


class Worker:
    """A worker that handles jobs in tasks of the running event loop: at most one per unit.

    The jobs that wait are read from the store, and the `pace` says which of them are handled now,
    and when to look again. All waiting jobs of a thread are handled together. A job leaves the
    queue when it is done or has failed too often. If the process ends before, the job is still
    queued at the next start.

    Args:
        queue: The jobs.
        work: Does the work of jobs, those of a thread together, and raises its errors. Its
            outcome is written together with the deletion of the jobs.
        options: When a thread is handled, and the calls and tokens a day, where no run waits.
        clock: Returns seconds since the epoch.
    """

    def __init__(
        self,
        queue: ExtractionQueue,
        work: Extraction,
        options: MemoryOptions,
        clock: Callable[[], float],
    ) -> None:
        self._queue = queue
        self._extraction = work
        self._pace = Pace.of(options, by_model=work.is_by_model, distils=work.distils)
        self._clock = clock
        most = None if self._pace.mode == "inline" else options.extraction_budget
        self._allowance = (
            None if most is None else Allowance(queue.store, queue.scope, *most, clock)
        )
        self._spent_on: int | None = None
        self._units: dict[Namespace | str, _Unit] = {}
        self._parked: set[str] = set()
        self._closed = False
        self._started = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._slots: AbstractAsyncContextManager[Any] = nullcontext()
        QUEUES.add(self, "extraction")

    @property
    def pending(self) -> int:
        """The number of jobs that wait or run, as far as this process knows."""
        return self._pending(list(self._units.values()))

    async def start(self) -> None:
        """Take up the jobs that other processes left; only once per event loop."""
        self._bind()
        if self._started:
            return
        self._started, found = True, False
        try:
            found = await self._find(self._queue.reads)
        finally:
            self._started = found
        for unit in list(self._units.values()):
            self._wake(unit)

    def add(self, job: Job) -> asyncio.Task[None] | None:
        """Take up a job that was just queued; inline, returns the task for which the run waits."""
        unit = self._unit_of(job.namespace, job.lane)
        newest = next(reversed(unit.jobs), job.lane)
        unit.jobs[job.lane] = unit.jobs.pop(job.lane, frozenset()) | {job.key}
        unit.own.add(job.lane)
        unit.failed.pop(job.lane, None)
        if self._pace.by_session and newest == job.lane:
            self._later(unit, self._pace.quiet)
            return None
        is_inline = self._pace.mode == "inline"
        task = self._wake(unit, copy_context() if is_inline else None)
        return task if is_inline else None

    async def drain(self, scope: Namespace | None = None, *, insists: bool = False) -> int:
        """Try all waiting jobs, and wait for them; returns how many jobs still wait.

        A failed job waits for the next time.

        Args:
            scope: Only the jobs of this scope; `None`: all.
            insists: Also try jobs that the pace leaves alone, jobs that ended their process at
                each attempt, and jobs that wait for an extractor that this process does not have.
        """
        self._bind()
        await self._find(
            lambda job: self._queue.reads(job) or (insists and scope in (None, job.namespace))
        )
        for unit in self._units_of(scope):
            unit.insists |= insists
            self._end(unit, unit.jobs)
        await self._settle()
        return self._pending(self._units_of(scope))

    async def flush(self, namespace: Namespace, lane: str) -> None:
        """Try the waiting jobs of a thread of a scope now, and wait for them."""
        if self._pace.mode == "manual":
            return
        unit = self._unit_of(namespace, lane)
        unit.jobs.setdefault(lane, frozenset())
        if self._end(unit, [lane]) is not None:
            await unit.waits.setdefault(lane, asyncio.Event()).wait()

    async def close(self, timeout: float) -> None:  # noqa: ASYNC109 - a bound, then clean up
        """Handle what waits for at most `timeout` seconds; unfinished jobs stay queued.

        By session, a session that only other processes know is left if it may go on.
        """
        self._pace = replace(self._pace, longest=0.0)
        try:
            async with asyncio.timeout(timeout):
                self._bind()
                for unit in self._units_of(None):
                    self._end(unit, unit.own)
                await self._settle()
        except TimeoutError as error:
            emit("memory.drain_timeout", error=error, pending=self.pending)
        finally:
            self._closed = True
            for unit in self._units_of(None):
                unit.stop_timer()
            running = self._running()
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def _unit_of(self, namespace: Namespace, lane: str) -> _Unit:
        name = namespace if self._pace.by_session else lane
        return self._units.setdefault(name, _Unit(name, namespace))

    def _units_of(self, scope: Namespace | None) -> list[_Unit]:
        return [unit for unit in self._units.values() if scope in (None, unit.namespace)]

    @staticmethod
    def _pending(units: Iterable[_Unit]) -> int:
        return sum(len(keys) for unit in units for keys in list(unit.jobs.values()))

    async def _settle(self) -> None:
        """Wait until no thread is handled any more."""
        while running := self._running():
            await asyncio.wait(running)

    def _running(self) -> list[asyncio.Task[None]]:
        return [unit.task for unit in self._units.values() if unit.task is not None]

    def _bind(self) -> None:
        """Start over in another event loop: the tasks of a loop that ended never continue."""
        loop = asyncio.get_running_loop()
        if loop is self._loop:
            return
        self._loop, self._started = loop, False
        for unit in self._units.values():
            unit.task = unit.timer = None
            unit.waits.clear()
        self._slots = nullcontext() if self._pace.mode == "inline" else asyncio.Semaphore(_AT_ONCE)

    async def _find(self, takes: Callable[[Job], bool]) -> bool:
        """Find the jobs in the store that are to be handled here; returns whether that worked."""
        try:
            async for job in self._queue.jobs():
                if takes(job):
                    unit = self._unit_of(job.namespace, job.lane)
                    unit.keep(job.lane, unit.jobs.get(job.lane, frozenset()) | {job.key})
        except Exception as error:  # noqa: BLE001 - reported; it is tried again at the next run
            emit("memory.queue_failed", error=error)
            return False
        return True

    def _end(self, unit: _Unit, lanes: Iterable[str]) -> asyncio.Task[None] | None:
        """Handle threads as if they were over, and what failed once more."""
        unit.ended.update(lanes)
        unit.failed.clear()
        return self._wake(unit)

    def _wake(self, unit: _Unit, context: Context | None = None) -> asyncio.Task[None] | None:
        """Look at threads now; returns the task that does, if there is one."""
        if self._closed or (self._pace.mode == "manual" and not unit.insists):
            return None
        self._bind()
        unit.again = True
        if unit.task is None:
            unit.task = asyncio.create_task(
                self._work(unit), name="locus-memory-extraction", context=context or uncollected()
            )
        return unit.task

    def _later(self, unit: _Unit, pause: float) -> None:
        """Look at threads after some seconds at the latest."""
        loop = asyncio.get_running_loop()
        is_sooner = unit.timer is None or loop.time() + pause < unit.timer.when()
        if pause < inf and is_sooner and not (self._closed or self._pace.mode == "manual"):
            unit.stop_timer()
            unit.timer = loop.call_later(pause, self._ring, unit)

    def _ring(self, unit: _Unit) -> None:
        unit.timer = None
        self._wake(unit)

    async def _work(self, unit: _Unit) -> None:
        """Handle the threads of a unit until there is nothing more to do now."""
        unit.stop_timer()
        pause = inf
        try:
            while unit.again:
                unit.again, asked = False, {*unit.waits}
                trips, pause = await self._formed(unit)
                unit.again |= bool(trips)
                going = {job.lane for trip in trips for session in trip for job in session}
                unit.answer(asked - going)
                await asyncio.gather(*(self._travel(unit, trip) for trip in trips))
        except Exception as error:  # noqa: BLE001 - reported; the jobs stay in the store
            emit("memory.queue_failed", error=error)
            pause = self._pace.quiet
        finally:
            unit.task, unit.insists = None, False
            unit.answer(unit.waits)
            if unit.jobs:
                self._later(unit, pause)
            else:
                unit.stop_timer()
                self._units.pop(unit.name, None)

    async def _formed(self, unit: _Unit) -> tuple[list[Trip], float]:
        """Return what is to be handled now, and the seconds until there may be more."""
        if rest := self._rest(unit):
            # Without a read: what waits grows with each turn of the day.
            return [], rest
        passed = asyncio.get_running_loop().time()
        # What ends from now on is handled at the next look, all of it together.
        ended, unit.ended = unit.ended, set()
        unit.failed = {lane: end for lane, end in unit.failed.items() if end > passed}
        free, pauses = list[list[Job]](), [end - passed for end in unit.failed.values()]
        for lane in [each for each in unit.jobs if each not in unit.failed]:
            before = unit.jobs[lane]
            is_asked = unit.insists or lane in unit.waits
            waiting = await self._queue.waiting(lane)
            jobs = [job for job in waiting if is_asked or self._queue.reads(job)]
            # What was queued meanwhile may be missing.
            unit.keep(lane, frozenset(job.key for job in jobs) | (unit.jobs[lane] - before))
            # Who holds the first job reads those behind it, too.
            if any(Lease.holds(job.lease, self._clock()) for job in waiting):
                pauses.append(self._pace.quiet)
            elif left := [job for job in jobs if not self._is_parked(unit, job)]:
                free.append(left)
        # The thread that may go on was read last, right before.
        trips, pause = self._pace.trips(free, ended, self._clock())
        return trips, min([pause, *pauses])

    def _is_parked(self, unit: _Unit, job: Job) -> bool:
        """Return whether a job waits until somebody insists: each attempt ended its process."""
        if unit.insists or job.lease is None or job.attempts < _MOST_ATTEMPTS:
            return False
        if job.key not in self._parked:
            self._parked.add(job.key)
            error = LocusMemoryError("the process ended during each attempt")
            emit("memory.extract_parked", error=error, thread=job.thread, attempts=job.attempts)
        return True

    def _rest(self, unit: _Unit) -> float:
        """Return the seconds until a day has calls again, as far as is known here; 0: it has."""
        allowance = None if unit.insists else self._allowance
        is_spent = allowance is not None and allowance.today == self._spent_on
        return allowance.rest if allowance is not None and is_spent else 0.0

    async def _travel(self, unit: _Unit, trip: Trip) -> None:
        """Handle sessions together; of a long backlog, the first jobs."""
        every = [job for session in trip for job in session]
        sizes = accumulate(job.characters for job in every)
        jobs = [job for job, size in zip(every, sizes, strict=True) if size <= A_CALL] or every[:1]
        try:
            async with self._slots:
                await self._claimed(unit, jobs)
        except Exception as error:  # noqa: BLE001 - reported; the jobs stay in the store
            emit("memory.queue_failed", error=error)
            self._put_off(unit, jobs, self._pace.quiet)
        # What is left of a backlog is handled at once.
        unit.ended.update(job.lane for job in every[len(jobs) :])
        lanes = {job.lane for job in every}
        unit.answer(each for each in lanes if each in unit.failed or each not in unit.jobs)

    async def _claimed(self, unit: _Unit, jobs: Sequence[Job]) -> None:
        """Handle jobs under a lease, if no other process has them, and the day has a call left."""
        said = (pair for job in jobs for pair in roles_and_texts(job.messages))
        with Lease(self._clock() + self._extraction.seconds_for(said) + _SLACK) as lease:
            held = await self._queue.claim(jobs, lease)
            if not held:
                self._put_off(unit, jobs, self._pace.quiet)
            elif unit.insists or self._allowance is None or await self._allowance.take():
                await self._attempt(unit, held)
            else:
                self._spent_on = self._allowance.today
                await self._queue.give_back(held)
                self._put_off(unit, jobs, self._allowance.rest)

    async def _attempt(self, unit: _Unit, jobs: Sequence[Job]) -> None:
        try:
            run, allowance = self._extraction.run, self._allowance
            outcome = await (allowance.counted(run, jobs) if allowance else run(jobs))
        except (GeneratorExit, KeyboardInterrupt):
            # Nothing can be awaited after these errors.
            raise
        except BaseException as error:
            if is_being_cancelled():
                await self._queue.give_back(jobs)
                raise
            await self._fail(unit, jobs, error)
            return
        is_written = await self._queue.complete(outcome)
        if is_written:
            outcome.written()
            self._forget(unit, outcome.jobs)
            # After one success, others may succeed too.
            for each in self._units_of(None):
                if each.failed:
                    self._end(each, ())
        if not is_written or len(outcome.jobs) < len(jobs):
            # Others have the jobs or erased some of them: what is left is handled at once.
            unit.ended.update(job.lane for job in jobs)

    def _forget(self, unit: _Unit, done: Iterable[Job]) -> None:
        for job in done:
            unit.keep(job.lane, unit.jobs.get(job.lane, frozenset()) - {job.key})

    def _put_off(self, unit: _Unit, jobs: Iterable[Job], pause: float) -> None:
        moment = asyncio.get_running_loop().time() + pause
        unit.failed.update((job.lane, moment) for job in jobs)

    async def _fail(self, unit: _Unit, jobs: Sequence[Job], error: BaseException) -> None:
        head = sessions_of(jobs)[-1][0]
        emit("memory.extract_failed", error=error, thread=head.thread, attempts=head.attempts)
        steps = min(head.attempts, _MOST_ATTEMPTS)
        self._put_off(unit, jobs, self._pace.quiet * _BACKOFF ** (steps - 1))
        spent = await self._queue.fail(jobs, _ENDLESS if self._pace.by_session else _MOST_ATTEMPTS)
        self._forget(unit, spent)
        for job in spent:
            # A message without an id is named by its number in the thread, such as `#3`.
            emit(
                "memory.extract_dropped",
                error=error,
                thread=job.thread,
                messages=len(job.messages),
                message_ids=[each["id"] or f"#{each['number']}" for each in job.messages],
                attempts=job.attempts,
            )
