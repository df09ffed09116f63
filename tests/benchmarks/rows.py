"""One measured figure, its bar, and the table they are printed in."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Row:
    """A figure; `bar` is the most it may be, or the least where `at_least`."""

    figure: str
    value: float
    bar: float
    detail: str = ""
    at_least: bool = False

    @property
    def reached(self) -> bool:
        return self.value >= self.bar if self.at_least else self.value <= self.bar


def table(rows: Sequence[Row]) -> str:
    lines = ["| figure | measured | bar | |", "|---|---|---|---|"]
    for row in rows:
        bound = ">=" if row.at_least else "<="
        verdict = "" if row.reached else " **missed**"
        lines.append(
            f"| {row.figure} | {row.value:.4g}{verdict} | {bound} {row.bar:g} | {row.detail} |"
        )
    return "\n".join(lines)


def typical(work: Callable[[], object], times: int) -> float:
    """Return the median time of a call, in seconds."""
    taken: list[float] = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return median(taken)
