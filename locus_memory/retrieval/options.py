"""The options of hybrid search, in one frozen value."""

from __future__ import annotations

import math
import warnings
from dataclasses import InitVar, dataclass, fields
from typing import Any, Final

from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError

__all__ = ["SearchOptions"]

_WHOLE: Final = ("depth", "rerank_depth")
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
        for field in fields(self):
            _check(field.name, getattr(self, field.name))
        if self.depth < 1:
            raise ConfigurationError("depth is at least 1")


def _check(name: str, value: Any) -> None:
    kinds = int if name in _WHOLE else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise ConfigurationError(f"{name} is a number, not {quote(value)}")
    if not 0 <= value < math.inf:
        raise ConfigurationError(f"{name} is a finite number of at least 0, not {quote(value)}")
