"""The command `migrate`: copies everything of one database to another."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from locus_memory.cli.options.models import open_embedder
from locus_memory.cli.options.session import Session, WithJson, opened_backend
from locus_memory.cli.printing.output import note, remark
from locus_memory.cli.printing.progress import one_bar
from locus_memory.cli.printing.tables import Cell, print_report, print_table
from locus_memory.inspection.errors import CommandError, UsageError
from locus_memory.inspection.names import format_namespace
from locus_memory.inspection.text import number, visible_name

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.transfer import Comparison, MigrateOptions, MigrationReport, Progress

__all__ = ["migrate"]

_DIGITS = 12
"""The digits of a digest that a table shows."""


class Part(StrEnum):
    """A part of a database."""

    ITEMS = "items"
    THREADS = "threads"


def migrate(
    session: WithJson,
    *,
    source: Annotated[str, typer.Option("--from", metavar="URL", help="Database to copy.")],
    target: Annotated[str, typer.Option("--to", metavar="URL", help="Database to copy to.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count what would be written, and write nothing.")
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare both databases afterwards, part by part.")
    ] = False,
    merge: Annotated[bool, typer.Option("--merge", help="Keep other data of the target.")] = False,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", help="Replace what the target got since, and copy what it lost."
        ),
    ] = False,
    only: Annotated[
        Part | None, typer.Option("--only", help="Copy only the items, or only the threads.")
    ] = None,
    vectors: Annotated[
        bool, typer.Option("--vectors/--no-vectors", help="Copy the vectors.")
    ] = True,
    reembed: Annotated[
        str | None,
        typer.Option("--reembed", metavar="MODEL", help="Recompute the vectors with this model."),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option("--rate", metavar="N", help="At most N items and checkpoints a second."),
    ] = None,
) -> None:
    """Copy everything of one database to another.

    Items keep their versions, moments, expiry and vectors, and threads all their checkpoints.
    The source is not changed. The target is empty, or from an earlier run.

    You can stop it at any time, and run it again: it continues, and writes only differences.

    With --verify, the exit code is 1 if anything differs.
    """
    import asyncio  # noqa: PLC0415 - help must be quick

    options = _options(only, reembed, rate, vectors=vectors)
    options = replace(options, dry_run=dry_run, verify=verify, merge=merge, overwrite=overwrite)
    urls = ((source, True), (target, dry_run))
    databases = [_checked(url, must_exist=must_exist) for url, must_exist in urls]
    _refuse_same(*databases)
    with session.continued("copied"):
        report = asyncio.run(_migrate(source, target, options=options, quiet=session.as_json))
    session.answer(report.to_dict(), partial(_render, report=report))
    _check(report)


def _options(
    only: Part | None, reembed: str | None, rate: float | None, *, vectors: bool
) -> MigrateOptions:
    """Return what is copied, and how fast.

    Raises:
        UsageError: A new model for no vectors, or a rate that is not positive.
    """
    from locus_memory.transfer import MigrateOptions  # noqa: PLC0415 - help must be quick

    if reembed is not None and not vectors:
        raise UsageError("--reembed needs vectors: leave --no-vectors out")
    if rate is not None and rate <= 0:
        raise UsageError(f"--rate is a positive number, not {rate:g}")
    return MigrateOptions(
        only=None if only is None else only.value,
        vectors=vectors,
        reembed=None if reembed is None else open_embedder(reembed),
        rate=rate,
    )


async def _migrate(
    source: str, target: str, *, options: MigrateOptions, quiet: bool
) -> MigrationReport:
    from locus_memory.transfer import migrate as run  # noqa: PLC0415 - help must be quick

    with one_bar("migrate", quiet=quiet) as show:

        def tell(at: Progress) -> None:
            what = f"{at.step}, pass {at.number}: {visible_name(at.name)}"
            show(description=what[:60], completed=at.written)

        async with opened_backend(source) as one, opened_backend(target) as other:
            return await run(one, other, options, on_progress=tell)


def _render(console: Console, report: MigrationReport) -> None:
    columns = [">items", ">checkpoints", ">deleted items", ">deleted threads"]
    row: list[Cell] = [
        report.items,
        report.checkpoints,
        report.deleted_items,
        report.deleted_threads,
    ]
    print_report(console, columns, row)
    if report.dry_run:
        remark(console, "nothing was written")
    if report.kept_items:
        remark(console, f"{number(report.kept_items)} items of the target are newer, and stay")
    if report.comparisons is not None:
        different = [_row(each) for each in report.comparisons if not each.equal]
        columns = ["kind", "name", ">source", ">target", "digest"]
        if different:
            print_table(console, columns, different)
        equal = number(len(report.comparisons) - len(different))
        remark(
            console,
            f"{equal} of {number(len(report.comparisons))} namespaces and threads are equal",
        )


def _row(each: Comparison) -> list[Cell]:
    """Return the row of a part that differs."""
    name = format_namespace(each.name) if each.kind == "namespace" else each.name[0]
    digest = each.digest[:_DIGITS]
    if each.digest != each.target_digest:
        digest += f" != {each.target_digest[:_DIGITS]}"
    elif each.vectors:
        digest += f", {number(each.vectors)} vectors differ"
    return [each.kind, name, each.count, each.target_count, digest]


def _check(report: MigrationReport) -> None:
    if report.conflicts:
        for thread_id in report.conflicts:
            note(f"thread {visible_name(thread_id)} differs in the target, and stays as it is")
        raise CommandError(f"{number(len(report.conflicts))} threads differ", answered=True)
    if report.equal is False:
        different = sum(not each.equal for each in report.comparisons or [])
        raise CommandError(f"{number(different)} parts differ", answered=True)


def _checked(url: str, *, must_exist: bool) -> Session:
    """Return a database of the copy.

    Args:
        url: A provider string.
        must_exist: Whether a missing file is an error.

    Raises:
        UsageError: The URL is invalid, or names data of this process alone.
        CommandError: The database does not exist.
    """
    session = Session(url, as_json=False)
    address, _ = session.resolve()
    if address.provider == "memory" or address.hint == ":memory:":
        raise UsageError(f"{url} ends with this command: name a database that stays")
    if must_exist and session.path is not None and not session.path.exists():
        raise CommandError(f"no database at {address}")
    return session


def _refuse_same(one: Session, other: Session) -> None:
    paths = [each.path and each.path.resolve() for each in (one, other)]
    if one.url == other.url or paths[0] == paths[1] is not None:
        raise UsageError("--from and --to are the same database")
