"""The fall of salience with time; pure."""

from __future__ import annotations

import math
from typing import Final

__all__ = ["faded"]

_DECAY_DAYS: Final = 30.0


def faded(salience: float, days: float, least: float = 0.0) -> float:
    """Return a salience after some days: `salience * exp(-days / 30)`.

    Args:
        salience: From 0 to 1.
        days: The elapsed days.
        least: The salience below which it does not fall; a lower one stays.
    """
    return max(salience * math.exp(-days / _DECAY_DAYS), min(salience, least))
