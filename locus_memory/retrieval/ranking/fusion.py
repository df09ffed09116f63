"""The fusion of several rankings into one."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from locus_memory.errors import InvalidArgumentError

__all__ = ["min_max", "reciprocal_rank_fusion", "weighted_fusion"]

_T = TypeVar("_T", bound=Hashable)


def reciprocal_rank_fusion(
    rankings: Iterable[Sequence[_T]],
    *,
    k: float = 10,
    weights: Sequence[float] | None = None,
) -> list[tuple[_T, float]]:
    """Return every item of the rankings with its fused score, the best first.

    An item scores the sum of `weight / (k + rank)` over the rankings that have it, ranks from
    1. Only ranks count, so rankings whose scores cannot be compared fuse well. Items with equal
    scores keep the order of their first occurrence, ranking after ranking.

    Source: G. V. Cormack, C. L. A. Clarke, S. Buettcher, "Reciprocal rank fusion outperforms
    Condorcet and individual rank learning methods", SIGIR 2009,
    https://doi.org/10.1145/1571941.1572114. The paper's k is 60, for lists of a thousand; a
    smaller one separates the first ranks of short lists more.

    Args:
        rankings: Items, the best first; of an item that occurs twice, the better rank counts.
        k: A higher value gives the first ranks less weight; at least 0.
        weights: The weight of each ranking; `None`: all the same.

    Raises:
        InvalidArgumentError: A negative `k` or weight, or not one weight per ranking.
    """
    if k < 0:
        raise InvalidArgumentError("reciprocal rank fusion takes k >= 0")
    unique = [dict.fromkeys(ranking) for ranking in rankings]
    scored = [{item: 1 / (k + rank) for rank, item in enumerate(each, 1)} for each in unique]
    return _summed(scored, weights)


def min_max(scores: Mapping[_T, float], *, lowest: float = math.inf) -> dict[_T, float]:
    """Return the scores scaled to 0 to 1: the best is 1 and the worst 0; equal ones are 1.

    Args:
        scores: The score of each item.
        lowest: The score that is 0 in place of the worst, if it is lower, such as that of a text
            which has no word of the query. Then a score does not depend on how many items there
            are.
    """
    if not scores:
        return {}
    # Halved, so that no difference is too large for a float.
    low, high = min(lowest, *scores.values()) / 2, max(scores.values()) / 2
    span = high - low
    if span <= 0:
        return dict.fromkeys(scores, 1.0)
    return {item: (score / 2 - low) / span for item, score in scores.items()}


def weighted_fusion(
    scorings: Iterable[Mapping[_T, float]], *, weights: Sequence[float] | None = None
) -> list[tuple[_T, float]]:
    """Return every item of the scorings with its fused score, the best first.

    Each scoring is scaled to 0 to 1, and an item scores the weighted sum; it scores 0 where it is
    missing. The distances between scores count, which ranks do not show. Items with equal scores
    keep the order of their first occurrence, scoring after scoring.

    Source: E. A. Fox, J. A. Shaw, "Combination of multiple searches", TREC-2, 1994 (CombSUM);
    S. Bruch, S. Gai, A. Ingber, "An analysis of fusion functions for hybrid retrieval", ACM
    Transactions on Information Systems 42(1), 2023, https://doi.org/10.1145/3596512.

    Args:
        scorings: Scores by item, higher is better, each on its own scale.
        weights: The weight of each scoring; `None`: all the same.

    Raises:
        InvalidArgumentError: A negative weight, or not one weight per scoring.
    """
    return _summed(list(map(min_max, scorings)), weights)


def _summed(
    scored: Sequence[Mapping[_T, float]], weights: Sequence[float] | None
) -> list[tuple[_T, float]]:
    factors = [1.0] * len(scored) if weights is None else weights
    if len(factors) != len(scored) or any(factor < 0 for factor in factors):
        raise InvalidArgumentError("a fusion takes one weight >= 0 for each of its rankings")
    totals: dict[_T, float] = {}
    for scores, factor in zip(scored, factors, strict=True):
        for item, score in scores.items():
            totals[item] = totals.get(item, 0.0) + factor * score
    return sorted(totals.items(), key=lambda entry: -entry[1])
