"""BM25 over arrays: the scores that FTS5 gives, of all matches at once.

The formula and the order of its operations are those of `fts5_aux.c`, so the scores are equal:
https://www.sqlite.org/fts5.html#the_bm25_function
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from locus_memory.backends.sqlite.search.posted.postings import Ids, Lengths, Postings

__all__ = [
    "Scored",
    "Text",
    "Totals",
    "Weighed",
    "best_first",
    "best_of",
    "score_of",
    "scores_of",
    "scores_of_all",
]

Scores = NDArray[np.float64]

_K1, _B = 1.2, 0.75
"""The constants of FTS5's BM25."""

_LEAST: Final = 1e-6
"""The weight of a word that more than half of the items have."""

_GROWTH: Final = 4
"""How many times as many matches as before are returned next."""


class Text(NamedTuple):
    """The words of one item: how many there are, and how often each occurs."""

    length: int
    counts: Mapping[str, int]


class Totals(NamedTuple):
    """The number of indexed items, and of all their words."""

    rows: int
    words: int

    def weight(self, having: int) -> float:
        """Return the weight of a word that so many items have."""
        rows = max(self.rows, having)
        return max(_LEAST, math.log((rows - having + 0.5) / (having + 0.5)))

    def norms(self, lengths: NDArray[np.int64]) -> Scores:
        """Return the share of an item's length in the formula, for each of the lengths."""
        mean = self.words / self.rows
        return np.asarray(_K1 * (1 - _B + _B * lengths / mean), np.float64)


@dataclass(frozen=True, slots=True)
class Weighed:
    """A word with its items and its weight."""

    word: str
    postings: Postings
    weight: float


class Scored(NamedTuple):
    """Items with their scores, the best first."""

    ids: Ids
    scores: Scores


def score_of(text: Text, words: Sequence[Weighed], totals: Totals) -> float:
    """Return the score of one item; 0 if it has none of the words."""
    norm = float(totals.norms(np.array([text.length]))[0])
    score = 0.0
    for each in words:
        times = text.counts.get(each.word, 0)
        score += each.weight * ((times * (_K1 + 1.0)) / (times + norm))
    return score


def scores_of_all(words: Sequence[Weighed], lengths: Lengths, totals: Totals) -> Scores:
    """Return the score of each item, by its id; 0 for an item that has none of the words."""
    found: Scores = np.zeros(len(lengths))
    norms = totals.norms(np.arange(int(lengths.max(initial=0)) + 1))
    for each in words:
        ids, times = each.postings.ids(), each.postings.times
        if len(ids) and ids[-1] >= len(found):
            known = int(np.searchsorted(ids, len(found)))
            ids, times = ids[:known], times[:known]
        found[ids] += each.weight * _shares(times, norms[lengths[ids]])
    return found


def scores_of(ids: Ids, words: Sequence[Weighed], lengths: Lengths, totals: Totals) -> Scores:
    """Return the score of each of some items that have a length."""
    found, norms = np.zeros(len(ids)), totals.norms(lengths[ids].astype(np.int64))
    for each in words:
        having = each.postings.ids()
        if not len(having):
            continue
        places = np.minimum(np.searchsorted(having, ids), len(having) - 1)
        have = having[places] == ids
        found[have] += each.weight * _shares(each.postings.times[places[have]], norms[have])
    return found


def _shares(times: NDArray[np.uint8] | NDArray[np.uint32], norms: Scores) -> Scores:
    """Return the share of the number of times that an item has a word."""
    often = times.astype(np.float64)
    found: Scores = (often * (_K1 + 1.0)) / (often + norms)
    return found


def best_first(scores: Scores, rarest: Postings, limit: int) -> Iterator[Scored]:
    """Yield the places of all scores above 0, best first; equal scores are in one part.

    Args:
        scores: The scores.
        rarest: The postings of the rarest word: the best matches are among them, or nearly.
        limit: How many places are needed at least.
    """
    floor = 0.0
    ids = rarest.ids()
    known = scores[ids[ids < len(scores)]]
    if len(known) > limit:
        floor = float(np.partition(known, -limit)[-limit])
    if floor > 0:
        yield from _parts(np.flatnonzero(scores >= floor), scores, limit)
        rest = np.flatnonzero((scores > 0) & (scores < floor))
    else:
        rest = np.flatnonzero(scores > 0)
    yield from _parts(rest, scores, limit)


def best_of(ids: Ids, scores: Scores, limit: int) -> Iterator[Scored]:
    """Yield the items of all scores above 0, as `best_first` does.

    Args:
        ids: The ids of the items.
        scores: Their scores.
        limit: How many items are needed at least.
    """
    for places, found in _parts(np.flatnonzero(scores > 0), scores, limit):
        yield Scored(ids[places], found)


def _parts(places: Ids, scores: Scores, size: int) -> Iterator[Scored]:
    falling = -scores[places]
    order = np.argsort(falling, kind="stable")
    places, falling = places[order], falling[order]
    start = 0
    while start < len(places):
        last = falling[min(start + size, len(places)) - 1]
        end = int(np.searchsorted(falling, last, side="right"))
        yield Scored(places[start:end], -falling[start:end])
        start, size = end, size * _GROWTH
