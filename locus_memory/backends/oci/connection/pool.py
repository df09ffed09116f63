"""Threads that make the blocking calls of the SDK.

A running call cannot be stopped. So a call that is cancelled before it begins never begins. A
write that has begun is waited for, however it ends: a write that lands after a later one, which
was acknowledged, would undo it. A read has no effects, so its caller does not wait.

The threads are daemons, so a call without an answer never keeps the interpreter from ending. A
forked process starts with none, and with clients of its own.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Final, Generic, TypeVar

from locus_memory._internal.running.live import POOLS, PoolUse
from locus_memory.errors import BackendClosedError, BackendUnavailableError

__all__ = ["ThreadPool"]

T = TypeVar("T")
ClientT = TypeVar("ClientT")

LONGEST_CLOSE: Final = 10.0
"""Seconds that closing waits for running calls."""


class _Job:
    """A call, which either a thread begins or its caller drops, whichever is first.

    Attributes:
        answer: The future of the result.
    """

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self.answer: Future[Any] = Future()
        self._work = work
        # Removing the only element is atomic.
        self._unclaimed = [True]

    def claim(self) -> bool:
        """Return whether this is the first claim."""
        with suppress(IndexError):
            return self._unclaimed.pop()
        return False

    def drop(self, error: Exception) -> None:
        """Answer with an error, if no thread has begun the call."""
        if self.claim():
            self.answer.set_exception(error)

    def run(self, client: Any) -> None:
        """Make the call."""
        try:
            result = self._work(client)
        except BaseException as error:  # noqa: BLE001 - it is for the caller
            self.answer.set_exception(error)
        else:
            self.answer.set_result(result)


class _Crew:
    """The threads of one process.

    Attributes:
        process: The id of the process.
        jobs: The calls that are not answered.
    """

    def __init__(self, make: Callable[[], Any], end: Callable[[Any], None], size: int) -> None:
        self.process = os.getpid()
        self.jobs: set[_Job] = set()
        self._make = make
        self._end = end
        self._size = size
        self._threads = 0
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._lock = threading.Lock()

    def is_open(self) -> bool:
        """Return whether there are threads, which may have connections."""
        return self._threads > 0

    def use(self) -> PoolUse:
        """Return the use of the threads now."""
        with self._lock:
            used = min(len(self.jobs), self._threads)
            waiting = len(self.jobs) - used
            return PoolUse(used, self._threads - used, self._size, waiting)

    def submit(self, job: _Job) -> None:
        """Let a thread make a call, a new one if all are busy and there may be more."""
        with self._lock:
            self.jobs.add(job)
            is_new = len(self.jobs) > self._threads and self._threads < self._size
            self._threads += is_new
        job.answer.add_done_callback(lambda _: self._forget(job))
        self._queue.put(job)
        if is_new:
            threading.Thread(target=self._work, name="locus-oci", daemon=True).start()

    def stop(self) -> None:
        """End each thread after its call."""
        for _ in range(self._threads):
            self._queue.put(None)
        self._threads = 0

    def _forget(self, job: _Job) -> None:
        with self._lock:
            self.jobs.discard(job)

    def _work(self) -> None:
        client: Any = None
        while (job := self._queue.get()) is not None:
            if not job.claim():
                continue
            try:
                client = client or self._make()
            except BaseException as error:  # noqa: BLE001 - it is for the caller
                job.answer.set_exception(error)
            else:
                job.run(client)
            # A waiting thread keeps nothing of its last caller alive.
            del job
        if client is not None:
            self._end(client)


class ThreadPool(Generic[ClientT]):
    """At most so many threads, each with its own client; tasks of any event loop may share it.

    Args:
        make: Returns the client of a new thread.
        end: Closes the client of a thread that ends.
        size: How many threads there may be.
        acquire_timeout: Seconds that a call waits for a free thread.
        place: The name of the service in messages.
    """

    def __init__(
        self,
        make: Callable[[], ClientT],
        end: Callable[[ClientT], None],
        *,
        size: int,
        acquire_timeout: float,
        place: str,
    ) -> None:
        self._make = make
        self._end = end
        self._crew = _Crew(make, end, size)
        self._size = size
        self._acquire_timeout = acquire_timeout
        self._place = place
        self._closed = False
        POOLS.add(self, f"oci {place}")

    def use(self) -> PoolUse:
        """Return the use of the threads now; each has its own client."""
        return self._crew.use()

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def is_open(self) -> bool:
        """Return whether this process has threads, which may have connections."""
        crew = self._crew
        return crew.process == os.getpid() and crew.is_open()

    def check_open(self) -> None:
        """Raise `BackendClosedError` after `close`."""
        if self._closed:
            raise self._refusal()

    async def run(self, work: Callable[[ClientT], T], *, is_read: bool) -> T:
        """Return the result of a blocking call, made in a thread.

        Args:
            work: The call; it gets the client of the thread.
            is_read: Whether it changes nothing: then a cancelled caller does not wait for it.

        Raises:
            BackendClosedError: After `close`.
            BackendUnavailableError: All threads stayed busy.
            CancelledError: The caller was cancelled; a write has ended, unless the caller was
                cancelled twice.
            Exception: The error of `work`.
        """
        self.check_open()
        crew = self._crew
        if crew.process != os.getpid():
            crew = self._crew = _Crew(self._make, self._end, self._size)
        job = _Job(work)
        answer = asyncio.wrap_future(job.answer)
        crew.submit(job)
        late = asyncio.get_running_loop().call_later(self._acquire_timeout, job.drop, self._late())
        try:
            result: T = await asyncio.shield(answer)
        except asyncio.CancelledError:
            if job.claim():
                job.answer.cancel()
            elif not is_read and not answer.done():
                await asyncio.wait([answer])
            raise
        finally:
            late.cancel()
        return result

    async def close(self) -> None:
        """Refuse the calls that wait, wait some seconds for the others, and end the threads."""
        self._closed = True
        crew = self._crew
        if crew.process != os.getpid():
            return
        for job in list(crew.jobs):
            job.drop(self._refusal())
        running = [asyncio.wrap_future(job.answer) for job in list(crew.jobs)]
        if running:
            await asyncio.wait(running, timeout=LONGEST_CLOSE)
            for each in running:
                if each.done() and not each.cancelled():
                    each.exception()  # its caller has it
        crew.stop()

    def _refusal(self) -> BackendClosedError:
        return BackendClosedError(f"oci {self._place}: used after close()")

    def _late(self) -> BackendUnavailableError:
        return BackendUnavailableError(
            f"oci {self._place}: all {self._size} threads stayed busy for "
            f"{self._acquire_timeout:g} s; raise pool_size"
        )
