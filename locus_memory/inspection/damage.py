"""Damage of the stored data: a walk over items and checkpoints, as far as somebody waits for it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from locus_memory.inspection.text import counted

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend
    from locus_memory.integrity import Finding

__all__ = ["Walk", "look_at"]


@dataclass(slots=True)
class Walk:
    """The state of a walk over the stored data.

    Attributes:
        intact: Number of intact items and checkpoints, by kind.
        damaged: The findings of damage.
        cursor: Where to continue; `None` means at the beginning.
        is_through: Whether the walk is complete.
    """

    intact: dict[str, int] = field(default_factory=lambda: {"item": 0, "checkpoint": 0})
    damaged: list[Finding] = field(default_factory=list)
    cursor: str | None = None
    is_through: bool = False

    @property
    def count(self) -> int:
        """Number of checked items and checkpoints."""
        return sum(self.intact.values()) + len(self.damaged)

    def add(self, finding: Finding) -> None:
        """Count a finding."""
        if finding.reason is None:
            self.intact[finding.kind] += 1
        else:
            self.damaged.append(finding)
        self.cursor = finding.cursor

    @property
    def summary(self) -> str:
        """The number of intact items and checkpoints, as text."""
        items, checkpoints = (counted(self.intact[name], name) for name in ("item", "checkpoint"))
        return f"{items} and {checkpoints} are intact"


async def look_at(
    backend: Backend,
    *,
    walk: Walk,
    limit: float = math.inf,
    most_damaged: float = math.inf,
    seconds: float | None = None,
    on_look: Callable[[Walk], None] = lambda _: None,
) -> None:
    """Check the stored data from the cursor of a walk on, until a limit is reached.

    Args:
        backend: The backend.
        walk: Counts what is found.
        limit: The most items and checkpoints of the walk.
        most_damaged: The most damaged ones of the walk.
        seconds: The longest time; `None`: any.
        on_look: Called after each finding.
    """
    import asyncio  # noqa: PLC0415 - help must be quick

    from locus_memory.integrity import verify  # noqa: PLC0415 - the same

    until = math.inf if seconds is None else time.monotonic() + seconds
    timer = asyncio.timeout(seconds)
    try:
        # The check of the database as a whole may take long before the first finding.
        async with timer, aclosing(verify(backend, after=walk.cursor)) as findings:
            async for finding in findings:
                walk.add(finding)
                on_look(walk)
                is_enough = walk.count >= limit or len(walk.damaged) >= most_damaged
                if is_enough or time.monotonic() > until:
                    return
            walk.is_through = True
    except TimeoutError:
        if not timer.expired():
            raise
