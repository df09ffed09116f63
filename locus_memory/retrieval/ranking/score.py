"""Scores of candidates beside those of the engines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Final

from locus_memory.retrieval.options import SearchOptions
from locus_memory.retrieval.ranking.fields import Place, Words
from locus_memory.retrieval.ranking.query import Query

__all__ = ["date_factor", "neighbour_gains", "speaker_factor", "word_scores"]

_K1: Final = 1.2
_B: Final = 0.75


def word_scores(words: Sequence[str], documents: Sequence[Words]) -> list[float]:
    """Return a score of each document's words, from 0 to 1; the best has 1.

    The formula is BM25's with the candidates as the collection: S. Robertson, H. Zaragoza,
    "The probabilistic relevance framework: BM25 and beyond", 2009,
    https://doi.org/10.1561/1500000019, with k1 = 1.2 and b = 0.75.

    Args:
        words: Stems to search for, each once.
        documents: The words of each candidate.
    """
    total = len(documents)
    mean = sum(length for _, length in documents) / (total or 1)
    scores = [0.0] * total
    # The term that the formula adds to a count, for each length.
    norms = [_K1 * (1 - _B + _B * length / (mean or 1)) for _, length in documents]
    for word in words:
        found = [
            (place, counts[word]) for place, (counts, _) in enumerate(documents) if word in counts
        ]
        rarity = (_K1 + 1) * math.log(1 + (total - len(found) + 0.5) / (len(found) + 0.5))
        for place, times in found:
            scores[place] += rarity * times / (times + norms[place])
    best = max(scores, default=0.0)
    return [score / best for score in scores] if best > 0 else scores


def neighbour_gains(evidence: Sequence[float], places: Sequence[Place | None]) -> list[float]:
    """Return for each item the evidence of its better neighbour; 0 without one.

    Args:
        evidence: The evidence of each candidate.
        places: The place of each in its conversation, if it has one.
    """
    conversations: dict[str, dict[int, float]] = {}
    for place, own in zip(places, evidence, strict=True):
        if place:
            conversation, position = place
            conversations.setdefault(conversation, {})[position] = own
    if not conversations:
        return [0.0] * len(places)
    gains: list[float] = []
    for place in places:
        if place is None:
            gains.append(0.0)
            continue
        conversation, position = place
        beside = conversations[conversation].get
        gains.append(max(beside(position - 1, 0.0), beside(position + 1, 0.0)))
    return gains


def speaker_factor(query: Query, speakers: Iterable[str], options: SearchOptions) -> float:
    """Return the boost if the query names a speaker or a role of the item; else 1."""
    return options.speaker_boost if any(map(query.mentions, speakers)) else 1.0


def date_factor(query: Query, day: date | None, options: SearchOptions) -> float:
    """Return the boost if the query names the date of the item; else 1."""
    if day is None or not query.dates:
        return 1.0
    named = any(period.covers(day, slack=options.date_slack) for period in query.dates)
    return options.date_boost if named else 1.0
