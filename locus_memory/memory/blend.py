"""Blends: the order of recalled memories by relevance, age and trust; pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from locus_memory._internal.options import check_fields
from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError
from locus_memory.memory.models import Memory
from locus_memory.memory.moments import read_moment
from locus_memory.memory.validity import said_at

__all__ = ["DEFAULT_TRUST", "Blend", "TrustOf", "age_in_days"]

DEFAULT_TRUST: Final = 0.5
"""The trust in a memory of which nothing is known."""

TrustOf = Callable[[Memory], float]
"""Returns the trust in a memory, from 0 to 1."""

_WEIGHTS: Final[dict[str, tuple[float, ...]]] = {"recency": (0.7, 0.3), "trust": (0.5, 0.3, 0.2)}
_DAY: Final = 86_400


def age_in_days(memory: Memory, now: datetime) -> float:
    """Return the age of a memory by its statement; infinite if no moment of it can be read.

    Args:
        memory: The memory.
        now: The present moment, with a time zone.
    """
    moment = read_moment(said_at(memory))
    return math.inf if moment is None else (now - moment).total_seconds() / _DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Blend:
    """A weighted sum that orders memories.

    Recency is `1 / (1 + age / half-life)`: 1 today, 0.5 at the half-life.

    Attributes:
        name: `recency`: 0.7 relevance + 0.3 recency; `trust`: 0.5 relevance + 0.3 trust
            + 0.2 recency.
        weights: Other weights, in this order; `None`: these.
        half_life_days: The age at which a memory is half as recent.
        min_relevance: The lowest relevance of a memory that is recalled.

    Raises:
        ConfigurationError: A value that cannot work.
    """

    name: Literal["recency", "trust"]
    weights: tuple[float, ...] | None = None
    half_life_days: float = 30
    min_relevance: float = 0.5

    def __post_init__(self) -> None:
        check_fields(self)
        if self.name not in _WEIGHTS:
            known = ", ".join(("hybrid", *_WEIGHTS))
            raise ConfigurationError(f"blend is one of {known}, not {quote(self.name)}")
        if not 0 < self.half_life_days < math.inf:
            raise ConfigurationError(f"half_life_days is above 0, not {quote(self.half_life_days)}")
        if not 0 <= self.min_relevance <= 1:
            raise ConfigurationError(f"min_relevance is 0 to 1, not {quote(self.min_relevance)}")
        many = len(_WEIGHTS[self.name])
        if self.weights is not None and not _are_weights(self.weights, many):
            raise ConfigurationError(
                f"the weights of the blend {self.name!r} are a tuple of {many} numbers of at least"
                f" 0, not {quote(self.weights)}"
            )

    def score(self, relevance: float, age_days: float, trust: float = DEFAULT_TRUST) -> float:
        """Return the score of a memory; from 0 to 1 if the weights sum to 1.

        Args:
            relevance: From 0 to 1.
            age_days: Its age; below 0 it counts as 0.
            trust: From 0 to 1; without effect on the blend `recency`.
        """
        recency = 1 / (1 + max(0.0, age_days) / self.half_life_days)
        parts = (relevance, recency) if self.name == "recency" else (relevance, trust, recency)
        weights = self.weights or _WEIGHTS[self.name]
        return sum(weight * part for weight, part in zip(weights, parts, strict=True))

    def order(
        self,
        found: Sequence[tuple[Memory, float]],
        now: datetime,
        trust_of: TrustOf | None = None,
    ) -> list[int]:
        """Return the places of memories, the best first; of equal ones, the earlier place.

        Args:
            found: The memories, each with its relevance from 0 to 1.
            now: The present moment, with a time zone.
            trust_of: Returns the trust in a memory; `None`: that of one of which nothing is known.
        """
        scores = [
            self.score(
                relevance,
                age_in_days(memory, now),
                DEFAULT_TRUST if trust_of is None else trust_of(memory),
            )
            for memory, relevance in found
        ]
        return sorted(range(len(found)), key=lambda place: -scores[place])


def _are_weights(given: tuple[object, ...], many: int) -> bool:
    listed: Any = given
    return (
        isinstance(listed, tuple)
        and len(listed) == many
        and all(isinstance(each, int | float) and 0 <= each < math.inf for each in listed)
    )
