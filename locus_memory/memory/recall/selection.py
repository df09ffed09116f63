"""Selections: the memories that count in a search."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from locus_memory.memory.models import ORIGIN, Memory, MemoryType, Origin, as_origins, origin_of
from locus_memory.retrieval.ranking.absolute import check_min_score
from locus_memory.store.filters import parse_filter

__all__ = ["Selection"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The memories that count.

    Attributes:
        type: Their type; `None`: any.
        filter: A filter on their fields, or `None`.
        min_score: Their lowest relevance, from 0 to 1; `None`: any.
        origins: Their origins; `None`: any.
        of_type: The most of each type, the best first; `None`: any number.

    Raises:
        InvalidArgumentError: `min_score` is not a number from 0 to 1, or an origin is unknown.
        InvalidFilterError: The filter is invalid.
    """

    type: MemoryType | None = None
    filter: Mapping[str, Any] | None = None
    min_score: float | None = None
    origins: Iterable[Origin | str] | None = None
    of_type: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "origins", as_origins(self.origins))
        check_min_score(self.min_score)
        if self.filter is not None:
            parse_filter(self.filter)

    @property
    def condition(self) -> Mapping[str, Any] | None:
        """The filter on the items of the store."""
        found: list[Mapping[str, Any]] = []
        if self.type is not None:
            # Memories of another library may have no type in their value; their key has it.
            found.append({"$or": [{"type": self.type.value}, {"type": {"$exists": False}}]})
        if self.origins is not None:
            # A memory whose origin is missing or unknown is the user's.
            own = Origin.USER in self.origins
            named = [each.value for each in Origin if (each in self.origins) is not own]
            found.append({f"metadata.{ORIGIN}": {"$nin" if own else "$in": named}})
        if self.filter is not None:
            found.append(self.filter)
        return {"$and": found} if found[1:] else next(iter(found), None)

    def has(self, memory: Memory) -> bool:
        """Return whether a memory is of the type and the origins."""
        of_origin = self.origins is None or origin_of(memory) in self.origins
        return of_origin and self.type in (None, memory.type)
