"""The command `verify`: checks all items and checkpoints for damage."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.output import note, remark
from locus_memory.cli.printing.progress import one_bar
from locus_memory.cli.printing.tables import Cell, print_table
from locus_memory.inspection.damage import Walk, look_at
from locus_memory.inspection.errors import CommandError
from locus_memory.inspection.names import format_namespace
from locus_memory.inspection.text import number

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.integrity import Finding

__all__ = ["verify"]


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
        most = math.inf if limit is None else limit
        with one_bar("verify", quiet=session.as_json) as show:
            work = partial(look_at, walk=walk, limit=most)
            session.run(partial(work, on_look=lambda walk: show(completed=walk.count)))
    finally:
        if not walk.is_through and walk.count:
            note(f"to continue: {session.command(after=walk.cursor)}", verbatim=True)
    session.answer(_document(walk), partial(_render, walk=walk))
    if walk.damaged:
        raise CommandError(f"{number(len(walk.damaged))} damaged", answered=True)


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
