"""The evidence for each candidate of a ranking: the parts of its score; pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from locus_memory.retrieval.options import SearchOptions
from locus_memory.retrieval.ranking.asker import meant
from locus_memory.retrieval.ranking.fields import Passage
from locus_memory.retrieval.ranking.fusion import min_max
from locus_memory.retrieval.ranking.query import Query
from locus_memory.retrieval.ranking.score import neighbour_gains, word_scores

__all__ = ["Evidence", "evidence"]


class Evidence(NamedTuple):
    """The parts of the score of a candidate.

    Attributes:
        text: The contribution of the text search.
        vector: The contribution of the vector search.
        words: The contribution of the candidate's own words.
        neighbour: The contribution of the better of its neighbours.
        speaker: The factor of its speaker.
        date: The factor of its date.
    """

    text: float
    vector: float
    words: float
    neighbour: float
    speaker: float
    date: float

    @property
    def boost(self) -> float:
        """The factor that a reranker does not see in a text."""
        return self.speaker * self.date

    @property
    def score(self) -> float:
        """The score, higher is better."""
        return (self.text + self.vector + self.words + self.neighbour) * self.boost


def evidence(
    query: Query,
    searches: tuple[Mapping[int, float], Mapping[int, float]],
    passages: Sequence[Passage],
    shares: Sequence[float],
    options: SearchOptions,
) -> list[Evidence]:
    """Return the evidence for each candidate of a query.

    The scores of a text search are stretched for each query: the best hit has a high one even if it
    has only one word of a long message. So words count by how much of the query is known: the
    square root of the share of its words that the best candidate has, which is one word at least:
    text search has found it, perhaps in a neighbour.

    Args:
        query: The parsed question.
        searches: The scores of the text search and of the vector search, by the numbers of the
            candidates.
        passages: The fields of the candidates.
        shares: The share of the query's words that each has; empty: the query has none.
        options: The weights.
    """
    known = math.sqrt(max([1 / max(1, len(query.meanings)), *shares]))
    # A text without a word of the query has 0.
    by_text, by_vector = min_max(searches[0], lowest=0.0), min_max(searches[1])
    text = [known * options.text_weight * by_text.get(n, 0.0) for n in range(len(passages))]
    vector = [options.vector_weight * by_vector.get(n, 0.0) for n in range(len(passages))]
    weight = known * options.word_weight
    own = word_scores(query.words if weight else (), [each.words for each in passages])
    words = [weight * score for score in own]
    gains = neighbour_gains(list(map(sum, zip(text, vector, words, strict=True))), passages)
    neighbours = [options.neighbour_weight * gain for gain in gains]
    speakers = _speakers(query, passages, options)
    days = _days(query, passages, options)
    return list(map(Evidence, text, vector, words, neighbours, speakers, days))


def _speakers(query: Query, passages: Sequence[Passage], options: SearchOptions) -> list[float]:
    """Return the factor of each item: more than 1 for who is named by the query, or else meant."""
    # Far fewer speakers than candidates.
    known = {each.speakers for each in passages}
    if not any(known):
        return [1.0] * len(passages)
    named = frozenset(each for each in known if any(map(query.mentions, each)))
    wanted = named or meant(query.person, known)
    return [options.speaker_boost if each.speakers in wanted else 1.0 for each in passages]


def _days(query: Query, passages: Sequence[Passage], options: SearchOptions) -> list[float]:
    """Return the factor of each item: more than 1 for a day that the query names."""
    if not query.dates:
        return [1.0] * len(passages)
    days = {each.day for each in passages}
    named = {day for day in days if day and any(each.covers(day) for each in query.dates)}
    return [options.date_boost if each.day in named else 1.0 for each in passages]
