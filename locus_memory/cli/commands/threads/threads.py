"""The commands `threads`, which lists threads, and `threads rm`, which deletes some."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from locus_memory._internal.running.paging import paged
from locus_memory.cli.lazy import subcommands
from locus_memory.cli.options.common import Limit
from locus_memory.cli.options.confirmation import Yes, confirm, refuse_unasked
from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.output import console
from locus_memory.cli.printing.paging import COUNTED
from locus_memory.cli.printing.tables import Cell, print_table
from locus_memory.inspection.names import find_fork_point, hides
from locus_memory.inspection.text import number
from locus_memory.inspection.threads import (
    checkpoint_name,
    describe_thread,
    plan_removal,
    remove_planned,
)

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.backends.base import Backend
    from locus_memory.checkpoint.base import BaseCheckpointer

__all__ = [
    "commands",
    "print_with_origins",
]

_PAGE = 500


def list_threads(
    session: Session,
    *,
    prefix: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only thread ids that start with TEXT.")
    ] = None,
    after: Annotated[str | None, typer.Option(metavar="THREAD", help="Only after this id.")] = None,
    user: Annotated[
        str | None,
        typer.Option(
            "--user", metavar="ID", help="Only threads of this user, as forget finds them."
        ),
    ] = None,
    limit: Limit = 100,
    everything: Annotated[
        bool, typer.Option("--all", help="Also list the threads of LangGraph's pending writes.")
    ] = False,
) -> None:
    """List the threads, or delete some with `rm`."""
    document = session.run(
        partial(_list, prefix=prefix, after=after, user=user, limit=limit, everything=everything)
    )
    session.answer(document, partial(_render, found=document["threads"]))
    session.tell_more(document["more"], after=document["next"])


async def _list(
    backend: Backend,
    *,
    prefix: str | None,
    after: str | None,
    user: str | None,
    limit: int,
    everything: bool,
) -> dict[str, Any]:
    from locus_memory.memory.forgetting.threads import view_thread  # noqa: PLC0415 - help is quick

    names: list[str] = []
    more = 0
    listed = paged(
        lambda last: backend.checkpointer.list_threads(
            _PAGE, prefix=prefix, after=after if last is None else last
        )
    )
    async for name in listed:
        if not everything and hides(name):
            continue
        if user is not None and user not in (await view_thread(backend.checkpointer, name)).users:
            continue
        if len(names) < limit:
            names.append(name)
        else:
            more += 1
        if more == COUNTED:
            break
    end = names[-1] if names else after
    return {
        "threads": [await _row(backend.checkpointer, name) for name in names],
        "more": more,
        "next": end if more else None,
    }


async def _row(checkpointer: BaseCheckpointer, thread_id: str) -> dict[str, Any]:
    source = checkpoint_name(await find_fork_point(checkpointer, thread_id))
    return {**await describe_thread(checkpointer, thread_id), "forked_from": source}


def print_with_origins(
    output: Console,
    columns: list[str],
    rows: list[list[Cell]],
    found: list[dict[str, Any]],
    empty: str,
) -> None:
    """Print a table, with a column for the source if any row is from a fork.

    A terminal shows the name of the source thread. A pipe always gets a field, with the
    checkpoint as well.
    """
    origins = [each["forked_from"] or {} for each in found]
    records: list[list[Cell]] = [
        [*row, "@".join(origin.values())] for row, origin in zip(rows, origins, strict=True)
    ]
    if any(origins):
        columns = [*columns, "forked from"]
        rows = [
            [*row, origin.get("thread_id", "")] for row, origin in zip(rows, origins, strict=True)
        ]
    print_table(output, columns, rows, records=records, empty=empty)


def _render(console: Console, found: list[dict[str, Any]]) -> None:
    rows: list[list[Cell]] = [
        [
            row["thread_id"],
            row["checkpoints"],
            row["stored_bytes"],
            datetime.fromisoformat(row["newest"]["created_at"]) if row["newest"] else "",
        ]
        for row in found
    ]
    columns = ["thread", ">checkpoints", ">bytes", "saved (UTC)"]
    print_with_origins(console, columns, rows, found, "no threads")


def remove_threads(
    session: Session,
    threads: Annotated[list[str], typer.Argument(metavar="THREAD...", help="Ids of the threads.")],
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be deleted.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Delete threads with all their checkpoints.

    The command shows its plan and asks first. The records of their runs go with them. Memories
    and recorded turns stay: `forget` erases those.
    """
    must_ask = not dry_run and not yes
    if must_ask:
        refuse_unasked("pass --yes to delete, or --dry-run to look")
    plan = session.run(partial(plan_removal, threads=threads))
    if must_ask:
        _print_plan(console(stderr=True), plan)
        confirm(f"delete {_threads(len(plan))} permanently?")
    if not dry_run:
        session.run(partial(remove_planned, plan=plan))
    document = {"dry_run": dry_run, "threads": plan}
    session.answer(document, partial(_render_removed, document=document))


def _render_removed(output: Console, *, document: dict[str, Any]) -> None:
    _print_plan(output, document["threads"])
    if output.is_terminal:
        verb = "would delete" if document["dry_run"] else "deleted"
        output.print(f"{verb} {_threads(len(document['threads']))}", markup=False)


def _print_plan(output: Console, plan: list[dict[str, Any]]) -> None:
    rows = [[each["thread_id"], each["checkpoints"], each["stored_bytes"]] for each in plan]
    print_table(output, ["thread", ">checkpoints", ">bytes"], rows)


def _threads(count: int) -> str:
    return f"{number(count)} thread{'' if count == 1 else 's'}"


commands = subcommands("threads", list_threads, {"rm": remove_threads})
