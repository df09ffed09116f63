"""The metrics of retrieval; pure functions."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Sequence
from typing import TypeVar

from locus_memory.errors import InvalidArgumentError

__all__ = ["ndcg_at", "recall_at"]

_T = TypeVar("_T", bound=Hashable)


def recall_at(found: Sequence[_T], relevant: Collection[_T], k: int) -> float:
    """Return the share of the relevant items among the first `k` found.

    Raises:
        InvalidArgumentError: Nothing is relevant.
    """
    wanted = _some(relevant)
    return len(wanted.intersection(found[:k])) / len(wanted)


def ndcg_at(found: Sequence[_T], relevant: Collection[_T], k: int) -> float:
    """Return the normalised discounted cumulative gain of the first `k` found.

    A relevant item gains 1, divided by the binary logarithm of its rank plus one; the sum is
    divided by that of the best possible order. Source: K. Järvelin, J. Kekäläinen, "Cumulated
    gain-based evaluation of IR techniques", ACM Transactions on Information Systems 20(4),
    2002, https://doi.org/10.1145/582415.582418.

    Args:
        found: The found items, the best first, each once.
        relevant: The items that should be found.
        k: How many ranks count.

    Raises:
        InvalidArgumentError: Nothing is relevant.
    """
    wanted = _some(relevant)
    gain = sum(_discount(place) for place, each in enumerate(found[:k], 1) if each in wanted)
    best = sum(_discount(place) for place in range(1, min(k, len(wanted)) + 1))
    return gain / best if best else 0.0


def _discount(place: int) -> float:
    return 1 / math.log2(place + 1)


def _some(relevant: Collection[_T]) -> frozenset[_T]:
    if not relevant:
        raise InvalidArgumentError("nothing is relevant: there is nothing to measure")
    return frozenset(relevant)
