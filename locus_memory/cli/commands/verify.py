"""The command `verify`: checks all items and checkpoints for damage."""

from __future__ import annotations

import time
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.output import note, remark
from locus_memory.cli.printing.tables import Cell, print_table
from locus_memory.inspection.errors import CommandError
from locus_memory.inspection.names import format_namespace
from locus_memory.inspection.text import number

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.backends.base import Backend
    from locus_memory.integrity import Finding

__all__ = ["Walk", "look_at", "verify"]

_EVERY = 5.0
"""Seconds between two lines of progress."""


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
        items, checkpoints = self.intact["item"], self.intact["checkpoint"]
        return f"{_count(items, 'item')} and {_count(checkpoints, 'checkpoint')} are intact"


def _count(count: int, what: str) -> str:
    return f"{number(count)} {what}{'' if count == 1 else 's'}"


def verify(
    session: Session,
    *,
    after: Annotated[
        str | None,
        typer.Option(metavar="CURSOR", help="Continue after this cursor of an earlier run."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Maximum number of checks; no limit by default."),
    ] = None,
) -> None:
    """Check every item and every checkpoint, and list the damaged ones.

    Nothing is changed. You can stop it at any time: it prints the command that continues. The
    exit code is 1 if anything is damaged.
    """
    walk = Walk(cursor=after)
    try:
        session.run(partial(look_at, walk=walk, limit=limit, has_progress=True))
    finally:
        if not walk.is_through and walk.count:
            note(f"to continue: {session.command(after=walk.cursor)}", verbatim=True)
    session.answer(_document(walk), partial(_render, walk=walk))
    if walk.damaged:
        raise CommandError(f"{number(len(walk.damaged))} damaged", answered=True)


async def look_at(
    backend: Backend,
    *,
    walk: Walk,
    limit: int | None = None,
    seconds: float | None = None,
    has_progress: bool = False,
) -> None:
    """Check the stored data until the limit or the time is reached."""
    from locus_memory.integrity import verify as findings  # noqa: PLC0415 - help must be quick

    started = told = time.monotonic()
    async with aclosing(findings(backend, after=walk.cursor)) as found:
        async for finding in found:
            walk.add(finding)
            now = time.monotonic()
            if has_progress and now - told > _EVERY:
                told = now
                note(f"{number(walk.count)} checked, {number(len(walk.damaged))} damaged")
            if walk.count == limit or (seconds is not None and now - started > seconds):
                return
    walk.is_through = True


def _document(walk: Walk) -> dict[str, Any]:
    return {
        "ok": not walk.damaged,
        "items": walk.intact["item"],
        "checkpoints": walk.intact["checkpoint"],
        "damaged": [_described(finding) for finding in walk.damaged],
        "next": None if walk.is_through else walk.cursor,
    }


def _described(finding: Finding) -> dict[str, Any]:
    parts: dict[str, Any] = {"kind": finding.kind}
    if finding.kind == "item":
        *labels, key = finding.place or ("",)
        parts |= {"namespace": labels, "key": key}
    elif finding.kind == "checkpoint":
        thread, checkpoint = (*finding.place, None, None)[:2]
        parts |= {"thread_id": thread, "checkpoint_id": checkpoint}
    return {**parts, "reason": finding.reason}


def _render(console: Console, walk: Walk) -> None:
    rows: list[list[Cell]] = [[each.kind, _name(each), str(each.reason)] for each in walk.damaged]
    if rows:
        print_table(console, ["damaged", "name", "*reason"], rows)
    remark(console, walk.summary)


def _name(finding: Finding) -> str:
    if finding.kind == "checkpoint":
        return "@".join(finding.place)
    return format_namespace(finding.place)
