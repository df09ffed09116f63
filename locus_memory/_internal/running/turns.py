"""Turns: one call after another, whichever event loops and threads they come from."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakValueDictionary

__all__ = ["Turns", "turns_of"]

_known: Final[WeakValueDictionary[int, Turns]] = WeakValueDictionary()
_known_lock: Final = threading.Lock()


class Turns:
    """A line of calls, in the order in which they came; an `asyncio.Lock` serves one loop alone."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Future[None]] = deque()
        self._is_taken = False

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """Wait for the calls before this one; those after it wait until the block ends."""
        own = Future[None]()
        with self._lock:
            waits, self._is_taken = self._is_taken, True
            if waits:
                self._waiting.append(own)
        try:
            if waits:
                await asyncio.wrap_future(own)
            yield
        finally:
            # Whoever gives up before it has its turn only leaves the line.
            if not (waits and own.cancel()):
                self._pass_on()

    def _pass_on(self) -> None:
        """Give the turn to the first call that still waits."""
        with self._lock:
            while self._waiting:
                following = self._waiting.popleft()
                if following.set_running_or_notify_cancel():
                    break
            else:
                self._is_taken = False
                return
        following.set_result(None)


def turns_of(shared: object) -> Turns:
    """Return the line of all that share an object; whoever holds the line holds the object too."""
    # By its id: what others write may be neither hashable nor weakly held.
    with _known_lock:
        return _known.setdefault(id(shared), Turns())
