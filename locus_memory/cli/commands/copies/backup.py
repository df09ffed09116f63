"""The commands `backup` and `restore`: a SQLite file, copied while it is in use."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.output import note
from locus_memory.cli.printing.tables import print_report
from locus_memory.inspection.errors import CommandError, UsageError
from locus_memory.inspection.text import visible_name

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.backends.sqlite.upkeep.backups import BackupReport

__all__ = ["backup", "restore"]

File = Annotated[str, typer.Argument(metavar="FILE", help="File of the backup.")]


def backup(
    session: Session,
    file: File,
    *,
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
) -> None:
    """Copy a SQLite database to one file, while others read and write.

    The copy is the database of one moment. It is checked before it gets its name.
    """
    from locus_memory.backends.sqlite import backup as run  # noqa: PLC0415 - help must be quick

    path = _path_of(session)
    if not path.exists():
        raise CommandError(f"no database at {path}: name one with --url")
    _answer(session, _run(run(path, file, overwrite=force)))


def restore(
    session: Session,
    file: File,
    *,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the data of a database that exists.")
    ] = False,
    strip: Annotated[
        bool, typer.Option("--strip", help="Leave out what is not of this library.")
    ] = False,
) -> None:
    """Replace a SQLite database by a backup, after a check of the backup.

    The replacement is one transaction. Without --force, a database that exists is never changed. A
    backup with tables, views or triggers of others is refused, or restored without them.
    """
    from locus_memory.backends.sqlite import restore as run  # noqa: PLC0415 - help must be quick

    _answer(session, _run(run(file, _path_of(session), overwrite=force, strip=strip)))


def _path_of(session: Session) -> Path:
    address, _ = session.resolve()
    if address.provider != "sqlite" or session.path is None:
        raise UsageError(
            "a backup is of a SQLite file: use export --format archive or migrate, or the tools of "
            "the database"
        )
    return session.path


def _run(work: Coroutine[Any, Any, BackupReport]) -> BackupReport:
    import asyncio  # noqa: PLC0415 - help must be quick

    return asyncio.run(work)


def _answer(session: Session, report: BackupReport) -> None:
    session.answer(asdict(report), partial(_render, report=report))
    if report.aside is not None:
        note(f"the damaged file was renamed to {visible_name(report.aside)}")


def _render(console: Console, report: BackupReport) -> None:
    columns = ["file", ">bytes", ">items", ">checkpoints"]
    print_report(console, columns, [report.path, report.size, report.items, report.checkpoints])
