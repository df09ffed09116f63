"""The likeness of texts by their content words; pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from locus_memory.store.text import query_words, stem

__all__ = ["WordSet", "content_words", "jaccard", "near_pairs"]

WordSet = frozenset[str]


def content_words(text: str) -> WordSet:
    """Return the stems of the content words of a text."""
    return frozenset(map(stem, query_words(text)))


def jaccard(one: WordSet, other: WordSet) -> float:
    """Return the part of the words of two sets that both have, from 0 to 1."""
    return len(one & other) / len(one | other) if one or other else 0.0


def near_pairs(sets: Sequence[WordSet], least: float) -> Iterator[tuple[int, int]]:
    """Yield the places of all pairs with a Jaccard similarity of at least `least`, above 0.

    Only sets that share one of their rarest words are compared: with prefix filtering, see
    Chaudhuri, Ganti and Kaushik, "A primitive operator for similarity joins", ICDE 2006.

    Yields:
        Pairs in ascending order of the second, then of the first place.
    """
    counts = Counter(word for each in sets for word in each)
    first: dict[str, list[int]] = {}
    for place, words in enumerate(sets):
        ordered = sorted(words, key=lambda word: (counts[word], word))
        # The rounding of a product such as 0.9 * 10 must not shorten the prefix.
        prefix = ordered[: len(ordered) - math.ceil(least * len(ordered) - 1e-9) + 1]
        candidates = {other for word in prefix for other in first.get(word, ())}
        for other in sorted(candidates):
            if jaccard(sets[other], words) >= least:
                yield other, place
        for word in prefix:
            first.setdefault(word, []).append(place)
