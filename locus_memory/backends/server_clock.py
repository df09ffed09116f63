"""The time of a server: it is asked, and the monotonic clock of this machine goes on from there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from locus_memory.backends.loops import LoopLocal
from locus_memory.store.item import timestamp

__all__ = ["ServerClock"]

_LONGEST: Final = 60.0
"""Seconds after which a server is asked again."""

_MOST_SKEW: Final = 1.0
"""Seconds by which the two clocks here may part: the machine slept, or its clock was set."""


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
        return passed < _LONGEST and abs(time.time() - self.wall - passed) < _MOST_SKEW


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
