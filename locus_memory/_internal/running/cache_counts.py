"""The hits and misses of the caches of this process, for those who measure them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["CACHES", "CacheCounts", "counts_of"]


@dataclass(slots=True, eq=False)
class CacheCounts:
    """How often all caches of one kind had a value; approximate if several threads count.

    Attributes:
        hits: Reads that the caches answered.
        misses: Reads that they could not answer.
    """

    hits: int = 0
    misses: int = 0


CACHES: Final[dict[str, CacheCounts]] = {}
"""The counts of each kind of cache in this process."""


def counts_of(cache: str) -> CacheCounts:
    """Return the counts of a kind of cache, which its objects share."""
    return CACHES.setdefault(cache, CacheCounts())
