"""The options of hybrid search, in one frozen value."""

from __future__ import annotations

import math
import warnings
from dataclasses import InitVar, dataclass, fields
from typing import Final

from locus_memory._internal.options import check_fields, check_ranges
from locus_memory.errors import ConfigurationError

__all__ = ["SearchOptions"]

_GONE: Final = (
    *("query_words", "fusion", "rrf_k", "adaptive", "passage_words", "neighbour_words"),
    *("asker_boost", "date_slack", "mmr_balance"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """The weights of the ranking; the defaults suit all data, and small changes matter little.

    A candidate's evidence is the weighted sum of its text score, its vector score (each scaled to 0
    to 1) and the match of its own words; `docs/retrieval.md` shows the effect of each part.

    `query_words`, `fusion`, `rrf_k`, `adaptive`, `passage_words`, `neighbour_words`, `asker_boost`,
    `date_slack` and `mmr_balance` have no effect any more; each is a `DeprecationWarning`.

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
    query_words: InitVar[object] = None
    fusion: InitVar[object] = None
    rrf_k: InitVar[object] = None
    adaptive: InitVar[object] = None
    passage_words: InitVar[object] = None
    neighbour_words: InitVar[object] = None
    asker_boost: InitVar[object] = None
    date_slack: InitVar[object] = None
    mmr_balance: InitVar[object] = None

    def __post_init__(self, *gone: object) -> None:
        told = [name for name, value in zip(_GONE, gone, strict=True) if value is not None]
        if told:
            what = f"without effect in SearchOptions: {', '.join(told)}"
            warnings.warn(what, DeprecationWarning, stacklevel=3)
        check_fields(self)
        names = [field.name for field in fields(self)]
        check_ranges("SearchOptions", self, {**dict.fromkeys(names, 0), "depth": 1})
        if math.inf in map(self.__getattribute__, names):
            raise ConfigurationError("SearchOptions: the weights are finite")
