"""The command `consolidate`: ends memories, and erases what is too old."""

from __future__ import annotations

import math
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from locus_memory.cli.options.memories import DEFAULT_PREFIX, Prefix
from locus_memory.cli.options.models import BaseUrlOption, ModelOption, open_model
from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.output import remark
from locus_memory.cli.printing.tables import Cell, print_table
from locus_memory.inspection.errors import UsageError
from locus_memory.inspection.memories import known_user, open_manager
from locus_memory.inspection.names import parse_namespace
from locus_memory.inspection.text import number, snippet

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.backends.base import Backend
    from locus_memory.memory.models import Extractor

__all__ = ["consolidate"]

_DAYS = 365.0
_MOST_DAYS = 3_650
_LINE = 160
_TITLES = {
    "evicted": "expired, moved to the history",
    "pruned_episodes": "old sessions' notes erased",
    "pruned_turns": "old turns erased",
    "purged": "old log entries erased",
}


def consolidate(
    session: Session,
    *,
    user: Annotated[
        str | None,
        typer.Option("--user", metavar="ID", help="Only memories of this user; all by default."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would change.")
    ] = False,
    retention_days: Annotated[
        float,
        typer.Option(metavar="N", help="Keep notes and transcripts for N days; 0: for ever."),
    ] = _DAYS,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    prefix: Prefix = DEFAULT_PREFIX,
) -> None:
    """End memories that have expired, and erase what is too old.

    An expired fact moves to the history, from which `undo` brings it back. Episodes and
    transcripts older than the retention are erased. With --model, a model merges facts that say
    the same, and condenses the oldest notes.
    """
    _check(retention_days)
    work = partial(
        _consolidate,
        user=user,
        dry_run=dry_run,
        days=retention_days,
        extractor=_extractor(model, base_url),
        prefix=prefix,
    )
    session.show(work, _render)


def _check(days: float) -> None:
    """Check the days before the database is opened.

    Raises:
        UsageError: They are out of their range.
    """
    if math.isnan(days) or not 0 <= days <= _MOST_DAYS:
        raise UsageError(f"--retention-days is a number from 0 to {_MOST_DAYS:,}, not {days:g}")


def _extractor(model: str | None, base_url: str | None) -> Extractor | None:
    if model is None:
        if base_url is not None:
            raise UsageError("--base-url needs --model")
        return None
    from locus_memory.memory.extraction.extractors import LLMExtractor  # noqa: PLC0415 - help must be quick

    return LLMExtractor(open_model(model, base_url))


async def _consolidate(
    backend: Backend,
    *,
    user: str | None,
    dry_run: bool,
    days: float,
    extractor: Extractor | None,
    prefix: str,
) -> dict[str, Any]:
    # Nothing runs in the background of a command.
    manager = open_manager(
        backend.store, parse_namespace(prefix), extractor, extract_mode="manual", retention=days
    )
    if user is not None:
        manager = await known_user(backend.store, manager, user)
    report = await manager.consolidate(dry_run=dry_run)
    return {"dry_run": dry_run, "user": user, **asdict(report)}


def _render(console: Console, *, document: dict[str, Any]) -> None:
    rows: list[list[Cell]] = [
        [title, document[name]] for name, title in _TITLES.items() if document[name]
    ]
    if rows:
        counted = "would change" if document["dry_run"] else "changed"
        print_table(console, ["memories", f">{counted}"], rows)
    for facts in document["facts"]:
        for change in facts["changes"]:
            _render_change(console, change)
        if facts["refused"]:
            refused = number(len(facts["refused"]))
            remark(console, f"proposals of the model that were refused: {refused}")
    if not rows and not any(facts["changes"] for facts in document["facts"]):
        remark(console, "nothing to change" if document["scopes"] else "no memories")
    if document["busy"]:
        busy = number(document["busy"])
        remark(console, f"left out, since another process consolidates them: {busy}")


def _render_change(console: Console, change: dict[str, Any]) -> None:
    from locus_memory.memory.tending.report import FactsChange  # noqa: PLC0415 - help must be quick

    for line in FactsChange(**change).diff():
        console.out(snippet(line, _LINE), highlight=False)
