"""From the candidates of two searches to one ranking; no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

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
from locus_memory.store.item import Namespace, StoreItem

__all__ = ["Name", "Ranked", "blend", "rank"]

Name = tuple[Namespace, str]
"""What tells items apart: namespace and key."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate that has been ranked.

    Attributes:
        item: The item as the store returned it.
        passage: What the ranking saw of it.
        score: Higher is better.
        parts: What the score is made of.
    """

    item: StoreItem
    passage: Passage
    score: float
    parts: Explanation


def rank(
    query: Query,
    by_text: Mapping[int, StoreItem],
    by_vector: Mapping[int, StoreItem],
    *,
    options: SearchOptions,
    fields: Fields,
) -> list[Ranked]:
    """Return the union of what two searches found, the best first.

    Args:
        query: The question, taken apart.
        by_text: The hits of the text search, by their place there, from 1.
        by_vector: The hits of the vector search, by their place there, from 1.
        options: What counts how much.
        fields: Where items tell their speaker, date and place.
    """
    items = {_name(item): item for item in (*by_text.values(), *by_vector.values())}
    passages = {name: fields.read(item) for name, item in items.items()}
    text = _Search.of(by_text, options.text_weight, options)
    vector = _Search.of(by_vector, options.vector_weight, options)
    words = _own_words(query, passages, options)
    evidence = {
        name: text.worth.get(name, 0.0) + vector.worth.get(name, 0.0) + words[name]
        for name in items
    }
    gains = neighbour_gains(evidence, {name: each.place for name, each in passages.items()})
    speakers = {each.speakers for each in passages.values()}
    named = {each: speaker_factor(query, each, options) for each in speakers}

    def ranked(name: Name) -> Ranked:
        passage = passages[name]
        parts = Explanation(
            text_rank=text.places.get(name),
            text_score=text.scores.get(name),
            vector_rank=vector.places.get(name),
            vector_score=vector.scores.get(name),
            text=text.worth.get(name, 0.0),
            vector=vector.worth.get(name, 0.0),
            words=words[name],
            neighbour=options.neighbour_weight * gains[name],
            speaker=named[passage.speakers],
            date=date_factor(query, passage.day, options),
        )
        return Ranked(items[name], passage, parts.score, parts)

    ranking = sorted(map(ranked, items), key=lambda each: -each.score)
    return ranking if options.mmr_balance is None else _diverse(ranking, options.mmr_balance)


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
    boosts = [each.parts.speaker * each.parts.date for each in seen]
    after = min_max({place: score * boosts[place] for place, score in bare.items()})
    low = min((each.score for each in seen), default=0.0)
    high = max((each.score for each in seen), default=0.0)
    blended = [
        replace(
            each,
            score=low + (high - low) * (before[place] + weight * after[place]) / (1 + weight),
            parts=replace(each.parts, rerank=scores[place]),
        )
        for place, each in enumerate(seen)
    ]
    blended.sort(key=lambda each: -each.score)
    return [*blended, *rest]
