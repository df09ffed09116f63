"""The choice of the record that a new delta builds on, so that chains stay short.

If every delta built on its predecessor, a load would replay them all. Instead each record
has a level: after `RADIX - 1` deltas of one level in a row, the next delta is a level higher
and builds on the record before that row, as a carry does in a counter. So the chain behind
the n-th checkpoint has at most `(RADIX - 1) * (1 + log_RADIX(n))` deltas, and each change is
stored once per level. Subversion's skip-deltas are the same idea
(https://svn.apache.org/repos/asf/subversion/trunk/notes/skip-deltas).
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["RADIX", "place"]

RADIX = 32
"""Measured: see `docs/benchmarks.md`, "Chain limits"."""


def place(levels: Sequence[int], radix: int = RADIX) -> tuple[int, int]:
    """Return the place of a new delta in a chain.

    Args:
        levels: The levels of the deltas behind the newest record, oldest first, without the
            full record they start from; they never rise.
        radix: How many deltas of one level become one of the next.

    Returns:
        How many of those deltas the new one keeps before it, and its level.
    """
    kept, level = len(levels), 0
    while kept >= radix - 1 and levels[kept - radix + 1] == level:
        kept -= radix - 1
        level += 1
    return kept, level
