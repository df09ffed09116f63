"""The command `vacuum`: deletes old checkpoints of every thread and frees their space."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from locus_memory.checkpoint.pending import holder_of
from locus_memory.cli.options.confirmation import Yes, confirm, refuse_unasked
from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.output import note, print_sizes
from locus_memory.errors import CheckpointNotFoundError
from locus_memory.inspection.errors import UsageError
from locus_memory.inspection.names import all_checkpoints
from locus_memory.inspection.sizes import size_on_disk
from locus_memory.inspection.text import number

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.backends.base import Backend
    from locus_memory.checkpoint.base import BaseCheckpointer
    from locus_memory.events import Event

__all__ = ["vacuum"]

_DAYS = 30.0


def vacuum(
    session: Session,
    *,
    older_than_days: Annotated[
        float, typer.Option(metavar="N", min=0, help="Keep checkpoints younger than N days.")
    ] = _DAYS,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be deleted.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Delete old checkpoints of every thread, and free their space.

    The newest checkpoint of each thread always stays. The command asks first.
    """
    if math.isnan(older_than_days):
        raise UsageError("--older-than-days takes a number of days, not nan")
    if not dry_run and not yes:
        refuse_unasked("pass --yes to delete, or --dry-run to look")
        days = f"{older_than_days:g}"
        confirm(f"delete the checkpoints of every thread that are older than {days} days?")
    before = size_on_disk(session.path)
    document = session.run(partial(_vacuum, days=older_than_days, dry_run=dry_run))
    document["disk_bytes"] = {"before": before, "after": size_on_disk(session.path)}
    session.answer(document, partial(_render, document=document))


async def _vacuum(backend: Backend, *, days: float, dry_run: bool) -> dict[str, Any]:
    from locus_memory.events import subscribe  # noqa: PLC0415 - help must be quick

    damaged: list[str] = []
    unsubscribe = subscribe(partial(_notice, damaged))
    try:
        count = (
            await _condemned(backend.checkpointer, days)
            if dry_run
            else await backend.checkpointer.vacuum(days)
        )
    finally:
        unsubscribe()
    return {"dry_run": dry_run, "older_than_days": days, "deleted": count, "damaged": damaged}


def _notice(damaged: list[str], event: Event) -> None:
    """Keep the thread of an event that reports an unchanged, damaged thread."""
    if event.name == "checkpoint.not_pruned":
        damaged.append(str(event.attributes.get("thread_id")))


async def _condemned(checkpointer: BaseCheckpointer, days: float) -> int:
    """Return the number of checkpoints that are old enough to delete."""
    try:
        limit = datetime.now(UTC) - timedelta(days=days)
    except OverflowError:
        return 0
    from locus_memory.transfer.reading import all_threads  # noqa: PLC0415 - help must be quick

    return sum(
        [await _older(checkpointer, name, limit) async for name in all_threads(checkpointer)]
    )


async def _older(checkpointer: BaseCheckpointer, name: str, limit: datetime) -> int:
    try:
        infos = await all_checkpoints(checkpointer, name)
    except CheckpointNotFoundError:
        # The thread was deleted meanwhile.
        return 0
    holder = holder_of(name)
    if not holder:
        return sum(info.created_at < limit for info in infos[:-1])
    try:
        of = await all_checkpoints(checkpointer, holder)
    except CheckpointNotFoundError:
        of = []
    stay = {each.checkpoint_id for each in of if each is of[-1] or each.created_at >= limit}
    return sum(each.created_at < limit and each.metadata.get("of") not in stay for each in infos)


def _render(console: Console, *, document: dict[str, Any]) -> None:
    verb = "would delete" if document["dry_run"] else "deleted"
    days = f"{document['older_than_days']:g}"
    deleted = number(document["deleted"])
    console.out(f"{verb} {deleted} checkpoints older than {days} days", highlight=False)
    if not document["dry_run"]:
        print_sizes(console, document["disk_bytes"])
    for thread in document["damaged"]:
        note(f"thread {thread!r} is damaged and stays unchanged")
