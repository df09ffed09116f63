"""What makes one candidate better than another, beside the engines' own scores."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Final, TypeVar

from locus_memory.retrieval.fields import Place
from locus_memory.retrieval.options import SearchOptions
from locus_memory.retrieval.query import Query

__all__ = ["date_factor", "neighbour_gains", "speaker_factor", "word_scores"]

_T = TypeVar("_T")

_K1: Final = 1.2
_B: Final = 0.75


def word_scores(words: Sequence[str], documents: Mapping[_T, Sequence[str]]) -> dict[_T, float]:
    """Return how well the words of each document match, from 0 to 1, the best at 1.

    The formula is BM25's with the candidates as the collection: S. Robertson, H. Zaragoza,
    "The probabilistic relevance framework: BM25 and beyond", 2009,
    https://doi.org/10.1561/1500000019, with k1 = 1.2 and b = 0.75.

    Args:
        words: Stems to look for, each once.
        documents: The stems of each candidate, repeats included.
    """
    wanted = frozenset(words)
    counts = {
        name: Counter(word for word in document if word in wanted)
        for name, document in documents.items()
        if not wanted.isdisjoint(document)
    }
    spread = Counter(word for count in counts.values() for word in count)
    total = len(documents)
    rarity = {
        word: math.log(1 + (total - found + 0.5) / (found + 0.5)) for word, found in spread.items()
    }
    mean = sum(map(len, documents.values())) / (total or 1)
    scores = dict.fromkeys(documents, 0.0)
    for name, count in counts.items():
        for word, times in count.items():
            scores[name] += rarity[word] * _saturated(times, len(documents[name]) / mean)
    best = max(scores.values(), default=0.0)
    return {name: score / best for name, score in scores.items()} if best > 0 else scores


def _saturated(times: int, length: float) -> float:
    return times * (_K1 + 1) / (times + _K1 * (1 - _B + _B * length))


def neighbour_gains(
    evidence: Mapping[_T, float], places: Mapping[_T, Place | None]
) -> dict[_T, float]:
    """Return for each item the evidence of the better of the two beside it; 0 without one.

    Args:
        evidence: How good each candidate is.
        places: Where each stands in its conversation, if in one.
    """
    by_place = {place: evidence[name] for name, place in places.items() if place is not None}
    gains: dict[_T, float] = {}
    for name, place in places.items():
        if place is None:
            gains[name] = 0.0
            continue
        namespace, session, position = place
        before = by_place.get((namespace, session, position - 1), 0.0)
        gains[name] = max(before, by_place.get((namespace, session, position + 1), 0.0))
    return gains


def speaker_factor(query: Query, speakers: Iterable[str], options: SearchOptions) -> float:
    """Return the boost of what a speaker, or a role, said whom the query names; else 1."""
    return options.speaker_boost if any(map(query.mentions, speakers)) else 1.0


def date_factor(query: Query, day: date | None, options: SearchOptions) -> float:
    """Return the boost of what was said on a date that the query names; else 1."""
    if day is None or not query.dates:
        return 1.0
    named = any(period.covers(day, slack=options.date_slack) for period in query.dates)
    return options.date_boost if named else 1.0
