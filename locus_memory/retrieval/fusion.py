"""Making one ranking of several."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

from locus_memory.errors import InvalidArgumentError

__all__ = ["reciprocal_rank_fusion"]

_T = TypeVar("_T", bound=Hashable)


def reciprocal_rank_fusion(
    rankings: Iterable[Sequence[_T]],
    *,
    k: float = 10,
    weights: Sequence[float] | None = None,
) -> list[tuple[_T, float]]:
    """Return every item of the rankings with its fused score, the best first.

    An item scores the sum of `weight / (k + rank)` over the rankings that have it, ranks from
    1. Only places count, so rankings whose scores cannot be compared fuse well. Of equal
    scores, the item comes first that was met first, ranking after ranking.

    Source: G. V. Cormack, C. L. A. Clarke, S. Buettcher, "Reciprocal rank fusion outperforms
    Condorcet and individual rank learning methods", SIGIR 2009,
    https://doi.org/10.1145/1571941.1572114. The paper's k is 60, for lists of a thousand; a
    smaller one tells the first places of short lists further apart.

    Args:
        rankings: Items, the best first; of one that is there twice, the better place counts.
        k: How little the first places stand out, at least 0.
        weights: How much each ranking counts; `None`: all the same.

    Raises:
        InvalidArgumentError: A negative `k` or weight, or not one weight a ranking.
    """
    ranked = list(rankings)
    factors = [1.0] * len(ranked) if weights is None else list(weights)
    if len(factors) != len(ranked) or k < 0 or any(factor < 0 for factor in factors):
        raise InvalidArgumentError("fusion takes k >= 0 and one weight >= 0 for each ranking")
    scores: dict[_T, float] = {}
    for ranking, factor in zip(ranked, factors, strict=True):
        for rank, item in enumerate(dict.fromkeys(ranking), 1):
            scores[item] = scores.get(item, 0.0) + factor / (k + rank)
    return sorted(scores.items(), key=lambda entry: -entry[1])
