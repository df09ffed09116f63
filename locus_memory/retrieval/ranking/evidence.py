"""The evidence for each candidate of a ranking: the parts of its score; pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from locus_memory.retrieval.options import SearchOptions
from locus_memory.retrieval.ranking.asker import meant
from locus_memory.retrieval.ranking.explain import Explanation
from locus_memory.retrieval.ranking.fields import Passage
from locus_memory.retrieval.ranking.fusion import min_max, search_weights
from locus_memory.retrieval.ranking.query import Query
from locus_memory.retrieval.ranking.score import (
    date_factor,
    neighbour_gains,
    neighbour_share,
    speaker_factor,
    word_scores,
)
from locus_memory.store.candidates import Candidate

__all__ = ["Evidence", "SearchHits"]


@dataclass(frozen=True, slots=True)
class SearchHits:
    """The hits of one search, by the numbers of the candidates.

    Attributes:
        places: Their ranks, from 1.
        scores: The engine's scores.
        worth: The contribution of each hit; that of the best is 1.
    """

    places: dict[int, int]
    scores: dict[int, float]
    worth: dict[int, float]

    @classmethod
    def of(
        cls,
        found: Mapping[int, Candidate],
        numbers: Sequence[int],
        options: SearchOptions,
        *,
        lowest: float = math.inf,
    ) -> SearchHits:
        """Return the hits of a search, by rank from 1, under the numbers of the candidates.

        Args:
            found: The hits, by rank.
            numbers: The numbers of the candidates.
            options: The kind of fusion.
            lowest: The score that contributes nothing; by default that of the last hit.
        """
        places = dict(zip(numbers, found, strict=True))
        listed = zip(numbers, found.values(), strict=True)
        scores = {number: score for number, (_, score) in listed}
        if options.fusion == "weighted":
            worth = min_max(scores, lowest=lowest)
        else:
            # Reciprocal ranks, on the scale of the other parts.
            k = options.rrf_k
            worth = {number: (k + 1) / (k + place) for number, place in places.items()}
        return cls(places, scores, worth)

    def weighted(self, weight: float) -> SearchHits:
        """Return the hits with their contributions multiplied."""
        worth = {number: weight * each for number, each in self.worth.items()}
        return SearchHits(self.places, self.scores, worth)


class _Factors(NamedTuple):
    """The factors of one candidate: for its speaker and its date."""

    speaker: float
    day: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence for each candidate, by their numbers.

    Attributes:
        text: The contribution of the text search.
        vector: The contribution of the vector search.
        words: The contribution of the candidate's own words.
        neighbour: The contribution of the better of its neighbours.
        factors: The factors of each candidate.
    """

    text: SearchHits
    vector: SearchHits
    words: Sequence[float]
    neighbour: Sequence[float]
    factors: Sequence[_Factors]

    @classmethod
    def of(
        cls,
        query: Query,
        searches: tuple[SearchHits, SearchHits],
        passages: Sequence[Passage],
        shares: Sequence[float],
        options: SearchOptions,
        *,
        dated: Sequence[float] | None = None,
    ) -> Evidence:
        """Return the evidence for the candidates of a query.

        Args:
            query: The parsed question.
            searches: The hits of the text search and of the vector search.
            passages: The fields of the candidates.
            shares: The share of the query's words that each has; empty: the query has none.
            options: The weights.
            dated: How far each has the date of the query; `None`: it names none.
        """
        text, vector = _weighted(searches, shares, options)
        words = _own_words(query, passages, dated, options)
        own = [
            text.worth.get(number, 0.0) + vector.worth.get(number, 0.0) + worth
            for number, worth in enumerate(words)
        ]
        gains = neighbour_gains(own, [each.place for each in passages])
        weight = options.neighbour_weight
        weight *= neighbour_share([each.text for each in passages], options)
        return cls(
            text=text,
            vector=vector,
            words=words,
            neighbour=[weight * gain for gain in gains],
            factors=_factors(query, passages, options),
        )

    def boosts(self) -> list[float]:
        """Return the factors that a reranker does not see in a text: speaker and date."""
        return [each.speaker * each.day for each in self.factors]

    def scores(self) -> list[float]:
        """Return the score of each candidate, higher is better."""
        text, vector = self.text.worth, self.vector.worth
        parts = zip(self.words, self.neighbour, self.factors, strict=True)
        return [
            (text.get(number, 0.0) + vector.get(number, 0.0) + words + neighbour)
            * (factors.speaker * factors.day)
            for number, (words, neighbour, factors) in enumerate(parts)
        ]

    def explain(self, number: int) -> Explanation:
        """Return the parts of the score of a candidate."""
        factors = self.factors[number]
        return Explanation(
            text_rank=self.text.places.get(number),
            text_score=self.text.scores.get(number),
            vector_rank=self.vector.places.get(number),
            vector_score=self.vector.scores.get(number),
            text=self.text.worth.get(number, 0.0),
            vector=self.vector.worth.get(number, 0.0),
            words=self.words[number],
            neighbour=self.neighbour[number],
            speaker=factors.speaker,
            date=factors.day,
        )


def _weighted(
    searches: tuple[SearchHits, SearchHits], shares: Sequence[float], options: SearchOptions
) -> tuple[SearchHits, SearchHits]:
    text, vector = searches
    factors = search_weights(shares, text.scores, vector.scores) if options.adaptive else (1, 1)
    return (
        text.weighted(options.text_weight * factors[0]),
        vector.weighted(options.vector_weight * factors[1]),
    )


def _own_words(
    query: Query,
    passages: Sequence[Passage],
    dated: Sequence[float] | None,
    options: SearchOptions,
) -> Sequence[float]:
    if not options.word_weight:
        return [0.0] * len(passages)
    documents = [each.words for each in passages]
    scores = word_scores(query.words, documents, passage=options.passage_words, dated=dated)
    return [options.word_weight * score for score in scores]


def _factors(
    query: Query, passages: Sequence[Passage], options: SearchOptions
) -> Sequence[_Factors]:
    # Far fewer speakers and days than candidates.
    known = {each.speakers for each in passages}
    asked = meant(query.person, known) if any(known) else frozenset[tuple[str, ...]]()
    speakers = {
        each: speaker_factor(query, each, options) * (options.asker_boost if each in asked else 1.0)
        for each in known
    }
    days = {each: date_factor(query, each, options) for each in {each.day for each in passages}}
    return [_Factors(speakers[each.speakers], days[each.day]) for each in passages]
