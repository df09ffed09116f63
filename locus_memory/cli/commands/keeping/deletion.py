"""The commands `compact`, which erases deleted data, and `audit-deletion`, which proves it."""

from __future__ import annotations

import time
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.output import print_sizes, remark
from locus_memory.cli.printing.tables import Cell, print_table
from locus_memory.inspection.errors import CommandError
from locus_memory.inspection.sizes import size_on_disk
from locus_memory.inspection.text import number, visible_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from locus_memory.backends.base import Backend

__all__ = ["audit", "compact"]


def compact(session: Session) -> None:
    """Erase deleted data from the files of the database, and free their space.

    It can take long. In PostgreSQL each table is rewritten, and locked meanwhile.
    """
    before = size_on_disk(session.path)
    session.run(lambda backend: backend.compact())
    document = {"disk_bytes": {"before": before, "after": size_on_disk(session.path)}}
    session.answer(document, partial(_render_size, document=document))


def _render_size(console: Console, *, document: dict[str, Any]) -> None:
    if not print_sizes(console, document["disk_bytes"]):
        remark(console, "compacted")


def audit(
    session: Session,
    words: Annotated[
        list[str], typer.Argument(metavar="WORD...", help="Words that only the deleted data has.")
    ],
) -> None:
    """Search every place of the database for words of deleted data, and report each place.

    Run forget and compact first. The exit code is 1 if a word is found, or if a place cannot be
    looked at. The report does not repeat the words, but it names items and checkpoints that have
    one.
    """
    document = session.show(partial(_audit, words=words), _render)
    if not document["proven"]:
        raise CommandError(
            f"the deletion is not proven: {number(document['found'])} hits; {_advice(document)}",
            answered=True,
        )


def _advice(document: dict[str, Any]) -> str:
    """Return what to do about an audit that proves nothing."""
    if not document["found"]:
        return "some places cannot be looked at"
    if any(each["where"] for each in document["places"]):
        return "erase what is named with forget or rm, or choose words that no other data has"
    return "run compact, or choose words that no other data has"


async def _audit(backend: Backend, *, words: Sequence[str]) -> dict[str, Any]:
    from locus_memory import __version__  # noqa: PLC0415 - help must be quick
    from locus_memory.deletion import audit_deletion  # noqa: PLC0415 - the same
    from locus_memory.store.item import timestamp  # noqa: PLC0415 - the same

    report = await audit_deletion(backend, words)
    return {
        "proven": report.is_proven,
        "found": report.found,
        "words": len(words),
        "provider": report.provider,
        "at": timestamp(time.time()).isoformat(),
        "version": __version__,
        "places": [asdict(place) for place in report.places],
    }


def _render(console: Console, *, document: dict[str, Any]) -> None:
    rows: list[list[Cell]] = [
        [visible_name(each["name"]), each["how"], each["bytes"], each["found"]]
        for each in document["places"]
    ]
    print_table(console, ["*place", "*looked at", ">bytes", ">found"], rows)
    told: dict[str, list[str]] = {}
    for each in document["places"]:
        if each["problem"] or each["limit"]:
            told.setdefault(each["problem"] or each["limit"], []).append(each["name"])
    for why, names in told.items():
        of = names[0] if len(names) == 1 else f"{len(names)} places, the first is {names[0]}"
        remark(console, visible_name(f"{of}: {why}"))
    for each in document["places"]:
        for name in each["where"]:
            remark(console, f"found in {visible_name(name)}")
    if document["proven"]:
        remark(console, "no word was found")
