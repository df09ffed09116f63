"""The command `diff`: the difference between two states."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.output import note
from locus_memory.cli.printing.transcripts import message_line, print_message, print_text
from locus_memory.inspection.names import find_reference
from locus_memory.inspection.text import compact, snippet, visible, visible_name
from locus_memory.inspection.threads import compare_checkpoints

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.backends.base import Backend

__all__ = ["diff", "render_difference"]

_HELP = "First state: THREAD, THREAD@CHECKPOINT or THREAD@N (-1 is the newest)."


def diff(
    session: Session,
    a: Annotated[str, typer.Argument(metavar="A", help=_HELP)],
    b: Annotated[str, typer.Argument(metavar="B", help="Second state, in the same notation.")],
) -> None:
    """Show what changed from one checkpoint to another.

    The checkpoints may belong to the same thread or to two threads.
    """
    session.show(partial(compare_references, a=a, b=b), render_difference)


async def compare_references(backend: Backend, *, a: str, b: str) -> dict[str, Any]:
    """Return the difference between two checkpoints, as `diff --json` prints it."""
    places = [await find_reference(backend.checkpointer, reference) for reference in (a, b)]
    return await compare_checkpoints(backend, *places, tell=note)


def render_difference(console: Console, document: dict[str, Any]) -> None:
    """Print the difference: removed parts in red, added parts in green."""
    for sign, side, style in (("---", "a", "red"), ("+++", "b", "green")):
        print_text(console, Text(f"{sign} {_title(document[side])}", style=f"bold {style}"))
    messages = document["messages"]
    if not messages["edits"] and not document["changes"]:
        console.print("no difference")
        return
    if messages["common"]:
        print_text(console, Text(f"  {messages['common']} messages in common", style="dim"))
    for edit in messages["edits"]:
        for sign, entries, style in (("-", "removed", "red"), ("+", "added", "green")):
            for entry in edit[entries]:
                line = message_line(entry["place"], entry["message"], style)
                print_message(console, line, Text(sign, style=style))
    for change in document["changes"]:
        _render_change(console, change)


def _title(side: dict[str, Any]) -> str:
    return visible_name(
        f"{side['thread_id']}@{side['checkpoint_id']}  ({side['messages']} messages)"
    )


def _render_change(console: Console, change: dict[str, Any]) -> None:
    before, after = (snippet(_quoted(change[side])) for side in ("before", "after"))
    path = visible(change["path"])
    sign, style, shown = {
        "added": ("+", "green", after),
        "removed": ("-", "red", before),
        "changed": ("~", "yellow", f"{before} -> {after}"),
    }[change["kind"]]
    print_text(console, Text(f"{sign} {path}: {shown}", style=style))


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else compact(value)
