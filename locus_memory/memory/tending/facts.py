"""What time does to the vital signs of a fact; pure."""

from __future__ import annotations

from locus_memory.memory.layers.vitals import Vitals, least_salience
from locus_memory.memory.models import Memory

__all__ = ["tended"]


def tended(memory: Memory, vitals: Vitals, now: str) -> Vitals:
    """Return the vital signs of a fact after a pass; a second pass at one moment changes nothing.

    Args:
        memory: The fact.
        vitals: Its vital signs.
        now: The moment of the pass.
    """
    if vitals.retired_at is not None:
        vitals = vitals.revived(memory, now)
    return vitals.decayed(now, least_salience(memory))
