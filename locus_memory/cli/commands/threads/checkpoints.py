"""The checkpoint commands: checkpoints, show, fork and prune."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from locus_memory.checkpoint.differences import messages_of
from locus_memory.cli.commands.threads.threads import print_with_origins
from locus_memory.cli.options.common import Limit, parse_age, parse_object
from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.output import note
from locus_memory.cli.printing.tables import Cell, Cut, print_records
from locus_memory.cli.printing.transcripts import message_record, print_transcript
from locus_memory.inspection.errors import UsageError
from locus_memory.inspection.names import (
    all_checkpoints,
    find_checkpoint,
    find_reference,
    find_thread,
)
from locus_memory.inspection.text import compact, visible_name
from locus_memory.inspection.threads import (
    describe_checkpoint,
    fork_thread,
    load_state,
    prune_thread,
)

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.backends.base import Backend
    from locus_memory.store.filters import Condition

__all__ = [
    "checkpoints",
    "fork",
    "prune",
    "show",
]

ThreadArgument = Annotated[str, typer.Argument(metavar="THREAD", help="Id of the thread.")]


def checkpoints(
    session: Session,
    thread: ThreadArgument,
    *,
    limit: Limit = 20,
    before: Annotated[
        str | None, typer.Option(metavar="ID", help="Only checkpoints older than this one.")
    ] = None,
    condition: Annotated[
        str | None,
        typer.Option("--filter", metavar="JSON", help="Filter on the metadata, a JSON object."),
    ] = None,
) -> None:
    """List a thread's checkpoints, the newest first."""
    from locus_memory.store.filters import parse_filter  # noqa: PLC0415 - help must be quick

    wanted = parse_filter(parse_object(condition, "--filter"))
    work = partial(_checkpoints, thread=thread, limit=limit, before=before, wanted=wanted)
    document = session.run(work)
    session.answer(document, partial(_render_checkpoints, found=document["checkpoints"]))
    session.tell_more(document["more"], before=document["next"])


async def _checkpoints(
    backend: Backend, *, thread: str, limit: int, before: str | None, wanted: Condition
) -> dict[str, Any]:
    from locus_memory.store.filters import matches  # noqa: PLC0415 - help must be quick

    thread_id = await find_thread(backend.checkpointer, thread)
    infos = await all_checkpoints(backend.checkpointer, thread_id)
    places = {info.checkpoint_id: place for place, info in enumerate(infos, 1)}
    end = len(infos)
    if before is not None:
        end = places[await find_checkpoint(backend.checkpointer, thread_id, before)] - 1
    matching = [info for info in infos[:end][::-1] if matches(wanted, None, info.metadata)]
    page = matching[:limit]
    more = len(matching) - len(page)
    return {
        "thread_id": thread_id,
        "checkpoints": [
            {"place": places[info.checkpoint_id], **describe_checkpoint(info)} for info in page
        ],
        "more": more,
        "next": (page[-1].checkpoint_id if page else before) if more else None,
    }


def _render_checkpoints(console: Console, found: list[dict[str, Any]]) -> None:
    rows: list[list[Cell]] = [
        [
            row["place"],
            row["checkpoint_id"],
            "full" if row["is_full"] else "delta",
            row["stored_bytes"],
            Cut(compact(row["metadata"]) if row["metadata"] else ""),
        ]
        for row in found
    ]
    columns = [">place", "checkpoint", "kind", ">bytes", "~metadata"]
    print_with_origins(console, columns, rows, found, "no checkpoints found")


def show(
    session: Session,
    thread: Annotated[
        str,
        typer.Argument(
            metavar="THREAD",
            help="Thread, or THREAD@CHECKPOINT, an id or a place (-1 is the newest).",
        ),
    ],
    *,
    last: Annotated[
        int | None,
        typer.Option(
            "--last", metavar="N", min=0, help="Only the last N messages; all by default."
        ),
    ] = None,
) -> None:
    """Print the conversation at a checkpoint."""
    session.show(partial(_load, reference=thread), partial(_render_state, last=last))


async def _load(backend: Backend, *, reference: str) -> dict[str, Any]:
    place = await find_reference(backend.checkpointer, reference)
    return await load_state(backend, *place, tell=note)


def _render_state(console: Console, document: dict[str, Any], last: int | None) -> None:
    messages, rest = messages_of(document["state"])
    skipped = 0 if last is None else max(0, len(messages) - last)
    numbered = list(enumerate(messages, 1))[skipped:]
    if messages and not console.is_terminal:
        print_records(console, [message_record(*each) for each in numbered])
        return
    heading = f"{document['thread_id']}@{document['checkpoint_id']}"
    if console.is_terminal:
        count = f"({len(messages)} messages)"
        console.print(f"{visible_name(heading)}  {count}", markup=False, soft_wrap=True)
    print_transcript(console, numbered)
    if not messages:
        console.print_json(data=rest)


def fork(
    session: Session,
    source: Annotated[
        str,
        typer.Argument(
            metavar="THREAD", help="Thread, or THREAD@CHECKPOINT; the newest by default."
        ),
    ],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Id of the new thread.")],
) -> None:
    """Start a new thread from a checkpoint, with its history."""
    document = session.run(partial(_fork, source=source, new=new))
    line = (
        f"{document['thread_id']} forked from {document['source']}@{document['checkpoint_id']}, "
        f"with {document['checkpoints']} checkpoints"
    )
    session.answer(document, lambda console: console.out(visible_name(line), highlight=False))


async def _fork(backend: Backend, *, source: str, new: str) -> dict[str, Any]:
    return await fork_thread(backend, *await find_reference(backend.checkpointer, source), new)


def prune(
    session: Session,
    thread: ThreadArgument,
    *,
    keep_last: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Keep the newest N checkpoints.")
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(metavar="AGE", help="Keep checkpoints younger than AGE, such as 30d."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be deleted.")
    ] = False,
) -> None:
    """Delete old checkpoints of a thread; the newest one stays.

    With both limits, a checkpoint is deleted only if it is over both.
    """
    if keep_last is None and older_than is None:
        raise UsageError("give --keep-last, --older-than or both")
    before = None if older_than is None else _moment_before(older_than)
    document = session.run(
        partial(prune_thread, thread=thread, keep=keep_last, before=before, dry_run=dry_run)
    )
    verb = "would delete" if dry_run else "deleted"
    line = f"{verb} {document['deleted']} of {document['total']} checkpoints of {thread}"
    session.answer(document, lambda console: console.out(visible_name(line), highlight=False))


def _moment_before(age: str) -> datetime:
    try:
        return datetime.now(UTC) - parse_age(age)
    except OverflowError:
        raise UsageError(f"age {age!r} is too large: give a shorter one") from None
