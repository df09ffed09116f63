"""The connections of each event loop: opened there, found again, and closed; a server's clock.

A connection of asyncio works only in the event loop that opened it. So a backend has a `PerLoop`
of them, and each event loop gets its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Generic, Protocol, TypeVar
from weakref import WeakValueDictionary

from locus_memory._internal.running.live import POOLS, PoolUse
from locus_memory.errors import BackendClosedError, BackendUnavailableError, ConfigurationError
from locus_memory.store.item import timestamp

__all__ = [
    "LONGEST_CLOSE",
    "Locks",
    "LoopClient",
    "LoopLocal",
    "OfOneLoop",
    "PerLoop",
    "ServerClock",
    "Turns",
    "close_elsewhere",
    "pause",
    "sever",
    "until_the_loop_ends",
]

_LONGEST_TOLD: Final = 60.0
"""Seconds after which a server is asked again."""

_MOST_SKEW: Final = 1.0
"""Seconds by which the two clocks here may part: the machine slept, or its clock was set."""

LONGEST_CLOSE: Final = 10.0
"""Seconds that closing waits for the calls in progress."""

_inherited: Final[list[object]] = []
"""The connections of the parent process, kept in a forked process so that none is finalized."""


class OfOneLoop(Protocol):
    """The connections of one event loop, which close themselves when it ends."""

    async def close(self) -> None:
        """Close them, in their loop."""

    def has_ended(self) -> bool:
        """Return whether they closed themselves because their loop ended."""
        ...

    def abandon(self) -> None:
        """Drop them without their loop, which does not run."""


T = TypeVar("T")
HeldT = TypeVar("HeldT", bound=OfOneLoop)


@dataclass(eq=False, slots=True)
class _Place(Generic[HeldT]):
    """The place of one event loop: its connections, the calls that wait, and their last failure."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    held: HeldT | None = None
    calls: int = 0
    failure: Exception | None = None


class PerLoop(Generic[HeldT]):
    """The connections of each event loop, opened at its first call; any thread may call.

    A forked process starts with no connections and leaves those of its parent alone. Both
    processes watch the sockets by one epoll, so a close in one of them would stop the other.

    Args:
        place: The name of the database in messages.
        remedy: With a client of the caller's, which belongs to the first event loop that uses it:
            what to pass instead; `None`: each event loop has its own.
    """

    def __init__(self, place: str, remedy: str | None = None) -> None:
        self._place = place
        self._remedy = remedy
        self._home: asyncio.AbstractEventLoop | None = None
        self._places: dict[asyncio.AbstractEventLoop, _Place[HeldT]] = {}
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._closed = False

    def _held(self) -> list[HeldT]:
        places = list(self._places.values())
        return [place.held for place in places if place.held is not None]

    def is_open(self) -> bool:
        """Return whether an event loop that has not ended still has open connections."""
        return any(not held.has_ended() for held in self._held())

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def refusal(self) -> BackendClosedError:
        """Return the error of a call after `close`."""
        return BackendClosedError(f"{self._place}: used after close()")

    def here(self) -> HeldT | None:
        """Return the connections of the running event loop, or `None` before they are open.

        Raises:
            BackendClosedError: After `close`.
        """
        if self._closed:
            raise self.refusal()
        place = self._places.get(asyncio.get_running_loop())
        return None if place is None else place.held

    async def opened(self, opening: Callable[[], Awaitable[HeldT]]) -> HeldT:
        """Return the connections of the running event loop, and open them if necessary.

        Args:
            opening: Opens them; leaves nothing open if it raises. Concurrent calls wait for it
                and share its failure.

        Raises:
            BackendClosedError: After `close`.
            ConfigurationError: The client of the caller belongs to another event loop.
            Exception: The error of `opening`.
        """
        place = self._place_here()
        known = place.failure
        place.calls += 1
        try:
            async with place.lock:
                return await self._opened_in(place, opening, known)
        finally:
            place.calls -= 1
            if not place.calls:
                # Its traceback keeps the objects of its callers alive.
                place.failure = None

    async def _opened_in(
        self,
        place: _Place[HeldT],
        opening: Callable[[], Awaitable[HeldT]],
        known: Exception | None,
    ) -> HeldT:
        held = self.here()
        if held is not None:
            return held
        if place.failure is not None and place.failure is not known:
            raise place.failure
        try:
            held = await opening()
        except Exception as error:
            place.failure = error
            raise
        return await self._kept(place, held)

    def _place_here(self) -> _Place[HeldT]:
        loop = asyncio.get_running_loop()
        with self._lock:
            self._forget_ended_loops()
            if self._remedy is not None and self._home not in (None, loop):
                raise ConfigurationError(
                    f"{self._place}: the client belongs to another event loop; {self._remedy}"
                )
            self._home = loop
            return self._places.setdefault(loop, _Place())

    async def _kept(self, place: _Place[HeldT], held: HeldT) -> HeldT:
        with self._lock:
            if not self._closed:
                place.held = held
                return held
        await held.close()
        raise self.refusal()

    def _forget_ended_loops(self) -> None:
        if self._process != os.getpid():
            _inherited.append(self._places)
            self._process, self._places = os.getpid(), {}
        for loop in [loop for loop in self._places if loop.is_closed()]:
            held = self._places.pop(loop).held
            if held is not None:
                held.abandon()

    async def close(self, seconds: float = 0) -> None:
        """Close the connections of each event loop in that loop; a second call is harmless.

        Args:
            seconds: Seconds to wait for the other loops; the running loop has no limit.
        """
        with self._lock:
            self._closed = True
            self._forget_ended_loops()
            places, self._places = self._places, {}
        held = {loop: place.held for loop, place in places.items() if place.held is not None}
        own = held.pop(asyncio.get_running_loop(), None)
        elsewhere = [close_elsewhere(loop, each) for loop, each in held.items()]
        if own is not None:
            await own.close()
        if seconds:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await asyncio.gather(*map(asyncio.wrap_future, elsewhere))


class Turns(asyncio.Semaphore):
    """The turns of the calls of one event loop; a call that waits too long for one is refused.

    Args:
        size: How many calls there may be.
        seconds: How long a call waits for the others.
        where: The name of the database in messages.
        what: What the calls share.

    Attributes:
        size: How many calls there may be.
        waiting: How many calls wait.
    """

    def __init__(self, size: int, seconds: float, where: str, what: str = "connections") -> None:
        super().__init__(size)
        self.size, self.waiting = size, 0
        self._seconds, self._where, self._what = seconds, where, what

    async def take(self) -> None:
        """Wait for a turn; `release` ends it.

        Raises:
            BackendUnavailableError: None came in time.
        """
        self.waiting += 1
        try:
            # A call that need not wait takes no timer.
            async with asyncio.timeout(self._seconds if self.locked() else None):
                await self.acquire()
        except TimeoutError:
            raise BackendUnavailableError(
                f"{self._where}: all {self.size} {self._what} are busy, and none came back within "
                f"{self._seconds:g} s; raise pool_size"
            ) from None
        finally:
            self.waiting -= 1

    async def take_all(self) -> None:
        """Wait until no call runs any more, and let none begin."""
        for _ in range(self.size):
            await self.acquire()


class LoopClient(ABC):
    """A client of a driver in the event loop that its connections belong to.

    Made and used inside that loop. It is closed when the loop ends, at the latest.

    Args:
        turns: The turns of its calls.
        where: The name of the database in messages.
        owned: Whether the client is closed here.
    """

    def __init__(self, turns: Turns, where: str, *, owned: bool) -> None:
        self._turns, self._owned = turns, owned
        self._loop = asyncio.get_running_loop()
        self._used = self._loop.time()
        self._ended = False
        self._guard = until_the_loop_ends(self._end)
        POOLS.add(self, where)

    @abstractmethod
    def use(self) -> PoolUse:
        """Return the use of the connections now."""

    @abstractmethod
    async def _shut(self) -> None:
        """Close the client."""

    async def start(self) -> None:
        """Let the loop know that there is something to close."""
        await anext(self._guard)

    def has_ended(self) -> bool:
        """Return whether the client is closed, since its loop ended or it was told to."""
        return self._ended

    async def close(self) -> None:
        """Wait for the calls in progress, but not for ever, and close the client."""
        if self._ended:
            return
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_CLOSE):
                    await self._turns.take_all()
        finally:
            if not self._ended:
                await self._guard.aclose()

    async def _end(self) -> None:
        self._ended = True
        if self._owned:
            await self._shut()


class LoopLocal(Generic[T]):
    """A value per event loop, created at its first call and never closed."""

    def __init__(self) -> None:
        self._values: dict[asyncio.AbstractEventLoop, T] = {}
        self._lock = threading.Lock()

    def values(self) -> list[T]:
        """Return the values of all event loops."""
        return list(self._values.values())

    def get(self, make: Callable[[], T]) -> T:
        """Return the value of the running event loop, and create it if there is none."""
        loop = asyncio.get_running_loop()
        if loop in self._values:
            return self._values[loop]
        value = make()
        with self._lock:
            for ended in [each for each in self._values if each.is_closed()]:
                del self._values[ended]
            self._values[loop] = value
        return value


class Locks:
    """Locks by name, each for the tasks of one event loop; kept only while they are used."""

    def __init__(self) -> None:
        self._held: LoopLocal[WeakValueDictionary[Hashable, asyncio.Lock]] = LoopLocal()

    def of(self, name: Hashable) -> asyncio.Lock:
        """Return the lock of a name; others of this event loop wait in line."""
        return self._held.get(WeakValueDictionary).setdefault(name, asyncio.Lock())


async def pause(attempt: int) -> None:
    """Let the other writers finish: at first for some milliseconds, at most for a second."""
    await asyncio.sleep(random.uniform(0, min(0.005 * 2**attempt, 1.0)))  # noqa: S311 - no secret


async def until_the_loop_ends(close: Callable[[], Awaitable[None]]) -> AsyncGenerator[None]:
    """Call `close` when the event loop ends, or when this generator is closed.

    It starts with its first `anext`. `asyncio.run` closes the remaining asynchronous generators
    before it closes the loop. No other hook runs before the end of a loop.
    """
    try:
        yield
    finally:
        await close()


def sever(transport: Any) -> None:
    """Close the socket of a transport without its event loop, which is closed."""
    while transport is not None:
        with contextlib.suppress(RuntimeError):
            transport.abort()
        socket = getattr(transport, "_sock", None)
        if socket is not None:
            socket.close()
            transport._sock = None  # noqa: SLF001 - or it warns of what is closed by now
        # A TLS transport wraps the transport of the socket.
        transport = getattr(getattr(transport, "_ssl_protocol", None), "_transport", None)


def close_elsewhere(loop: asyncio.AbstractEventLoop, held: OfOneLoop) -> Future[None]:
    """Close connections in the loop of another thread; the future is done once they are closed.

    `asyncio.run` closes asynchronous generators last, and with them the connections. A loop at
    that point runs no new task, so no task or coroutine is created then.
    """
    closed: Future[None] = Future()

    def finish(task: asyncio.Task[None] | None = None) -> None:
        # The caller may have stopped waiting.
        if not closed.set_running_or_notify_cancel():
            return
        error = None if task is None or task.cancelled() else task.exception()
        if error is None:
            closed.set_result(None)
        else:
            closed.set_exception(error)

    def start() -> None:
        if held.has_ended():
            finish()
        else:
            loop.create_task(held.close()).add_done_callback(finish)

    try:
        is_running = loop.is_running()
        if is_running:
            loop.call_soon_threadsafe(start)
    except RuntimeError:
        # The loop was closed meanwhile.
        is_running = False
    if not is_running:
        held.abandon()
        finish()
    return closed


@dataclass(frozen=True, slots=True)
class _Told:
    """What a server told: its time minus the monotonic clock here, and the clocks at that moment.

    Attributes:
        offset: Seconds, never more than the true ones: nothing expires too soon.
        steady: The monotonic clock, in seconds.
        wall: The clock of this machine, likewise.
    """

    offset: float
    steady: float
    wall: float

    def is_fresh(self) -> bool:
        """Return whether the server need not be asked again."""
        passed = time.monotonic() - self.steady
        return passed < _LONGEST_TOLD and abs(time.time() - self.wall - passed) < _MOST_SKEW


class ServerClock:
    """The clock of a server, which is asked once a minute at most.

    Args:
        ask: Returns the time of the server, in seconds since the epoch, cut to the precision;
            `None`: it does not tell, and the clock of this machine counts.
        precision: Seconds.
    """

    def __init__(
        self, ask: Callable[[], Awaitable[float | None]], *, precision: float = 0.001
    ) -> None:
        self._ask = ask
        self._precision = precision
        self._told: _Told | None = None
        self._asking: LoopLocal[asyncio.Lock] = LoopLocal()

    async def seconds(self, own: Callable[[], float] | None = None) -> float:
        """Return the seconds since the epoch.

        Args:
            own: The clock that a caller passed, which counts instead.

        Raises:
            BackendError: The server was asked, and there was no answer.
        """
        if own is not None:
            return own()
        told = self._told
        if told is None or not told.is_fresh():
            async with self._asking.get(asyncio.Lock):
                told = self._told
                if told is None or not told.is_fresh():
                    told = self._told = await self._learned(told)
        return time.monotonic() + told.offset

    async def _learned(self, known: _Told | None) -> _Told:
        asked = time.monotonic()
        moment = await self._ask()
        if moment is None:
            moment = time.time()
        here = time.monotonic()
        offset = moment - here
        if known is not None and known.offset <= moment + self._precision - asked:
            offset = max(offset, known.offset)
        return _Told(offset, here, time.time())

    async def now(self, own: Callable[[], float] | None = None) -> datetime:
        """Return the moment as items have it; see `seconds`."""
        return timestamp(await self.seconds(own))
