"""The line of those that wait in one event loop, for a connection as a rule."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["WaitingLine"]

T = TypeVar("T")


class WaitingLine(Generic[T]):
    """First come, first served; each waits for so many seconds at most.

    Whoever waits awaits a future. Once that is done, cancelled for instance, nobody waits by it
    any more, and the line passes over it.

    Args:
        timeout: Seconds.
        refusal: Returns the error for one that waited for too long.
    """

    def __init__(self, timeout: float, refusal: Callable[[], Exception]) -> None:
        self._timeout = timeout
        self._refusal = refusal
        self._loop = asyncio.get_running_loop()
        self._line: deque[tuple[T, asyncio.Future[Any], float]] = deque()
        # One serves all: they wait equally long.
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """How many are in line, those that do not wait any more included."""
        return len(self._line)

    def join(self, what: T, answer: asyncio.Future[Any]) -> None:
        """Wait at the end of the line, by a future."""
        until = self._loop.time() + self._timeout
        self._line.append((what, answer, until))
        if self._timer is None:
            self._timer = self._loop.call_at(until, self._refuse_the_late)

    def take(self) -> T | None:
        """Take the first that still waits out of the line, `None` if nobody does."""
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
        """End the watch on the time, and refuse all that wait if there is a refusal."""
        if self._timer is not None:
            self._timer.cancel()
        while refusal is not None and self._line:
            _, answer, _ = self._line.popleft()
            if not answer.done():
                answer.set_exception(refusal())
