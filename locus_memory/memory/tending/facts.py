"""What time and use do to the vital signs of a fact, and which facts are spent; pure."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from locus_memory.memory.layers.vitals import ENDURING, Vitals, least_salience, written_at
from locus_memory.memory.ledger.revision import importance_of
from locus_memory.memory.models import Memory, is_expired
from locus_memory.memory.moments import days_between, read_moment

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
    vitals = vitals.decayed(now, least_salience(memory, floor))
    return vitals.promoted(mentions, now) if mentions >= _MENTIONS else vitals


def is_spent(memory: Memory, vitals: Vitals, stored_at: datetime, now: str, floor: float) -> bool:
    """Return whether a fact is evicted: expired, or faded, unused for 30 days and unimportant.

    A faded fact has less salience than the floor.

    A fact that was learnt late, from an old conversation, has 30 days from its first put on.

    Args:
        memory: The fact.
        vitals: Its vital signs.
        stored_at: The moment of its first put; a later one than `now` is of another clock.
        now: The moment of the pass.
        floor: The salience below which an unused fact is evicted.
    """
    if is_expired(memory, now):
        return True
    if _endures(memory) or vitals.salience >= floor:
        return False
    moments = [vitals.idle_since(), written_at(memory), stored_at.isoformat()]
    present = read_moment(now)
    if present is not None and stored_at > present:
        moments.pop()
    idle = [days_between(each, now) for each in moments if read_moment(each) is not None]
    return min(idle, default=0.0) >= _IDLE_DAYS


def _endures(memory: Memory) -> bool:
    return importance_of(memory) >= ENDURING
