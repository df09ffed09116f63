"""The order of all writes to the store, without a counter that all of them would wait for."""

from __future__ import annotations

import threading
import time

__all__ = ["WriteOrder"]


class WriteOrder:
    """A clock that only goes forward, for the order of writes.

    A write gets the nanoseconds of the machine's own clock, or one more than the last number that
    this process wrote or read. So a process that has seen a write is always behind it. Writes of
    different machines that have not seen each other are in the order of the machines' clocks.
    """

    def __init__(self) -> None:
        self._last = 0
        self._lock = threading.Lock()

    def following(self) -> int:
        """Return the number of a new write."""
        with self._lock:
            self._last = max(self._last + 1, time.time_ns())
            return self._last

    def saw(self, order: int) -> None:
        """Let the next write follow this one."""
        with self._lock:
            self._last = max(self._last, order)
