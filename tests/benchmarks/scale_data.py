"""The items of the growth curve: sentences of a Zipf vocabulary, and clustered vectors.

Everything follows from its number, so any part is made anew where it is needed. A vector is a
common direction, that of one of 2,000 topics, a mix of 24 directions, and noise; the first topics
have the most items. Words and topics are made up; frequent words are short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

DIMENSION, WORDS, TOPICS, CHUNK = 384, 50_000, 2_000, 5_000
KINDS = 10
SYLLABLES = [c + v for c in "bdfgklmnprstvz" for v in ("a", "e", "i", "o", "u", "ai", "or")]


def word(rank: int) -> str:
    """Return the word of a rank; frequent ones are short."""
    found, rank = "", rank + len(SYLLABLES)
    while rank:
        rank, letter = divmod(rank, len(SYLLABLES))
        found += SYLLABLES[letter]
    return found


VOCABULARY = [word(rank) for rank in range(WORDS)]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Items from a number on: their texts, and their unit vectors."""

    start: int
    texts: list[str]
    vectors: Any


def _weights(count: int) -> Any:
    made = 1.0 / (np.arange(count) + 2.7)
    return np.cumsum(made / made.sum())


WORD_WEIGHTS, TOPIC_WEIGHTS = _weights(WORDS), _weights(TOPICS)
_fixed = np.random.default_rng(1)
COMMON = _fixed.normal(size=DIMENSION).astype("f4") / DIMENSION**0.5
SHARED = _fixed.normal(size=(24, DIMENSION)).astype("f4") / DIMENSION**0.5
CENTRES = (
    _fixed.normal(size=(TOPICS, DIMENSION)) / DIMENSION**0.5
    + 0.5 * _fixed.normal(size=(TOPICS, 24)) @ SHARED / 24**0.5
).astype("f4")


def unit(rows: Any) -> Any:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype("f4")


def vectors(count: int, seed: int) -> Any:
    """Return unit vectors of shape `(count, DIMENSION)`."""
    chance = np.random.default_rng(seed)
    topics = np.searchsorted(TOPIC_WEIGHTS, chance.random(count))
    noise = chance.normal(size=(count, DIMENSION)).astype("f4") / DIMENSION**0.5
    shared = chance.normal(size=(count, 24)).astype("f4") @ SHARED / 24**0.5
    return unit(0.8 * COMMON + CENTRES[topics] + 0.6 * shared + 0.5 * noise)


def texts(count: int, seed: int) -> list[str]:
    """Return sentences of 8 to 24 words."""
    chance = np.random.default_rng(seed)
    lengths = chance.integers(8, 25, count)
    drawn = np.searchsorted(WORD_WEIGHTS, chance.random(int(lengths.sum()))).tolist()
    found, place = [], 0
    for length in lengths.tolist():
        words = [VOCABULARY[each] for each in drawn[place : place + length]]
        found.append(" ".join(words).capitalize() + ".")
        place += length
    return found


def chunks(count: int) -> Iterator[Chunk]:
    """Yield all items, some at a time."""
    for start in range(0, count, CHUNK):
        size = min(CHUNK, count - start)
        yield Chunk(start, texts(size, 10_000_000 + start), vectors(size, 20_000_000 + start))


def queries(count: int) -> Any:
    """Return unit vectors that are searched for."""
    return vectors(count, 3)


def common_words(number: int) -> str:
    """Return a query of three words that are among the most frequent."""
    chance = np.random.default_rng(number)
    return " ".join(VOCABULARY[each] for each in chance.choice(40, 3, replace=False))


def usual_words(number: int) -> str:
    """Return a query of five words, drawn as those of the items are."""
    chance = np.random.default_rng(number)
    return " ".join(VOCABULARY[n] for n in np.searchsorted(WORD_WEIGHTS, chance.random(5)))


class Nearest:
    """The true nearest items of queries, found while the items are made."""

    def __init__(
        self,
        targets: Any,
        *,
        kind: int | None = None,
        within: Callable[[Any], Any] | None = None,
        limit: int = 10,
    ) -> None:
        self._targets, self._kind, self._within, self._limit = targets, kind, within, limit
        self._best: list[list[tuple[float, int]]] = [[] for _ in targets]

    def see(self, chunk: Chunk) -> None:
        """Compare some items with the queries."""
        numbers = np.arange(chunk.start, chunk.start + len(chunk.vectors))
        kept = np.ones(len(numbers), bool) if self._kind is None else numbers % KINDS == self._kind
        if self._within is not None:
            kept &= self._within(numbers)
        cosines = self._targets @ chunk.vectors[kept].T
        for place, row in enumerate(cosines):
            top = np.argsort(-row)[: self._limit]
            found = zip(row[top].tolist(), numbers[kept][top].tolist(), strict=True)
            self._best[place] = sorted((*self._best[place], *found), reverse=True)[: self._limit]

    def ids(self) -> list[list[int]]:
        """Return the numbers of the nearest items of each query."""
        return [[number for _, number in best] for best in self._best]
