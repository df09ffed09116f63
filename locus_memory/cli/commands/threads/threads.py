"""The commands `threads`, which lists threads, and `threads rm`, which deletes some."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from locus_memory.cli.conversations.foreign_threads import Foreign
from locus_memory.cli.conversations.states import read_metadata
from locus_memory.cli.lazy import subcommands
from locus_memory.cli.options.common import AsJson, Limit, Url, refuse_before_subcommand
from locus_memory.cli.options.confirmation import Yes, confirm, refuse_unasked
from locus_memory.cli.options.names import find_fork_point, find_thread
from locus_memory.cli.options.session import Globals, Session
from locus_memory.cli.printing.output import console, number, remark
from locus_memory.cli.printing.paging import COUNTED, tell_more
from locus_memory.cli.printing.tables import Cell, print_table
from locus_memory.errors import CheckpointNotFoundError

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.backends.base import Backend
    from locus_memory.checkpoint.base import BaseCheckpointer, CheckpointInfo

__all__ = [
    "commands",
    "describe_checkpoint",
    "plan_removal",
    "print_with_origins",
    "remove_planned",
]

_PAGE = 500


def list_threads(
    context: typer.Context,
    *,
    prefix: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only thread ids that start with TEXT.")
    ] = None,
    after: Annotated[str | None, typer.Option(metavar="THREAD", help="Only after this id.")] = None,
    limit: Limit = 100,
    everything: Annotated[
        bool, typer.Option("--all", help="Also list the threads of LangGraph's pending writes.")
    ] = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """List the threads, or delete some with `rm`."""
    session = Session.of(context, url, as_json=as_json)
    if context.invoked_subcommand is not None:
        refuse_before_subcommand(
            context, prefix="--prefix", after="--after", limit="--limit", everything="--all"
        )
        context.obj = Globals(session.url, session.as_json)
        return
    found = partial(_list, prefix=prefix, after=after, limit=limit, everything=everything)
    document = session.run(found)
    session.answer(document, partial(_render, found=document["threads"]))
    if not session.as_json:
        tell_more(context, document["more"], after=document["next"])


async def _list(
    backend: Backend, *, prefix: str | None, after: str | None, limit: int, everything: bool
) -> dict[str, Any]:
    names: list[str] = []
    more = 0
    async for name in _names(backend.checkpointer, prefix, after, limit):
        if not everything and Foreign.hides(name):
            continue
        if len(names) < limit:
            names.append(name)
        else:
            more += 1
        if more == COUNTED:
            break
    end = names[-1] if names else after
    return {
        "threads": [await _describe(backend.checkpointer, name) for name in names],
        "more": more,
        "next": end if more else None,
    }


async def _names(
    checkpointer: BaseCheckpointer, prefix: str | None, after: str | None, limit: int
) -> AsyncIterator[str]:
    """Yield the names of the threads; the first page has the number to show."""
    size = min(limit + 1, _PAGE)
    while names := await checkpointer.list_threads(size, prefix=prefix, after=after):
        for name in names:
            yield name
        if len(names) < size:
            return
        after, size = names[-1], COUNTED


async def _describe(checkpointer: BaseCheckpointer, thread_id: str) -> dict[str, Any]:
    usage = await checkpointer.get_storage_stats(thread_id)
    newest = await checkpointer.list_with_metadata(thread_id, 1)
    return {
        "thread_id": thread_id,
        "checkpoints": usage["total_checkpoints"],
        "stored_bytes": usage["compressed_size"],
        "newest": describe_checkpoint(newest[0]) if newest else None,
        "forked_from": _origin(await find_fork_point(checkpointer, thread_id)),
    }


def _origin(forked_from: tuple[str, str] | None) -> dict[str, str] | None:
    if forked_from is None:
        return None
    return {"thread_id": forked_from[0], "checkpoint_id": forked_from[1]}


def describe_checkpoint(info: CheckpointInfo) -> dict[str, Any]:
    """Return the description of a checkpoint, as JSON."""
    return {
        "checkpoint_id": info.checkpoint_id,
        "sequence": info.sequence,
        "created_at": info.created_at.isoformat(),
        "metadata": read_metadata(info.thread_id, info.metadata),
        "is_full": info.is_full,
        "bytes": info.size,
        "stored_bytes": info.stored_size,
        "forked_from": _origin(info.forked_from),
    }


def print_with_origins(
    output: Console, columns: list[str], rows: list[list[Cell]], found: list[dict[str, Any]]
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
    print_table(output, columns, rows, records=records)


def _render(console: Console, found: list[dict[str, Any]]) -> None:
    if not found:
        remark(console, "no threads")
        return
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
    print_with_origins(console, columns, rows, found)


def remove_threads(
    context: typer.Context,
    threads: Annotated[list[str], typer.Argument(metavar="THREAD...", help="Ids of the threads.")],
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be deleted.")
    ] = False,
    yes: Yes = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Delete threads with all their checkpoints.

    The command shows its plan and asks first. Memories, and the turns that `import` stored,
    stay: `forget` and `rm` delete those.
    """
    session = Session.of(context, url, as_json=as_json)
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


async def plan_removal(backend: Backend, *, threads: list[str]) -> list[dict[str, Any]]:
    """Return what the deletion of each thread covers; nothing is deleted."""
    names = [await find_thread(backend.checkpointer, name) for name in threads]
    # A thread that was named twice counts once.
    return [await _doomed(backend.checkpointer, name) for name in dict.fromkeys(names)]


async def _doomed(checkpointer: BaseCheckpointer, thread_id: str) -> dict[str, Any]:
    """Return what the deletion of a thread covers.

    Raises:
        CheckpointNotFoundError: The thread does not exist.
    """
    parts = [name for name in Foreign.parts(thread_id) if await checkpointer.exists(name)]
    if thread_id not in parts:
        raise CheckpointNotFoundError(thread_id)
    usages = [await checkpointer.get_storage_stats(name) for name in parts]
    return {
        "thread_id": thread_id,
        "checkpoints": usages[parts.index(thread_id)]["total_checkpoints"],
        "stored_bytes": sum(usage["compressed_size"] for usage in usages),
        "writes": [name for name in parts if name != thread_id],
    }


async def remove_planned(backend: Backend, *, plan: list[dict[str, Any]]) -> None:
    """Delete the threads of a plan."""
    for each in plan:
        # Delete the writes first: until then, their checkpoints still lead to them.
        for name in (*each["writes"], each["thread_id"]):
            await backend.checkpointer.delete(name)


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
