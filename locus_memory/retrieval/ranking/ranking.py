"""The ranking of the candidates of two searches; no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

from locus_memory.retrieval.embedders.scale import Scale
from locus_memory.retrieval.options import SearchOptions
from locus_memory.retrieval.ranking.absolute import Nearness, relevances, shares_of
from locus_memory.retrieval.ranking.evidence import evidence
from locus_memory.retrieval.ranking.explain import Explanation
from locus_memory.retrieval.ranking.fields import Fields, Passage
from locus_memory.retrieval.ranking.fusion import min_max
from locus_memory.retrieval.ranking.query import Query
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
    shares = shares_of(query, passages)
    by_words = {n: each.score for n, each in zip(text_numbers, by_text.values(), strict=True)}
    near = {n: each.score for n, each in zip(vector_numbers, by_vector.values(), strict=True)}
    found = evidence(query, (by_words, near), passages, shares, options)
    dense = [None if nearness is None else nearness.of(name) for name in numbers]
    relevant = relevances(shares, dense)
    ranking = [
        Ranked(item, passage, each.score, each.boost, relevance, None, cosine)
        for item, passage, each, relevance, cosine in zip(
            items, passages, found, relevant, dense, strict=True
        )
    ]
    if explain:
        places = dict(zip(text_numbers, by_text, strict=True))
        nearest = dict(zip(vector_numbers, by_vector, strict=True))
        ranking = [
            each._replace(
                parts=Explanation(
                    text_rank=places.get(n),
                    text_score=by_words.get(n),
                    vector_rank=nearest.get(n),
                    vector_score=near.get(n),
                    **found[n]._asdict(),
                )
            )
            for n, each in enumerate(ranking)
        ]
    ranking.sort(key=_score, reverse=True)
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
