"""Maximal marginal relevance: results that do not repeat one another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError

__all__ = ["maximal_marginal_relevance", "word_overlap"]

_T = TypeVar("_T")


def maximal_marginal_relevance(
    scored: Sequence[tuple[_T, float]],
    similarity: Callable[[_T, _T], float],
    *,
    limit: int,
    balance: float = 0.7,
) -> list[_T]:
    """Return up to `limit` items, each the best of the rest and unlike those before it.

    The next item is the one with the highest `balance * score - (1 - balance) * s`, where `s`
    is its highest similarity to an item chosen already. Of equals, the first in `scored` is next.

    Source: J. Carbonell, J. Goldstein, "The use of MMR, diversity-based reranking for
    reordering documents and producing summaries", SIGIR 1998,
    https://doi.org/10.1145/290941.291025.

    Args:
        scored: Items with their scores, from 0 to 1.
        similarity: How alike two items are, from 0 to 1; symmetric.
        limit: At most this many.
        balance: 1: only the scores count; 0: only the differences count.

    Raises:
        InvalidArgumentError: A balance outside 0 to 1.
    """
    if not 0 <= balance <= 1:
        raise InvalidArgumentError(f"the balance of MMR lies between 0 and 1, not {quote(balance)}")
    waiting = [(item, balance * score) for item, score in scored]
    nearest = [0.0] * len(waiting)
    chosen: list[_T] = []
    while waiting and len(chosen) < limit:
        values = [
            worth - (1 - balance) * near for (_, worth), near in zip(waiting, nearest, strict=True)
        ]
        place = values.index(max(values))
        item, _ = waiting.pop(place)
        del nearest[place]
        chosen.append(item)
        nearest = [
            max(near, similarity(item, other))
            for near, (other, _) in zip(nearest, waiting, strict=True)
        ]
    return chosen


def word_overlap(first: frozenset[str], second: frozenset[str]) -> float:
    """Return the share of words that two sets have in common, from 0 to 1 (Jaccard)."""
    union = len(first | second)
    return len(first & second) / union if union else 0.0
