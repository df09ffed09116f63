"""Blends: the order of recalled memories by relevance, age and trust; pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, NamedTuple, TypeGuard

from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError
from locus_memory.memory.models import Memory
from locus_memory.memory.moments import read_moment

__all__ = [
    "DEFAULT_TRUST",
    "Blend",
    "BlendName",
    "Relevant",
    "TrustOf",
    "age_in_days",
    "default_trust",
    "recency",
]

BlendName = Literal["recency", "trust"]
"""A blend beside the order of the search, which is `hybrid`."""

TrustOf = Callable[[Memory], float]
"""Returns the trust in a memory, from 0 to 1."""

DEFAULT_TRUST: Final = 0.5

_WEIGHTS: Final[dict[str, tuple[float, ...]]] = {"recency": (0.7, 0.3), "trust": (0.5, 0.3, 0.2)}
_DAY: Final = 86_400


def default_trust(memory: Memory) -> float:
    """Return the trust in a memory of which nothing is known."""
    del memory
    return DEFAULT_TRUST


def recency(age_days: float, half_life_days: float = 30) -> float:
    """Return how recent a memory is: `1 / (1 + age / half-life)`, 1 today, 0.5 at the half-life.

    Args:
        age_days: Its age; below 0 it counts as 0.
        half_life_days: The age at which it is half as recent; more than 0.
    """
    return 1 / (1 + max(0.0, age_days) / half_life_days)


def age_in_days(memory: Memory, now: datetime) -> float:
    """Return the age of a memory by its `valid_from`; infinite if it has none that can be read.

    Args:
        memory: The memory.
        now: The present moment, with a time zone.
    """
    moment = read_moment(memory.metadata.get("valid_from"))
    return math.inf if moment is None else (now - moment).total_seconds() / _DAY


class Relevant(NamedTuple):
    """A memory that a search found, and its relevance from 0 to 1."""

    memory: Memory
    relevance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Blend:
    """A weighted sum that orders memories.

    Attributes:
        name: `recency`: 0.7 relevance + 0.3 recency; `trust`: 0.5 relevance + 0.3 trust
            + 0.2 recency.
        weights: Other weights, in this order; `None`: these.
        half_life_days: The age at which a memory is half as recent.
        min_relevance: The lowest relevance of a memory that is recalled.

    Raises:
        ConfigurationError: A value that cannot work.
    """

    name: BlendName
    weights: tuple[float, ...] | None = None
    half_life_days: float = 30
    min_relevance: float = 0.5

    def __post_init__(self) -> None:
        if self.name not in _WEIGHTS:
            known = ", ".join(("hybrid", *_WEIGHTS))
            raise ConfigurationError(f"blend is one of {known}, not {quote(self.name)}")
        days, least = self.half_life_days, self.min_relevance
        if not _is_number(days) or not 0 < days < math.inf:
            raise ConfigurationError(f"half_life_days is a number above 0, not {quote(days)}")
        if not _is_number(least) or not 0 <= least <= 1:
            raise ConfigurationError(f"min_relevance is a number from 0 to 1, not {quote(least)}")
        if self.weights is not None:
            _check_weights(self.name, self.weights)

    def score(self, relevance: float, age_days: float, trust: float = DEFAULT_TRUST) -> float:
        """Return the score of a memory; from 0 to 1 if the weights sum to 1.

        Args:
            relevance: From 0 to 1.
            age_days: Its age.
            trust: From 0 to 1; without effect on the blend `recency`.
        """
        new = recency(age_days, self.half_life_days)
        parts = (relevance, new) if self.name == "recency" else (relevance, trust, new)
        weights = self.weights or _WEIGHTS[self.name]
        return sum(weight * part for weight, part in zip(weights, parts, strict=True))

    def scores(
        self, found: Sequence[Relevant], now: datetime, trust_of: TrustOf = default_trust
    ) -> list[float]:
        """Return the score of each memory.

        Args:
            found: The memories.
            now: The present moment, with a time zone.
            trust_of: Returns the trust in a memory.
        """
        return [
            self.score(relevance, age_in_days(memory, now), trust_of(memory))
            for memory, relevance in found
        ]

    def order(
        self, found: Sequence[Relevant], now: datetime, trust_of: TrustOf = default_trust
    ) -> list[int]:
        """Return the places of the memories, the best first; of equal ones, the earlier place.

        The arguments are those of `scores`.
        """
        scores = self.scores(found, now, trust_of)
        return sorted(range(len(found)), key=lambda place: -scores[place])


def _check_weights(name: str, weights: Sequence[object]) -> None:
    many = len(_WEIGHTS[name])
    tuples = isinstance(weights, tuple) and len(weights) == many
    if not tuples or not all(_is_number(each) and 0 <= each < math.inf for each in weights):
        raise ConfigurationError(
            f"blend_weights of {quote(name)} is a tuple of {many} numbers of at least 0, "
            f"not {quote(weights)}"
        )


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
