"""BM25 over arrays: the scores that FTS5 gives, of all matches at once.

The formula and the order of its operations are those of `fts5_aux.c`, so the scores are equal:
https://www.sqlite.org/fts5.html#the_bm25_function
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from locus_memory.backends.sqlite.search.texts import Totals

__all__ = [
    "Ids",
    "Lengths",
    "Postings",
    "Text",
    "Weighed",
    "best_first",
    "best_of",
    "score_of",
    "scores_of",
    "shared",
]

Ids = NDArray[np.int64]
Lengths = NDArray[np.uint16] | NDArray[np.uint32]
Scores = NDArray[np.float64]

_K1, _B = 1.2, 0.75
"""The constants of FTS5's BM25."""

_BLOCK: Final = 16_384
"""So many items are scored at a time: their arrays stay in the cache of the processor."""

_GROWTH: Final = 8
"""How many times as many matches as before are returned next."""


class Text(NamedTuple):
    """The words of one item: how many there are, and how often each occurs."""

    length: int
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Postings:
    """The items that have a word, in the order of their ids.

    Attributes:
        ids: Their ids.
        times: How often each of them has the word.
    """

    ids: NDArray[np.int32] | Ids
    times: NDArray[np.uint8] | NDArray[np.uint32]

    @classmethod
    def of(cls, places: Ids) -> Self:
        """Return the postings of a word, from the id of the item at each place of it, in order."""
        first = np.flatnonzero(np.diff(places, prepend=-1))
        times = np.diff(first, append=len(places)).astype(np.uint32)
        ids, most = places[first], np.iinfo(np.int32).max
        return cls(
            ids if ids.max(initial=0) > most else ids.astype(np.int32),
            times if times.max(initial=0) > np.iinfo(np.uint8).max else times.astype(np.uint8),
        )

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.ids.nbytes + self.times.nbytes

    def count(self, until: int, replaced: Ids) -> int:
        """Return how many items have an id below a number, without those of another list."""
        return int(np.searchsorted(self.ids, until)) - len(shared(replaced, self.ids)[0])


@dataclass(frozen=True, slots=True)
class Weighed:
    """A word with its items and its weight."""

    word: str
    postings: Postings
    weight: float

    def add(
        self, scores: Scores, places: NDArray[np.intp], having: slice | Ids, norms: Scores
    ) -> None:
        """Add the share of the word to scores.

        Args:
            scores: The scores of some items.
            places: The places of the items that have the word.
            having: Where these are among the postings.
            norms: The share of their lengths in the formula.
        """
        often = self.postings.times[having].astype(np.float64)
        scores[places] += self.weight * ((often * (_K1 + 1.0)) / (often + norms))


def _norms(lengths: NDArray[np.int64], totals: Totals) -> Scores:
    """Return the share of an item's length in the formula, for each of the lengths."""
    return np.asarray(_K1 * (1 - _B + _B * lengths / totals.mean), np.float64)


def shared(ids: NDArray[Any], having: NDArray[Any]) -> tuple[Ids, Ids]:
    """Return the places of the numbers that two lists in order share, in each of them."""
    if len(having) < len(ids):
        # Each number of the shorter list is looked for in the longer one.
        places, have = shared(having, ids)
        return have, places
    if not len(ids):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    places = np.minimum(np.searchsorted(having, ids), len(having) - 1)
    found = np.flatnonzero(having[places] == ids)
    return found, places[found]


def score_of(text: Text, words: Sequence[Weighed], totals: Totals) -> float:
    """Return the score of one item; 0 if it has none of the words."""
    norm = _K1 * (1 - _B + _B * text.length / totals.mean)
    score = 0.0
    for each in words:
        times = text.counts.get(each.word, 0)
        score += each.weight * ((times * (_K1 + 1.0)) / (times + norm))
    return score


def scores_of(ids: Ids, words: Sequence[Weighed], lengths: Lengths, totals: Totals) -> Scores:
    """Return the score of each of some items that have a length."""
    found, norms = np.zeros(len(ids)), _norms(lengths[ids].astype(np.int64), totals)
    for each in words:
        places, having = shared(ids, each.postings.ids)
        each.add(found, places, having, norms[places])
    return found


def best_of(
    words: Sequence[Weighed], lengths: Lengths, totals: Totals, replaced: Ids, limit: int
) -> tuple[Ids, Scores]:
    """Return the best items with their scores, the best first, and all with the last score.

    Args:
        words: The words, of which an item has any.
        lengths: The number of words of each item, by its id.
        totals: The number of items and of words.
        replaced: The ids of items whose postings do not count.
        limit: How many.
    """
    floor, ids, found = np.float64(0), [np.zeros(0, np.int64)], [np.zeros(0)]
    for start, scores in _blocks(words, lengths, totals, replaced):
        places = np.flatnonzero(scores >= floor if floor else scores > 0)
        ids.append(places + start)
        found.append(scores[places])
        if len(places) > limit:
            floor = max(floor, np.partition(found[-1], -limit)[-limit])
    all_ids, all_scores = np.concatenate(ids), np.concatenate(found)
    if len(all_ids) > limit:
        kept = all_scores >= np.partition(all_scores, -limit)[-limit]
        all_ids, all_scores = all_ids[kept], all_scores[kept]
    order = np.argsort(-all_scores, kind="stable")
    return all_ids[order], all_scores[order]


def _blocks(
    words: Sequence[Weighed], lengths: Lengths, totals: Totals, replaced: Ids
) -> Iterator[tuple[int, Scores]]:
    """Yield the first id of each block, and the scores of its items until the next one."""
    norms = _norms(np.arange(int(lengths.max(initial=0)) + 1), totals)
    starts = np.arange(0, len(lengths) + _BLOCK, _BLOCK)
    ends = [np.searchsorted(each.postings.ids, starts).tolist() for each in words]
    last = len(lengths)
    for number, start in enumerate(starts[:-1].tolist()):
        here, scores = lengths[start : start + _BLOCK], np.zeros(_BLOCK)
        for each, end in zip(words, ends, strict=True):
            having = slice(end[number], end[number + 1])
            if start + _BLOCK > last:
                having = slice(end[number], int(np.searchsorted(each.postings.ids, last)))
            places = each.postings.ids[having].astype(np.intp) - start
            each.add(scores, places, having, norms[here[places]])
        inside = slice(*replaced.searchsorted((start, start + _BLOCK)))
        scores[replaced[inside] - start] = 0.0
        yield start, scores


def best_first(
    at_least: Callable[[int], tuple[Ids, Scores]], limit: int
) -> Iterator[tuple[Ids, Scores]]:
    """Yield items with their scores, the best first; equal scores are in one part.

    Args:
        at_least: Returns so many of the best, and all with the last score.
        limit: How many items are needed at least.
    """
    done, wanted = 0, limit
    while True:
        ids, scores = at_least(wanted)
        yield ids[done:], scores[done:]
        if len(ids) < wanted:
            return
        done, wanted = len(ids), wanted * _GROWTH
