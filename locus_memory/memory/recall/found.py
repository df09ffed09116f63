"""Facts: the memories that a search found for a message."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, NamedTuple

from locus_memory.memory.models import Memory
from locus_memory.retrieval.candidates import Mode

__all__ = ["Fact", "Facts"]


class Fact(NamedTuple):
    """A memory that was found; it is the store's own, so nobody may change it.

    Attributes:
        name: Its `current_key`.
        memory: The memory.
        score: Higher is better; comparable within one search only.
        relevance: From 0 to 1, the same in every search; see `Hit.relevance`.
        nearness: The cosine of its vector on the scale of the embedder, from 0 to 1; `None`: there
            is no vector.
        stems: The stems of all words of its content; `None`: they are not known.
    """

    name: str
    memory: Memory
    score: float = 1.0
    relevance: float = 0.0
    nearness: float | None = None
    stems: AbstractSet[str] | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """The memories that were found for a message, the best first.

    Attributes:
        facts: The memories.
        mode: The searches that ran.
        vitals: The stored records of their vital signs by name, if they were read as well.
        of_query: Whether a search for a query found them; else they are the newest.
    """

    facts: tuple[Fact, ...] = ()
    mode: Mode = "text"
    vitals: Mapping[str, Any] | None = None
    of_query: bool = False
