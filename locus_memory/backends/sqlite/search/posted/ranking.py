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

from locus_memory.backends.sqlite.search.posted.postings import (
    BLOCK,
    Ids,
    Lengths,
    Postings,
    Times,
    shared,
)

__all__ = [
    "Everything",
    "Scored",
    "Text",
    "Totals",
    "Weighed",
    "best_first",
    "best_of",
    "score_of",
    "scores_of",
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
    norm = _K1 * (1 - _B + _B * text.length / (totals.words / totals.rows))
    score = 0.0
    for each in words:
        times = text.counts.get(each.word, 0)
        score += each.weight * ((times * (_K1 + 1.0)) / (times + norm))
    return score


class _Room:
    """Arrays for the numbers of a block, which are used again for each word of each block.

    An array that is made for every step costs more than the step: its memory is new each time.

    Args:
        norms: The share of each length in the formula.
        size: The most items of a block.

    Attributes:
        scores: The score of each item of the block.
    """

    def __init__(self, norms: Scores, size: int) -> None:
        self.scores: Scores = np.zeros(size)
        self._norms = norms
        self._places, self._longs = np.zeros(size, np.intp), np.zeros(size, np.intp)
        self._shares: Scores = np.zeros(size)
        self._divisors: Scores = np.zeros(size)

    def add(self, weight: float, low: NDArray[np.uint16], times: Times, lengths: Lengths) -> None:
        """Add a word's share to the scores of the items that have it.

        Args:
            weight: The weight of the word.
            low: The places of the items in the block.
            times: How often each of them has the word.
            lengths: The number of words of each item of the block.
        """
        size = len(low)
        places, longs = self._places[:size], self._longs[:size]
        shares, divisors = self._shares[:size], self._divisors[:size]
        places[:] = low
        longs[:] = lengths.take(places)
        # With `raise`, numpy would copy the result.
        self._norms.take(longs, out=divisors, mode="clip")
        shares[:] = times
        divisors += shares
        shares *= _K1 + 1.0
        shares /= divisors
        shares *= weight
        self.scores.take(places, out=divisors, mode="clip")
        shares += divisors
        self.scores[places] = shares


@dataclass(frozen=True, slots=True)
class Everything:
    """All items that have any of some words.

    They are scored block by block, so that no array has a place for each item of the file.

    Attributes:
        words: The words.
        lengths: The number of words of each item, by its id.
        totals: The number of items and of words.
        replaced: The ids of items whose postings do not count.
    """

    words: Sequence[Weighed]
    lengths: Lengths
    totals: Totals
    replaced: Ids

    def within(self, least: float, bound: float) -> Scored:
        """Return the items with a score above 0, at least one number and below another."""
        found = [_within(*each, least, bound) for each in self._blocks()]
        return _joined(found)

    def best(self, limit: int) -> tuple[Scored, float]:
        """Return the best items, at least `limit` if so many have a score, and the lowest score."""
        floor, best = 0.0, list[Scored]()
        for start, scores in self._blocks():
            found = _within(start, scores, floor, math.inf)
            if len(found.ids) > limit:
                floor = max(floor, _place(found.scores, limit))
            best.append(found)
        joined = _joined(best)
        if len(joined.ids) > limit:
            floor = max(floor, _place(joined.scores, limit))
        kept = joined.scores >= floor
        return Scored(joined.ids[kept], joined.scores[kept]), floor

    def _blocks(self) -> Iterator[tuple[int, Scores]]:
        """Yield the first id of each block, and the scores of its items until the next one."""
        norms = self.totals.norms(np.arange(int(self.lengths.max(initial=0)) + 1))
        size = min(BLOCK, len(self.lengths))
        room = _Room(norms, size)
        ends = [each.postings.ends() for each in self.words]
        for number, start in enumerate(range(0, len(self.lengths), BLOCK)):
            lengths = self.lengths[start : start + BLOCK]
            room.scores.fill(0.0)
            for each, end in zip(self.words, ends, strict=True):
                low, times = each.postings.block(number, end, len(lengths))
                room.add(each.weight, low, times, lengths)
            inside = slice(*self.replaced.searchsorted((start, start + size)))
            room.scores[self.replaced[inside] - start] = 0.0
            yield start, room.scores


def scores_of(ids: Ids, words: Sequence[Weighed], lengths: Lengths, totals: Totals) -> Scores:
    """Return the score of each of some items that have a length."""
    found, norms = np.zeros(len(ids)), totals.norms(lengths[ids].astype(np.int64))
    for each in words:
        have, places = shared(ids, each.postings.ids())
        found[have] += each.weight * _shares(each.postings.times[places], norms[have])
    return found


def _shares(times: Times, norms: Scores) -> Scores:
    """Return the share of the number of times that an item has a word."""
    often = times.astype(np.float64)
    found: Scores = (often * (_K1 + 1.0)) / (often + norms)
    return found


def best_first(everything: Everything, limit: int) -> Iterator[Scored]:
    """Yield all items, the best first; equal scores are in one part.

    Args:
        everything: The items.
        limit: How many items are needed at least.
    """
    best, floor = everything.best(limit)
    yield from best_of(*best, limit)
    if floor > 0:
        yield from best_of(*everything.within(0.0, floor), limit)


def _place(scores: Scores, place: int) -> float:
    """Return the score of a place, from 1."""
    return float(np.partition(scores, -place)[-place])


def _within(start: int, scores: Scores, least: float, bound: float) -> Scored:
    """Return the items of a block with a score above 0, at least `least` and below `bound`."""
    kept = scores >= least if least > 0 else scores > 0
    if bound < math.inf:
        kept &= scores < bound
    places = np.flatnonzero(kept)
    return Scored(places + start, scores[places])


def _joined(parts: Sequence[Scored]) -> Scored:
    return Scored(
        np.concatenate([each.ids for each in parts]),
        np.concatenate([each.scores for each in parts]),
    )


def best_of(ids: Ids, scores: Scores, limit: int) -> Iterator[Scored]:
    """Yield the items of all scores above 0, as `best_first` does.

    Args:
        ids: The ids of the items.
        scores: Their scores.
        limit: How many items are needed at least.
    """
    places = np.flatnonzero(scores > 0)
    falling = -scores[places]
    order = np.argsort(falling, kind="stable")
    ids, falling = ids[places[order]], falling[order]
    start, size = 0, limit
    while start < len(ids):
        last = falling[min(start + size, len(ids)) - 1]
        end = int(np.searchsorted(falling, last, side="right"))
        yield Scored(ids[start:end], -falling[start:end])
        start, size = end, size * _GROWTH
