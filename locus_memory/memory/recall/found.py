"""A fact: a memory that a search found for a message."""

from __future__ import annotations

from typing import NamedTuple

from locus_memory.memory.models import Memory

__all__ = ["Fact"]


class Fact(NamedTuple):
    """A memory that was found; it is the store's own, so nobody may change it.

    Attributes:
        name: Its `current_key`.
        memory: The memory.
        relevance: From 0 to 1, the same in every search; see `Hit.relevance`.
    """

    name: str
    memory: Memory
    relevance: float = 0.0
