"""The namespaces of the growth curve: one, a thousand alike, or a thousand of 100 to 200,000."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

LARGE = (200_000, 100_000, 50_000, 20_000, 10_000, 5_000, 2_000, 1_000, 500, 200, 100)
STEP = 7_919
"""A prime: its multiples visit each place once, so neighbours are written far apart."""


@dataclass(frozen=True, slots=True)
class Spaces:
    """How items are spread over namespaces below one label.

    Attributes:
        title: The words for it in tables.
        count: The number of namespaces.
        is_uneven: Whether they differ in size.
    """

    title: str
    count: int
    is_uneven: bool = False

    @property
    def is_tree(self) -> bool:
        """Whether a search of everything is recursive."""
        return self.count > 1

    def sizes(self, items: int) -> list[int]:
        """Return the sizes of the namespaces that have one of their own, the largest first."""
        return [size for size in LARGE if size <= items // 2] if self.is_uneven else []

    def namer(self, items: int) -> Callable[[int], tuple[str, ...]]:
        """Return the function from the number of an item to its namespace."""
        if not self.is_tree:
            return lambda _: ("all",)
        if not self.is_uneven:
            return lambda number: ("all", f"user {number % self.count:03}")
        sizes = self.sizes(items)
        ends = np.cumsum(sizes)
        others = self.count - len(sizes)

        def name(number: int) -> tuple[str, ...]:
            place = number * STEP % items
            which = int(np.searchsorted(ends, place, side="right"))
            if number < items and which < len(sizes):
                return ("all", f"size {sizes[which]}")
            return ("all", f"user {number % others:03}")

        return name

    def members(self, size: int, items: int) -> Callable[[Any], Any]:
        """Return the test of numbers for being in the namespace of a size."""
        sizes = self.sizes(items)
        start = sum(sizes[: sizes.index(size)])
        return lambda numbers: (
            (numbers * STEP % items >= start) & (numbers * STEP % items < start + size)
        )


LAYOUTS = {
    "one": Spaces("one namespace", 1),
    "many": Spaces("1,000 namespaces", 1_000),
    "uneven": Spaces("1,000 namespaces of different sizes", 1_000, is_uneven=True),
}
