"""The commands on checkpoints: threads, checkpoints, show, fork, prune and stats."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from locus_memory.cli.differences import messages_of
from locus_memory.cli.names import all_checkpoints, find_checkpoint, find_reference
from locus_memory.cli.options import AsJson, Limit, Url, parse_age
from locus_memory.cli.outcome import CommandError, UsageError
from locus_memory.cli.output import compact, moment, number, snippet, table, visible_name
from locus_memory.cli.session import Session
from locus_memory.cli.sizes import measure_threads, size_on_disk
from locus_memory.cli.transcript_view import print_transcript

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.backends.base import Backend
    from locus_memory.checkpoint.base import CheckpointInfo

__all__ = ["checkpoints", "fork", "list_threads", "prune", "show", "stats"]

ThreadArgument = Annotated[str, typer.Argument(metavar="THREAD", help="The thread's id.")]


def list_threads(
    context: typer.Context,
    *,
    prefix: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only ids that start with this.")
    ] = None,
    after: Annotated[str | None, typer.Option(metavar="THREAD", help="Only after this.")] = None,
    limit: Limit = 100,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """List the threads."""
    session = Session.of(context, url, as_json=as_json)
    found = session.run(partial(_threads, prefix=prefix, after=after, limit=limit))
    session.answer({"threads": found}, partial(_render_threads, found=found))


async def _threads(
    backend: Backend, *, prefix: str | None, after: str | None, limit: int
) -> list[dict[str, Any]]:
    names = await backend.checkpointer.list_threads(limit, prefix=prefix, after=after)
    return [await _thread(backend, name) for name in names]


async def _thread(backend: Backend, thread_id: str) -> dict[str, Any]:
    usage = await backend.checkpointer.get_storage_stats(thread_id)
    newest = await backend.checkpointer.list_with_metadata(thread_id, 1)
    return {
        "thread_id": thread_id,
        "checkpoints": usage["total_checkpoints"],
        "stored_bytes": usage["compressed_size"],
        "newest": _info(newest[0]) if newest else None,
    }


def _info(info: CheckpointInfo) -> dict[str, Any]:
    return {
        "checkpoint_id": info.checkpoint_id,
        "sequence": info.sequence,
        "created_at": info.created_at.isoformat(),
        "metadata": info.metadata,
        "is_full": info.is_full,
        "bytes": info.size,
        "stored_bytes": info.stored_size,
    }


def _render_threads(console: Console, found: list[dict[str, Any]]) -> None:
    if not found:
        console.print("no threads")
        return
    rows = [
        [
            row["thread_id"],
            number(row["checkpoints"]),
            number(row["stored_bytes"]),
            moment(datetime.fromisoformat(row["newest"]["created_at"])) if row["newest"] else "",
        ]
        for row in found
    ]
    console.print(table(["thread", ">checkpoints", ">bytes stored", "saved (UTC)"], rows))


def checkpoints(
    context: typer.Context,
    thread: ThreadArgument,
    *,
    limit: Limit = 20,
    before: Annotated[
        str | None, typer.Option(metavar="ID", help="Only those older than this checkpoint.")
    ] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """List a thread's checkpoints, the newest first."""
    session = Session.of(context, url, as_json=as_json)
    found = session.run(partial(_checkpoints, thread_id=thread, limit=limit, before=before))
    document = {"thread_id": thread, "checkpoints": found}
    session.answer(document, partial(_render_checkpoints, found=found))


async def _checkpoints(
    backend: Backend, *, thread_id: str, limit: int, before: str | None
) -> list[dict[str, Any]]:
    infos = await all_checkpoints(backend.checkpointer, thread_id)
    places = {info.checkpoint_id: place for place, info in enumerate(infos, 1)}
    end = len(infos)
    if before is not None:
        end = places[await find_checkpoint(backend.checkpointer, thread_id, before)] - 1
    page = infos[max(0, end - limit) : end][::-1]
    return [{"place": places[info.checkpoint_id], **_info(info)} for info in page]


def _render_checkpoints(console: Console, found: list[dict[str, Any]]) -> None:
    if not found:
        console.print("no checkpoints there")
        return
    rows = [
        [
            str(row["place"]),
            row["checkpoint_id"],
            "full" if row["is_full"] else "delta",
            number(row["stored_bytes"]),
            snippet(compact(row["metadata"])) if row["metadata"] else "",
        ]
        for row in found
    ]
    console.print(table([">place", "checkpoint", "kind", ">bytes", "~metadata"], rows))


def show(
    context: typer.Context,
    thread: Annotated[
        str, typer.Argument(metavar="THREAD", help="The thread's id, or THREAD@CHECKPOINT.")
    ],
    checkpoint: Annotated[
        str | None, typer.Argument(metavar="CHECKPOINT", help="Its id; the newest by default.")
    ] = None,
    *,
    at: Annotated[
        int | None,
        typer.Option("--at", metavar="N", help="The Nth checkpoint; -1 is the newest."),
    ] = None,
    last: Annotated[
        int | None, typer.Option("--last", metavar="N", min=0, help="Only the last N messages.")
    ] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Print the conversation as it was at a checkpoint."""
    session = Session.of(context, url, as_json=as_json)
    if checkpoint is not None and at is not None:
        raise UsageError("give CHECKPOINT or --at, not both")
    name = checkpoint if at is None else str(at)
    document = session.run(partial(_load, thread=thread, name=name))
    session.answer(document, partial(_render_state, document=document, last=last))


async def _load(backend: Backend, *, thread: str, name: str | None) -> dict[str, Any]:
    if name is None:
        thread_id, checkpoint_id = await find_reference(backend.checkpointer, thread)
    else:
        thread_id = thread
        checkpoint_id = await find_checkpoint(backend.checkpointer, thread_id, name)
    return {
        "thread_id": thread_id,
        "checkpoint_id": checkpoint_id,
        "metadata": await backend.checkpointer.get_metadata(thread_id, checkpoint_id),
        "state": await backend.checkpointer.load(thread_id, checkpoint_id),
    }


def _render_state(console: Console, document: dict[str, Any], last: int | None) -> None:
    messages, rest = messages_of(document["state"])
    heading = f"{document['thread_id']}@{document['checkpoint_id']}"
    console.print(
        f"{visible_name(heading)}  ({len(messages)} messages)", markup=False, soft_wrap=True
    )
    skipped = 0 if last is None else max(0, len(messages) - last)
    numbered = list(enumerate(messages, 1))[skipped:]
    print_transcript(console, numbered)
    if not messages:
        console.print_json(data=rest)


def fork(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(metavar="THREAD", help="Or THREAD@CHECKPOINT; the newest by default."),
    ],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The new thread's id.")],
    *,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Start a new thread from a checkpoint, with its history."""
    session = Session.of(context, url, as_json=as_json)
    document = session.run(partial(_fork, source=source, new=new))
    line = (
        f"{document['thread_id']} starts at {document['checkpoint_id']} of {document['source']}, "
        f"with {document['checkpoints']} checkpoints"
    )
    session.answer(document, lambda console: console.out(visible_name(line), highlight=False))


async def _fork(backend: Backend, *, source: str, new: str) -> dict[str, Any]:
    thread_id, checkpoint_id = await find_reference(backend.checkpointer, source)
    forked = await backend.checkpointer.fork(thread_id, checkpoint_id, new)
    usage = await backend.checkpointer.get_storage_stats(new)
    return {
        "thread_id": new,
        "checkpoint_id": forked,
        "source": thread_id,
        "checkpoints": usage["total_checkpoints"],
    }


def prune(
    context: typer.Context,
    thread: ThreadArgument,
    *,
    keep_last: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Keep the newest N.")
    ] = None,
    older_than: Annotated[
        str | None, typer.Option(metavar="AGE", help="Keep what is younger than 12h, 30d, 2w, ...")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Delete old checkpoints of a thread; the newest stays.

    With both limits, only what both condemn is deleted.
    """
    session = Session.of(context, url, as_json=as_json)
    if keep_last is None and older_than is None:
        raise UsageError("say what to keep: --keep-last, --older-than or both")
    document = session.run(
        partial(_prune, thread_id=thread, keep=keep_last, age=older_than, dry_run=dry_run)
    )
    verb = "would delete" if dry_run else "deleted"
    line = f"{verb} {document['deleted']} of {document['total']} checkpoints of {thread}"
    session.answer(document, lambda console: console.out(visible_name(line), highlight=False))


async def _prune(
    backend: Backend, *, thread_id: str, keep: int | None, age: str | None, dry_run: bool
) -> dict[str, Any]:
    infos = await all_checkpoints(backend.checkpointer, thread_id)
    before = None if age is None else _moment_before(age)
    condemned = [
        info
        for info in infos[: len(infos) - (keep or 1)]
        if before is None or info.created_at < before
    ]
    deleted = len(condemned)
    if not dry_run:
        deleted = await backend.checkpointer.prune(thread_id, keep_last=keep, older_than=before)
    return {
        "thread_id": thread_id,
        "dry_run": dry_run,
        "total": len(infos),
        "deleted": deleted,
        "checkpoint_ids": [info.checkpoint_id for info in condemned],
    }


def _moment_before(age: str) -> datetime:
    try:
        return datetime.now(UTC) - parse_age(age)
    except OverflowError:
        raise UsageError(f"{age} is too long ago") from None


def stats(
    context: typer.Context,
    thread: Annotated[
        str | None, typer.Argument(metavar="THREAD", help="One thread; all by default.")
    ] = None,
    *,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Show what threads cost, next to the full JSON."""
    session = Session.of(context, url, as_json=as_json)
    rows = session.run(partial(measure_threads, thread_id=thread, quiet=as_json))
    if thread is not None and not rows:
        raise CommandError(f"no thread {thread!r}")
    document = {"threads": rows, "disk_bytes": size_on_disk(session.path)}
    session.answer(document, partial(_render_stats, document=document))


_COLUMNS = (">checkpoints", ">full", ">delta", ">stored", ">as JSON", ">ratio")


def _render_stats(console: Console, document: dict[str, Any]) -> None:
    rows = [
        [
            row["thread_id"],
            number(row["total_checkpoints"]),
            number(row["full_checkpoints"]),
            number(row["delta_checkpoints"]),
            number(row["stored_bytes"]),
            number(row["json_bytes"]),
            f"{row['ratio']:.2%}",
        ]
        for row in document["threads"]
    ]
    console.print(table(["thread", *_COLUMNS], rows) if rows else "no threads")
    if document["disk_bytes"] is not None:
        console.print(f"on disk: {number(document['disk_bytes'])} bytes, the store included")
