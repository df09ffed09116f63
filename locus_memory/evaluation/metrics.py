"""The metrics of retrieval; pure functions."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Sequence
from typing import Final, NamedTuple, TypeVar

from locus_memory.errors import InvalidArgumentError

__all__ = [
    "Agreement",
    "Interval",
    "agreement",
    "grouped_interval",
    "ndcg_at",
    "recall_at",
]

_SAMPLES: Final = 2000
_AT_ONCE: Final = 100
_TAIL: Final = 0.025

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


class Interval(NamedTuple):
    """The mean of some values, and its interval of 95%."""

    mean: float
    low: float
    high: float


def grouped_interval(groups: Sequence[Sequence[float]]) -> Interval:
    """Return the mean of all values with its interval, where those of a group hang together.

    The values of two systems, less one another, make it a paired one: without 0, other questions of
    the kind are expected to show the difference, too. Whole groups are drawn, such as the questions
    about one conversation: a bootstrap of clusters, the same for the same groups in the same order.
    A. C. Davison, D. V. Hinkley, "Bootstrap methods and their application", 1997, section 3.8. The
    interval always holds the mean. Of one group, the values are drawn, so it tells of no other
    group; of one value, it is the value.

    Raises:
        InvalidArgumentError: There is no value.
    """
    if not any(groups):
        raise InvalidArgumentError("without a value there is no interval")
    import numpy as np  # noqa: PLC0415 - it takes a while to load

    drawable = [each for each in groups if each]
    drawable = [[value] for value in drawable[0]] if len(drawable) == 1 else drawable
    sums = np.array([math.fsum(each) for each in drawable])
    counts = np.array([len(each) for each in drawable])
    chosen, means = np.random.default_rng(1), []
    for _ in range(_SAMPLES // _AT_ONCE):
        drawn = chosen.integers(len(sums), size=(_AT_ONCE, len(sums)))
        means += (sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)).tolist()
    mean = math.fsum(sums) / int(counts.sum())
    low, high = np.quantile(means, (_TAIL, 1 - _TAIL)).tolist()
    return Interval(mean, min(low, mean), max(high, mean))


class Agreement(NamedTuple):
    """How often two judges agree.

    Attributes:
        share: The share of the answers that both call right or both call wrong.
        kappa: Cohen's kappa: 1 is agreement, 0 is that of chance; `None`: each judge calls all
            answers the same, and chance explains everything.
    """

    share: float
    kappa: float | None


def agreement(pairs: Sequence[tuple[bool, bool]]) -> Agreement:
    """Return the agreement of two judges about the same answers.

    Kappa is `(share - chance) / (1 - chance)`, where `chance` is the agreement that two judges with
    these shares of right answers have by chance. Source: J. Cohen, "A coefficient of agreement for
    nominal scales", Educational and Psychological Measurement 20(1), 1960,
    https://doi.org/10.1177/001316446002000104.

    Raises:
        InvalidArgumentError: There is no answer that both judged.
    """
    if not pairs:
        raise InvalidArgumentError("without an answer that both judged there is no agreement")
    count = len(pairs)
    same = sum(one == other for one, other in pairs)
    first, second = (sum(each) for each in zip(*pairs, strict=True))
    # In whole numbers, so that full agreement by chance is exact: `chance` times `count` squared.
    chance = first * second + (count - first) * (count - second)
    rest = count * count - chance
    return Agreement(same / count, (same * count - chance) / rest if rest else None)


def _discount(place: int) -> float:
    return 1 / math.log2(place + 1)


def _some(relevant: Collection[_T]) -> frozenset[_T]:
    if not relevant:
        raise InvalidArgumentError("nothing is relevant: there is nothing to measure")
    return frozenset(relevant)
