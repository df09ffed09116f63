"""The ranking of the candidates of two searches; no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import NamedTuple

from locus_memory.retrieval.embedders.scale import Scale
from locus_memory.retrieval.options import SearchOptions
from locus_memory.retrieval.ranking.absolute import Nearness, relevances
from locus_memory.retrieval.ranking.explain import Explanation
from locus_memory.retrieval.ranking.fields import Fields, Passage
from locus_memory.retrieval.ranking.fusion import min_max
from locus_memory.retrieval.ranking.mmr import maximal_marginal_relevance, word_overlap
from locus_memory.retrieval.ranking.query import Query
from locus_memory.retrieval.ranking.score import (
    date_factor,
    neighbour_gains,
    speaker_factor,
    word_scores,
)
from locus_memory.retrieval.ranking.supersession import Standing, prefer_successors
from locus_memory.store.candidates import Candidate
from locus_memory.store.item import Namespace, StoreItem

__all__ = ["Name", "Ranked", "blend", "prefer_current", "rank"]

Name = tuple[Namespace, str]
"""The identity of an item: namespace and key."""


class Ranked(NamedTuple):
    """A ranked candidate.

    Attributes:
        item: The item as the store returned it.
        passage: The fields that the ranking used.
        score: Higher is better.
        boost: The factor of speaker and date in the score.
        relevance: From 0 to 1; the same in every search.
        parts: The parts of the score, if requested.
        nearness: The cosine on the scale of the model, from 0 to 1; `None`: there is none.
    """

    item: StoreItem
    passage: Passage
    score: float
    boost: float = 1.0
    relevance: float = 0.0
    parts: Explanation | None = None
    nearness: float | None = None


def rank(
    query: Query,
    by_text: Mapping[int, Candidate],
    by_vector: Mapping[int, Candidate],
    *,
    options: SearchOptions,
    fields: Fields,
    nearness: Nearness | None = None,
    read: Callable[[StoreItem], Passage] | None = None,
    explain: bool = False,
) -> list[Ranked]:
    """Return the union of the hits of two searches, the best first.

    Args:
        query: The parsed question.
        by_text: The hits of the text search, by rank, from 1.
        by_vector: The hits of the vector search, by rank, from 1.
        options: The weights.
        fields: The names of the fields for speaker, date and place.
        nearness: The cosines, for the relevance; `None`: there was no vector search.
        read: Replaces `fields.read`, which is the default.
        explain: Whether to add the parts of each score, which takes time.
    """
    items: list[StoreItem] = []
    numbers: dict[Name, int] = {}
    text_numbers = _numbered(by_text.values(), numbers, items)
    vector_numbers = _numbered(by_vector.values(), numbers, items)
    passages = list(map(read or fields.read, items))
    made = _Evidence.of(
        query,
        _Search.of(by_text, text_numbers, options.text_weight, options),
        _Search.of(by_vector, vector_numbers, options.vector_weight, options),
        passages,
        options,
    )
    scores, boosts = made.scores(), made.boosts()
    dense = [None if nearness is None else nearness.of(name) for name in numbers]
    relevant = relevances(query.words, passages, dense)
    ranking = [
        Ranked(item, passage, score, boost, each, None, near)
        for item, passage, score, boost, each, near in zip(
            items, passages, scores, boosts, relevant, dense, strict=True
        )
    ]
    if explain:
        ranking = [each._replace(parts=made.explain(n)) for n, each in enumerate(ranking)]
    ranking.sort(key=_score, reverse=True)
    if options.mmr_balance is not None:
        ranking = _diverse(ranking, options.mmr_balance)
    return prefer_current(ranking, fields)


def _numbered(
    found: Iterable[Candidate], numbers: dict[Name, int], items: list[StoreItem]
) -> list[int]:
    """Return the number of each found item; new ones get the next number."""
    given: list[int] = []
    for item, _ in found:
        number = numbers.setdefault((item.namespace, item.key), len(items))
        if number == len(items):
            items.append(item)
        given.append(number)
    return given


def prefer_current(ranking: list[Ranked], fields: Fields) -> list[Ranked]:
    """Return the ranking in which no item is above one that supersedes it.

    An item that supersedes a better one takes its place, and the better score and relevance of the
    two; the better one follows it.
    """
    if not any(each.passage.linked for each in ranking):
        return ranking
    return [
        _standing(ranking, each)
        for each in prefer_successors([each.item for each in ranking], fields=fields)
    ]


def _standing(ranking: Sequence[Ranked], standing: Standing) -> Ranked:
    ranked = ranking[standing.place]
    risen = ranked if standing.instead_of is None else ranking[standing.instead_of]
    score = max(ranked.score, risen.score)
    relevance = max(ranked.relevance, risen.relevance)
    if ranked.parts is None:
        return ranked._replace(score=score, relevance=relevance)
    gained = ranked.parts.succession
    # The parts belong to the score before reranking.
    if ranked.parts.rerank is None:
        gained += score - ranked.score
    by = None if standing.below is None else ranking[standing.below].item.key
    parts = replace(ranked.parts, succession=gained, superseded_by=by)
    return ranked._replace(score=score, relevance=relevance, parts=parts)


_score = attrgetter("score")


@dataclass(frozen=True, slots=True)
class _Search:
    """The hits of one search, by the numbers of the candidates.

    Attributes:
        places: Their ranks, from 1.
        scores: The engine's scores.
        worth: The contribution of each hit; that of the best is the weight of the search.
    """

    places: dict[int, int]
    scores: dict[int, float]
    worth: dict[int, float]

    @classmethod
    def of(
        cls,
        found: Mapping[int, Candidate],
        numbers: Sequence[int],
        weight: float,
        options: SearchOptions,
    ) -> _Search:
        places = dict(zip(numbers, found, strict=True))
        listed = zip(numbers, found.values(), strict=True)
        scores = {number: score for number, (_, score) in listed}
        if options.fusion == "weighted":
            worth = min_max(scores)
        else:
            # Reciprocal ranks, on the scale of the other parts.
            k = options.rrf_k
            worth = {number: (k + 1) / (k + place) for number, place in places.items()}
        return cls(places, scores, {number: weight * each for number, each in worth.items()})


@dataclass(frozen=True, slots=True)
class _Evidence:
    """The evidence for each candidate, by their numbers.

    Attributes:
        text: The contribution of the text search.
        vector: The contribution of the vector search.
        words: The contribution of the candidate's own words.
        neighbour: The contribution of the better of its neighbours.
        speaker: The factor for its speaker.
        day: The factor for its date.
    """

    text: _Search
    vector: _Search
    words: Sequence[float]
    neighbour: Sequence[float]
    speaker: Sequence[float]
    day: Sequence[float]

    @classmethod
    def of(
        cls,
        query: Query,
        text: _Search,
        vector: _Search,
        passages: Sequence[Passage],
        options: SearchOptions,
    ) -> _Evidence:
        words = _own_words(query, passages, options)
        own = [
            text.worth.get(number, 0.0) + vector.worth.get(number, 0.0) + worth
            for number, worth in enumerate(words)
        ]
        gains = neighbour_gains(own, [each.place for each in passages])
        # Far fewer speakers than candidates.
        speakers = {each.speakers for each in passages}
        named = {each: speaker_factor(query, each, options) for each in speakers}
        return cls(
            text=text,
            vector=vector,
            words=words,
            neighbour=[options.neighbour_weight * gain for gain in gains],
            speaker=[named[each.speakers] for each in passages],
            day=[date_factor(query, each.day, options) for each in passages]
            if query.dates
            else [1.0] * len(passages),
        )

    def boosts(self) -> list[float]:
        return [speaker * day for speaker, day in zip(self.speaker, self.day, strict=True)]

    def scores(self) -> list[float]:
        text, vector = self.text.worth, self.vector.worth
        parts = zip(self.words, self.neighbour, self.speaker, self.day, strict=True)
        return [
            (text.get(number, 0.0) + vector.get(number, 0.0) + words + neighbour) * speaker * day
            for number, (words, neighbour, speaker, day) in enumerate(parts)
        ]

    def explain(self, number: int) -> Explanation:
        return Explanation(
            text_rank=self.text.places.get(number),
            text_score=self.text.scores.get(number),
            vector_rank=self.vector.places.get(number),
            vector_score=self.vector.scores.get(number),
            text=self.text.worth.get(number, 0.0),
            vector=self.vector.worth.get(number, 0.0),
            words=self.words[number],
            neighbour=self.neighbour[number],
            speaker=self.speaker[number],
            date=self.day[number],
        )


def _own_words(
    query: Query, passages: Sequence[Passage], options: SearchOptions
) -> Sequence[float]:
    if not options.word_weight:
        return [0.0] * len(passages)
    scores = word_scores(query.words, [each.words for each in passages])
    return [options.word_weight * score for score in scores]


def _diverse(ranked: list[Ranked], balance: float) -> list[Ranked]:
    words = [frozenset(each.passage.words.counts) for each in ranked]
    stretched = min_max({place: each.score for place, each in enumerate(ranked)})
    order = maximal_marginal_relevance(
        list(stretched.items()),
        lambda first, second: word_overlap(words[first], words[second]),
        limit=len(ranked),
        balance=balance,
    )
    return [ranked[place] for place in order]


def blend(
    ranked: Sequence[Ranked],
    scores: Sequence[float],
    weight: float,
    scale: Scale | None = None,
) -> list[Ranked]:
    """Return the ranking with its first items reordered by a reranker's scores.

    Both scorings are scaled to 0 to 1 and added. A reranker sees only a text, so its scores get the
    boosts for speakers and dates as well. The sum is scaled back to the former range of the
    reranked items, so that no item that was not reranked overtakes one.

    Args:
        ranked: The ranking.
        scores: The reranker's scores of the first `len(scores)` items, higher is better.
        weight: The weight of these scores; that of the hybrid score is 1.
        scale: The scale of these scores, which then decide the relevance; `None`: it is unknown.
    """
    seen, rest = ranked[: len(scores)], ranked[len(scores) :]
    before = min_max({place: each.score for place, each in enumerate(seen)})
    bare = min_max(dict(enumerate(scores)))
    after = min_max({place: score * seen[place].boost for place, score in bare.items()})
    low = min((each.score for each in seen), default=0.0)
    high = max((each.score for each in seen), default=0.0)
    blended = [
        each._replace(
            score=low + (high - low) * (before[place] + weight * after[place]) / (1 + weight),
            relevance=each.relevance if scale is None else scale.place(scores[place]),
            parts=each.parts and replace(each.parts, rerank=scores[place]),
        )
        for place, each in enumerate(seen)
    ]
    blended.sort(key=_score, reverse=True)
    return [*blended, *rest]
