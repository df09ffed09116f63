"""From the candidates of two searches to one ranking; no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import NamedTuple

from locus_memory.retrieval.explain import Explanation
from locus_memory.retrieval.fields import Fields, Passage, words_of
from locus_memory.retrieval.fusion import min_max
from locus_memory.retrieval.mmr import maximal_marginal_relevance, word_overlap
from locus_memory.retrieval.options import SearchOptions
from locus_memory.retrieval.query import Query
from locus_memory.retrieval.score import (
    date_factor,
    neighbour_gains,
    speaker_factor,
    word_scores,
)
from locus_memory.retrieval.supersession import Standing, prefer_successors
from locus_memory.store.item import Namespace, StoreItem

__all__ = ["Name", "Ranked", "blend", "prefer_current", "rank"]

Name = tuple[Namespace, str]
"""What tells items apart: namespace and key."""


class Ranked(NamedTuple):
    """A candidate that has been ranked.

    Attributes:
        item: The item as the store returned it.
        passage: What the ranking saw of it.
        score: Higher is better.
        boost: The factor of speaker and date that is in the score.
        parts: What the score is made of, if that was asked for.
    """

    item: StoreItem
    passage: Passage
    score: float
    boost: float = 1.0
    parts: Explanation | None = None


def rank(
    query: Query,
    by_text: Mapping[int, StoreItem],
    by_vector: Mapping[int, StoreItem],
    *,
    options: SearchOptions,
    fields: Fields,
    explain: bool = False,
) -> list[Ranked]:
    """Return the union of what two searches found, the best first.

    Args:
        query: The question, taken apart.
        by_text: The hits of the text search, by their place there, from 1.
        by_vector: The hits of the vector search, by their place there, from 1.
        options: What counts how much.
        fields: Where items tell their speaker, date and place.
        explain: Whether to say what each score is made of, which takes time.
    """
    items = {_name(item): item for item in (*by_text.values(), *by_vector.values())}
    passages = {name: fields.read(item) for name, item in items.items()}
    made = _Evidence.of(query, by_text, by_vector, passages, options)
    ranking = [
        Ranked(items[name], passage, made.score(name), made.boosts[name][0] * made.boosts[name][1])
        for name, passage in passages.items()
    ]
    ranking.sort(key=_score, reverse=True)
    if options.mmr_balance is not None:
        ranking = _diverse(ranking, options.mmr_balance)
    if explain:
        ranking = [each._replace(parts=made.explain(_name(each.item))) for each in ranking]
    return prefer_current(ranking, fields)


def prefer_current(ranking: list[Ranked], fields: Fields) -> list[Ranked]:
    """Return the ranking with nothing above what supersedes it.

    What supersedes a better item takes its place and its score; that comes directly after.
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
    if ranked.parts is None:
        return ranked._replace(score=score)
    gained = ranked.parts.succession
    # The parts are those of the score before reranking.
    if ranked.parts.rerank is None:
        gained += score - ranked.score
    by = None if standing.below is None else ranking[standing.below].item.key
    parts = replace(ranked.parts, succession=gained, superseded_by=by)
    return ranked._replace(score=score, parts=parts)


_score = attrgetter("score")


def _name(item: StoreItem) -> Name:
    return item.namespace, item.key


@dataclass(frozen=True, slots=True)
class _Search:
    """What one search says of the items it found.

    Attributes:
        places: Their ranks, from 1.
        scores: The engine's scores.
        worth: What each hit contributes, the weight of the search for the best.
    """

    places: dict[Name, int]
    scores: dict[Name, float]
    worth: dict[Name, float]

    @classmethod
    def of(cls, found: Mapping[int, StoreItem], weight: float, options: SearchOptions) -> _Search:
        places = {_name(item): place for place, item in found.items()}
        scores = {_name(item): item.score or 0.0 for item in found.values()}
        if options.fusion == "weighted":
            worth = min_max(scores)
        else:
            # Reciprocal ranks, on the scale of the other parts.
            k = options.rrf_k
            worth = {name: (k + 1) / (k + place) for name, place in places.items()}
        return cls(places, scores, {name: weight * each for name, each in worth.items()})


@dataclass(frozen=True, slots=True)
class _Evidence:
    """All that speaks for each candidate.

    Attributes:
        text: What the text search says.
        vector: What the vector search says.
        words: What the candidate's own words are worth.
        neighbour: What the better of its neighbours is worth to it.
        boosts: The factors for its speaker and its date.
    """

    text: _Search
    vector: _Search
    words: Mapping[Name, float]
    neighbour: Mapping[Name, float]
    boosts: Mapping[Name, tuple[float, float]]

    @classmethod
    def of(
        cls,
        query: Query,
        by_text: Mapping[int, StoreItem],
        by_vector: Mapping[int, StoreItem],
        passages: Mapping[Name, Passage],
        options: SearchOptions,
    ) -> _Evidence:
        text = _Search.of(by_text, options.text_weight, options)
        vector = _Search.of(by_vector, options.vector_weight, options)
        words = _own_words(query, passages, options)
        own = {
            name: text.worth.get(name, 0.0) + vector.worth.get(name, 0.0) + words[name]
            for name in passages
        }
        gains = neighbour_gains(own, {name: each.place for name, each in passages.items()})
        weight = options.neighbour_weight
        # Far fewer speakers than candidates.
        speakers = {each.speakers for each in passages.values()}
        named = {each: speaker_factor(query, each, options) for each in speakers}
        return cls(
            text=text,
            vector=vector,
            words=words,
            neighbour={name: weight * gain for name, gain in gains.items()},
            boosts={
                name: (named[each.speakers], date_factor(query, each.day, options))
                for name, each in passages.items()
            },
        )

    def score(self, name: Name) -> float:
        evidence = self.text.worth.get(name, 0.0) + self.vector.worth.get(name, 0.0)
        speaker, day = self.boosts[name]
        return (evidence + self.words[name] + self.neighbour[name]) * speaker * day

    def explain(self, name: Name) -> Explanation:
        speaker, day = self.boosts[name]
        return Explanation(
            text_rank=self.text.places.get(name),
            text_score=self.text.scores.get(name),
            vector_rank=self.vector.places.get(name),
            vector_score=self.vector.scores.get(name),
            text=self.text.worth.get(name, 0.0),
            vector=self.vector.worth.get(name, 0.0),
            words=self.words[name],
            neighbour=self.neighbour[name],
            speaker=speaker,
            date=day,
        )


def _own_words(
    query: Query, passages: Mapping[Name, Passage], options: SearchOptions
) -> dict[Name, float]:
    if not options.word_weight:
        return dict.fromkeys(passages, 0.0)
    scores = word_scores(
        query.words, {name: words_of(each.text) for name, each in passages.items()}
    )
    return {name: options.word_weight * score for name, score in scores.items()}


def _diverse(ranked: list[Ranked], balance: float) -> list[Ranked]:
    words = [frozenset(words_of(each.passage.text)) for each in ranked]
    stretched = min_max({place: each.score for place, each in enumerate(ranked)})
    order = maximal_marginal_relevance(
        list(stretched.items()),
        lambda first, second: word_overlap(words[first], words[second]),
        limit=len(ranked),
        balance=balance,
    )
    return [ranked[place] for place in order]


def blend(ranked: Sequence[Ranked], scores: Sequence[float], weight: float) -> list[Ranked]:
    """Return the ranking with its first items put in order anew by a reranker's scores.

    Both scorings are stretched over 0 to 1 and added. A reranker sees a text alone, so its
    scores get the boosts for speakers and dates as well. The sum is stretched back over what
    the reranked items spanned before, so that no item that was not reranked overtakes one.

    Args:
        ranked: The ranking.
        scores: The reranker's scores of the first `len(scores)` items, higher is better.
        weight: What they count; the hybrid score counts 1.
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
            parts=each.parts and replace(each.parts, rerank=scores[place]),
        )
        for place, each in enumerate(seen)
    ]
    blended.sort(key=_score, reverse=True)
    return [*blended, *rest]
