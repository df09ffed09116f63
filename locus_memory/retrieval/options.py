"""The options of hybrid search, in one frozen value."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from locus_memory._internal.options import check_fields, check_ranges
from locus_memory.errors import ConfigurationError

__all__ = ["SearchOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """The weights of the ranking; the defaults suit all data, and small changes matter little.

    A candidate's evidence is the weighted sum of its text score, its vector score (each scaled to 0
    to 1) and the match of its own words; `docs/retrieval.md` shows the effect of each part.

    Attributes:
        depth: How many candidates each search fetches.
        text_weight: The weight of the text search, which also sees a turn's neighbours.
        vector_weight: The weight of the vector search.
        word_weight: The weight of the item's own words, without neighbours.
        neighbour_weight: The weight of a good neighbour of a short item in a conversation.
        speaker_boost: The factor for items of a speaker or a role that the query names, or of the
            user or the assistant whom it means.
        date_boost: The factor for items of a date that the query names.
        rerank_depth: How many of the best hits the reranker sees.
        rerank_weight: The weight of its score; that of the hybrid score is 1.

    Raises:
        ConfigurationError: A negative or infinite number, or no depth.
    """

    depth: int = 100
    text_weight: float = 1.0
    vector_weight: float = 1.0
    word_weight: float = 0.5
    neighbour_weight: float = 0.3
    speaker_boost: float = 1.5
    date_boost: float = 2.0
    rerank_depth: int = 50
    rerank_weight: float = 1.0

    def __post_init__(self) -> None:
        check_fields(self)
        names = [field.name for field in fields(self)]
        check_ranges("SearchOptions", self, {**dict.fromkeys(names, 0), "depth": 1})
        if math.inf in map(self.__getattribute__, names):
            raise ConfigurationError("SearchOptions: the weights are finite")
