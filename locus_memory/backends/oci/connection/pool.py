"""Threads that make the blocking calls of the SDK.

A running call cannot be stopped. So a call that is cancelled before it begins never begins. A
write that has begun is waited for, however it ends: a write that lands after a later one, which
was acknowledged, would undo it. A read has no effects, so its caller does not wait.

Each call has a thread of its own, which is a daemon: a call without an answer never keeps the
interpreter from ending. The clients, with their connections, are kept for the next calls.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, Generic, TypeVar

from locus_memory._internal.running.live import POOLS, PoolUse
from locus_memory.backends.loops import LONGEST_CLOSE, LoopLocal, Turns
from locus_memory.errors import BackendClosedError

__all__ = ["ThreadPool"]

T = TypeVar("T")
ClientT = TypeVar("ClientT")


class ThreadPool(Generic[ClientT]):
    """So many calls of each event loop at the same time, each with a client of its own.

    Args:
        make: Returns a new client.
        end: Closes a client.
        size: How many calls of an event loop there may be.
        acquire_timeout: Seconds that a call waits for the others.
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
        self._size = size
        self._place = place
        self._make_turns = partial(Turns, size, acquire_timeout, f"oci {place}", "threads")
        self._turns: LoopLocal[Turns] = LoopLocal()
        self._process = os.getpid()
        self._idle: list[ClientT] = []
        self._running: set[Future[Any]] = set()
        self._closed = False
        POOLS.add(self, f"oci {place}")

    def use(self) -> PoolUse:
        """Return the use of the clients now; each has its own connection."""
        waiting = sum(turns.waiting for turns in self._turns.values())
        return PoolUse(len(self._running), len(self._idle), self._size, waiting)

    def is_open(self) -> bool:
        """Return whether this process has clients, which may have connections."""
        return self._process == os.getpid() and bool(self._idle or self._running)

    def check_open(self) -> None:
        """Raise `BackendClosedError` after `close`."""
        if self._closed:
            raise BackendClosedError(f"oci {self._place}: used after close()")

    async def run(self, work: Callable[[ClientT], T], *, is_read: bool) -> T:
        """Return the result of a blocking call, made in a thread.

        Args:
            work: The call; it gets a client.
            is_read: Whether it changes nothing: then a cancelled caller does not wait for it.

        Raises:
            BackendClosedError: After `close`.
            BackendUnavailableError: There were too many calls.
            CancelledError: The caller was cancelled; a write has ended, unless the caller was
                cancelled twice.
            Exception: The error of `work`.
        """
        self.check_open()
        turns = self._turns.get(self._make_turns)
        await turns.take()
        try:
            self.check_open()
            answer = asyncio.wrap_future(self._begin(work))
        except BaseException:
            turns.release()
            raise
        answer.add_done_callback(lambda _: turns.release())
        try:
            result: T = await asyncio.shield(answer)
        except asyncio.CancelledError:
            if not is_read and not answer.done():
                await asyncio.wait([answer])
            raise
        return result

    def _begin(self, work: Callable[[ClientT], Any]) -> Future[Any]:
        if self._process != os.getpid():
            # The connections are those of the parent process.
            self._process, self._idle, self._running = os.getpid(), [], set()
        answer: Future[Any] = Future()
        self._running.add(answer)
        arguments = (work, answer, self._idle)
        threading.Thread(target=self._call, args=arguments, name="locus-oci", daemon=True).start()
        return answer

    def _call(
        self, work: Callable[[ClientT], Any], answer: Future[Any], idle: list[ClientT]
    ) -> None:
        client: ClientT | None = None
        try:
            with suppress(IndexError):
                client = idle.pop()
            client = client or self._make()
            found, error = work(client), None
        except BaseException as raised:  # noqa: BLE001 - it is for the caller
            found, error = None, raised
        if client is not None:
            idle.append(client)
        self._running.discard(answer)
        if self._closed:
            self._end_clients()
        if error is None:
            answer.set_result(found)
        else:
            answer.set_exception(error)

    async def close(self) -> None:
        """Refuse the calls that wait, wait some seconds for the others, and end the clients."""
        self._closed = True
        if self._process != os.getpid():
            return
        running = [asyncio.wrap_future(each) for each in list(self._running)]
        if running:
            await asyncio.wait(running, timeout=LONGEST_CLOSE)
            for each in running:
                if each.done() and not each.cancelled():
                    each.exception()  # its caller has it
        self._end_clients()

    def _end_clients(self) -> None:
        with suppress(IndexError):
            while True:
                self._end(self._idle.pop())
