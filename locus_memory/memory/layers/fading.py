"""The fall of salience with time; pure."""

from __future__ import annotations

import math
from typing import Final

from locus_memory.memory.moments import days_between

__all__ = ["faded"]

_DECAY_DAYS: Final = 30.0
_ENDURING: Final = 0.9
"""What is at least as important, such as an allergy, never falls below the floor."""

_FLOOR: Final = 0.2


def faded(salience: float, since: str | None, now: str) -> float:
    """Return a salience after some time: `salience * exp(-days / 30)`.

    One of at least 0.9 never falls below 0.2.

    Args:
        salience: From 0 to 1.
        since: The moment from which it falls; if it is none, it does not.
        now: The present moment.
    """
    least = _FLOOR if salience >= _ENDURING else 0.0
    return max(salience * math.exp(-days_between(since, now) / _DECAY_DAYS), least)
