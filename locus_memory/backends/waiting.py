"""The line of waiting calls of one event loop, usually for a connection."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["WaitingLine"]

T = TypeVar("T")


class WaitingLine(Generic[T]):
    """A queue, first come, first served, with a limit on the wait.

    A call awaits a future. The line skips a future that is done, for example cancelled.

    Args:
        timeout: The most seconds of a wait.
        refusal: Returns the error of a call that waited too long.
    """

    def __init__(self, timeout: float, refusal: Callable[[], Exception]) -> None:
        self._timeout = timeout
        self._refusal = refusal
        self._loop = asyncio.get_running_loop()
        self._line: deque[tuple[T, asyncio.Future[Any], float]] = deque()
        # One timer serves all calls: they wait equally long.
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """Return the number of calls in line, including those that no longer wait."""
        return len(self._line)

    def join(self, what: T, answer: asyncio.Future[Any]) -> None:
        """Add a future to the end of the line."""
        until = self._loop.time() + self._timeout
        self._line.append((what, answer, until))
        if self._timer is None:
            self._timer = self._loop.call_at(until, self._refuse_the_late)

    def take(self) -> T | None:
        """Take the first call that still waits, or `None`."""
        while self._line:
            what, answer, _ = self._line.popleft()
            if not answer.done():
                return what
        return None

    def _refuse_the_late(self) -> None:
        self._timer = None
        now = self._loop.time()
        while self._line:
            _, answer, until = self._line[0]
            if not answer.done():
                if until > now:
                    self._timer = self._loop.call_at(until, self._refuse_the_late)
                    return
                answer.set_exception(self._refusal())
            self._line.popleft()

    def end(self, refusal: Callable[[], Exception] | None = None) -> None:
        """Stop the timer, and refuse all waiting calls if there is a refusal."""
        if self._timer is not None:
            self._timer.cancel()
        while refusal is not None and self._line:
            _, answer, _ = self._line.popleft()
            if not answer.done():
                answer.set_exception(refusal())
