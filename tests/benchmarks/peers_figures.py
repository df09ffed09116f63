"""What the measures of peers have in common: times at three turns, tables, bars."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Any

from rows import Row

TURNS = 200
MARKS = (10, 100, 200)
LOADS = 20
# The saves about a mark: twenty turns, without the very first, which sets up.
WINDOWS = {10: slice(1, 20), 100: slice(90, 110), 200: slice(180, 200)}


@dataclass
class Part:
    """A measured part: the title and rows of its table, notes below it, and our bars."""

    title: str
    head: tuple[str, ...]
    lines: list[tuple[str, ...]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    bars: list[Row] = field(default_factory=list)

    def text(self) -> str:
        lines = [f"## {self.title}", "", "| " + " | ".join(self.head) + " |"]
        lines.append("|" + "---|" * len(self.head))
        lines += ["| " + " | ".join(line) + " |" for line in self.lines]
        return "\n".join([*lines, "", *self.notes])


@dataclass
class Times:
    """How long each turn's save took, and the loads after some of the turns; in seconds."""

    saves: list[float] = field(default_factory=list)
    loads: dict[int, list[float]] = field(default_factory=dict)

    def columns(self) -> list[str]:
        return [
            *(spread(self.saves[WINDOWS[mark]]) for mark in MARKS),
            *(spread(self.loads[mark]) for mark in MARKS),
        ]


TIME_COLUMNS = (
    *(f"save at {mark}" for mark in MARKS),
    *(f"load at {mark}" for mark in MARKS),
)


async def elapsed(call: Awaitable[Any]) -> float:
    start = time.perf_counter()
    await call
    return time.perf_counter() - start


def spread(taken: Sequence[float]) -> str:
    """Return the median and the 95th percentile, in milliseconds."""
    high = quantiles(taken, n=20, method="inclusive")[-1]
    return f"{median(taken) * 1e3:.3g} / {high * 1e3:.3g}"


def middle(taken: Sequence[float]) -> str:
    """Return the median, in milliseconds."""
    return f"{median(taken) * 1e3:.3g}"
