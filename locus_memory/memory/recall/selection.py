"""Selections: the memories that count in a search."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from locus_memory.memory.ledger.revision import read_memory
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.retrieval.ranking.absolute import check_min_score
from locus_memory.store.filters import parse_filter
from locus_memory.store.item import StoreItem

__all__ = ["Selection"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The memories that count.

    Attributes:
        type: Their type; `None`: any.
        filter: A filter on their fields, or `None`.
        min_score: Their lowest relevance, from 0 to 1; `None`: any.

    Raises:
        InvalidArgumentError: `min_score` is not a number from 0 to 1.
        InvalidFilterError: The filter is invalid.
    """

    type: MemoryType | None = None
    filter: Mapping[str, Any] | None = None
    min_score: float | None = None

    def __post_init__(self) -> None:
        check_min_score(self.min_score)
        if self.filter is not None:
            parse_filter(self.filter)

    @property
    def condition(self) -> Mapping[str, Any] | None:
        """The filter on the items of the store."""
        if self.type is None:
            return self.filter
        # Memories of another library may have no type in their value; their key has it.
        typed = {"$or": [{"type": self.type.value}, {"type": {"$exists": False}}]}
        return typed if self.filter is None else {"$and": [typed, self.filter]}

    def read(self, items: Iterable[StoreItem]) -> list[Memory]:
        """Return the memories in the items that are of the type."""
        memories = filter(None, map(read_memory, items))
        return [each for each in memories if self.type in (None, each.type)]
