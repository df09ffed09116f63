"""The options of hybrid search, in one frozen value."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Literal

from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError

__all__ = ["SearchOptions"]

_FUSIONS = ("weighted", "rrf")
_WHOLE = ("depth", "query_words", "passage_words", "neighbour_words", "date_slack", "rerank_depth")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """The weights of the ranking; the defaults suit all data, and small changes matter little.

    The ranking adapts them to the candidates of each query; `docs/retrieval.md` says how.

    A candidate's evidence is the weighted sum of its text score, its vector score (each scaled to 0
    to 1) and the match of its own words; `docs/retrieval.md` shows the effect of each part.

    Attributes:
        depth: How many candidates each search fetches.
        query_words: How many words of a query are searched; of more, the longest.
        fusion: `weighted`: scores are added; `rrf`: only ranks count.
        rrf_k: A higher value gives the first ranks less weight, for `rrf`.
        text_weight: The weight of the text search, which also sees a turn's neighbours.
        vector_weight: The weight of the vector search.
        word_weight: The weight of the item's own words, without neighbours.
        adaptive: Whether both searches weigh less for a query that they answer badly; see
            `locus_memory.retrieval.ranking.fusion`.
        passage_words: A longer text counts by its best passage of about this many words; 0: whole.
        neighbour_weight: The weight of a good neighbour of the item in a conversation.
        neighbour_words: If the candidates are longer on average, neighbours weigh less in
            proportion; 0: they weigh the same.
        speaker_boost: The factor for items of a speaker or a role that the query names.
        asker_boost: The factor for items of the user or the assistant, if the query means one of
            them by "I" or "you".
        date_boost: The factor for items of a date that the query names.
        date_slack: How many days beside a named day still count, the less the further.
        mmr_balance: Reorders the results so that they do not repeat one another, 1 for not at
            all; `None`: off.
        rerank_depth: How many of the best hits the reranker sees.
        rerank_weight: The weight of its score; that of the hybrid score is 1.

    Raises:
        ConfigurationError: A negative or infinite number, no depth, no words, or an unknown
            fusion.
    """

    depth: int = 100
    query_words: int = 32
    fusion: Literal["weighted", "rrf"] = "weighted"
    rrf_k: float = 10
    text_weight: float = 1.0
    vector_weight: float = 1.0
    word_weight: float = 0.5
    adaptive: bool = True
    passage_words: int = 30
    neighbour_weight: float = 0.3
    neighbour_words: int = 40
    speaker_boost: float = 1.75
    asker_boost: float = 1.3
    date_boost: float = 2.0
    date_slack: int = 3
    mmr_balance: float | None = None
    rerank_depth: int = 50
    rerank_weight: float = 1.0

    def __post_init__(self) -> None:
        if self.fusion not in _FUSIONS:
            raise ConfigurationError(f"fusion is 'weighted' or 'rrf', not {quote(self.fusion)}")
        for field in fields(self):
            _check(field.name, getattr(self, field.name))
        if self.depth < 1 or self.query_words < 1 or (self.mmr_balance or 0) > 1:
            raise ConfigurationError(
                "depth and query_words are at least 1, and mmr_balance is at most 1"
            )


def _check(name: str, value: Any) -> None:
    if name == "fusion" or (name == "mmr_balance" and value is None):
        return
    if name == "adaptive":
        if not isinstance(value, bool):
            raise ConfigurationError(f"{name} is True or False, not {quote(value)}")
        return
    whole = name in _WHOLE
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        raise ConfigurationError(f"{name} is a number, not {quote(value)}")
    if not 0 <= value < math.inf:
        raise ConfigurationError(f"{name} is a finite number of at least 0, not {quote(value)}")
