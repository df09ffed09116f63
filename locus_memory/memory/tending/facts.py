"""What time and use do to the vital signs of a fact, and which facts are spent; pure."""

from __future__ import annotations

from typing import Final

from locus_memory.memory.layers.vitals import ENDURING, Vitals
from locus_memory.memory.ledger.revision import importance_of
from locus_memory.memory.models import Memory
from locus_memory.memory.moments import days_between

__all__ = ["is_spent", "tended"]

_MENTIONS: Final = 3
"""The number of recent episodes whose mention raises the salience of a fact."""

_IDLE_DAYS: Final = 30.0


def tended(memory: Memory, vitals: Vitals, mentions: int, now: str, floor: float) -> Vitals:
    """Return the vital signs of a fact after a pass; a second pass at one moment changes nothing.

    Args:
        memory: The fact.
        vitals: Its vital signs.
        mentions: How many recent episodes mention it.
        now: The moment of the pass.
        floor: The salience below which an important fact never falls.
    """
    if vitals.retired_at is not None:
        vitals = vitals.revived(memory, now)
    vitals = vitals.decayed(now, floor if _endures(memory) else 0.0)
    return vitals.promoted(mentions, now) if mentions >= _MENTIONS else vitals


def is_spent(memory: Memory, vitals: Vitals, now: str, floor: float) -> bool:
    """Return whether a fact is evicted: faded below the floor, unused for 30 days, unimportant."""
    if _endures(memory) or vitals.salience >= floor:
        return False
    return days_between(vitals.idle_since(), now) >= _IDLE_DAYS


def _endures(memory: Memory) -> bool:
    return importance_of(memory) >= ENDURING
