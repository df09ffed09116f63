"""Groups of facts that are near each other, found without a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from locus_memory.memory.models import Memory
from locus_memory.memory.tending.words import WordSet, near_pairs

__all__ = ["Call", "Pair", "calls", "near_vectors", "word_pairs"]

Pair = tuple[int, int]

_WORDS: Final = 0.5
_COSINE: Final = 0.85
_BLOCK: Final = 256


@dataclass(frozen=True, slots=True)
class Call:
    """The facts of one call of the model, all of one type.

    Attributes:
        facts: The facts, in groups.
        groups: The number of each fact's group, from 1.
        near: The pairs of places of facts that are near each other.
    """

    facts: tuple[Memory, ...]
    groups: tuple[int, ...]
    near: frozenset[frozenset[int]] = field(default=frozenset())

    def are_near(self, one: int, other: int) -> bool:
        """Return whether the facts at two places are near each other."""
        return frozenset((one, other)) in self.near


def word_pairs(sets: Sequence[WordSet]) -> Iterator[Pair]:
    """Yield the places of facts of which half of all words are shared."""
    return near_pairs(sets, _WORDS)


def near_vectors(places: Sequence[int], vectors: Sequence[Sequence[float]]) -> Iterator[Pair]:
    """Yield the pairs of places whose vectors have a cosine of at least 0.85.

    Args:
        places: The place of each vector.
        vectors: Vectors of one model, of shape `(dimension,)` each.
    """
    import numpy as np  # noqa: PLC0415 - the import of the package must not load numpy

    if len(places) < 2:  # noqa: PLR2004 - a pair
        return
    matrix = np.asarray(vectors, dtype=np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    for start in range(0, len(places), _BLOCK):
        cosines = matrix[start : start + _BLOCK] @ matrix.T
        for row, column in np.argwhere(cosines >= _COSINE).tolist():
            if start + row < column:
                yield places[start + row], places[column]


def calls(facts: Sequence[Memory], pairs: Iterable[Pair], batch: int) -> Iterator[Call]:
    """Yield calls of at most `batch` facts, with whole groups of at least two facts.

    A group of more facts than a call can hold is cut.

    Args:
        facts: Facts of one type.
        pairs: The places of facts that are near each other.
        batch: The most facts of a call, at least 2.
    """
    known = [*pairs]
    parts = [
        group[start : start + batch]
        for group in _groups(len(facts), known)
        for start in range(0, len(group), batch)
    ]
    chosen: list[list[int]] = []
    for part in parts:
        if len(part) < 2:  # noqa: PLR2004 - a pair
            continue
        if sum(map(len, chosen)) + len(part) > batch:
            yield _call(facts, chosen, known)
            chosen = []
        chosen.append(part)
    if chosen:
        yield _call(facts, chosen, known)


def _call(facts: Sequence[Memory], parts: Sequence[Sequence[int]], pairs: Iterable[Pair]) -> Call:
    places = [place for part in parts for place in part]
    new = {place: number for number, place in enumerate(places)}
    return Call(
        tuple(facts[place] for place in places),
        tuple(number for number, part in enumerate(parts, 1) for _ in part),
        frozenset(frozenset((new[a], new[b])) for a, b in pairs if a in new and b in new),
    )


def _groups(count: int, pairs: Iterable[Pair]) -> list[list[int]]:
    """Return the connected groups, each in ascending order."""
    leaders = list(range(count))

    def leader(place: int) -> int:
        while leaders[place] != place:
            leaders[place] = leaders[leaders[place]]
            place = leaders[place]
        return place

    for one, other in pairs:
        low, high = sorted((leader(one), leader(other)))
        leaders[high] = low
    found: dict[int, list[int]] = {}
    for place in range(count):
        found.setdefault(leader(place), []).append(place)
    return list(found.values())
