"""A limit of the rate of writes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

__all__ = ["Pace"]


class Pace:
    """Lets at most so many writes begin in a second, on average.

    Args:
        rate: Writes in a second; `None`: no limit.
        clock: Returns seconds; it never goes back.
    """

    def __init__(self, rate: float | None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._free_at = clock()

    async def take(self, count: int) -> None:
        """Wait until this many writes may begin."""
        if self._rate is None:
            return
        now = self._clock()
        wait = self._free_at - now
        self._free_at = max(self._free_at, now) + count / self._rate
        if wait > 0:
            await asyncio.sleep(wait)
