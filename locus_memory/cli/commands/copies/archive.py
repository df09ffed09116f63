"""Archives by command: `export --format archive`, and `import` of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from locus_memory.cli.printing.output import note
from locus_memory.cli.printing.progress import one_bar
from locus_memory.cli.printing.tables import print_report
from locus_memory.inspection.errors import CommandError, UsageError
from locus_memory.inspection.text import number, visible_name
from locus_memory.transfer.chats.files import has_chats

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.backends.base import Backend
    from locus_memory.cli.options.session import Session
    from locus_memory.transfer import ImportReport, Manifest, Progress

__all__ = ["export_archive", "import_archive", "is_archive"]

_ZIP = b"PK\x03\x04"


def is_archive(name: str) -> bool:
    """Return whether a file is a ZIP archive without chats."""
    if name == "-":
        return False
    with Path(name).open("rb") as file:
        return file.read(len(_ZIP)) == _ZIP and not has_chats(name)


def export_archive(session: Session, output: str | None, *, force: bool) -> None:
    """Write everything of a database to an archive.

    Raises:
        UsageError: There is no name for the archive.
        CommandError: The archive exists.
    """
    if output is None:
        raise UsageError("--format archive needs --output FILE")
    if Path(output).exists() and not force:
        raise CommandError(f"{output} exists: name another file, or pass --force")
    manifest = session.run(partial(_export, path=output, quiet=session.as_json))
    session.answer(
        {
            "path": output,
            "version": manifest.version,
            "items": manifest.count("items"),
            "checkpoints": manifest.count("thread"),
            "entries": len(manifest.entries),
        },
        partial(_render_export, manifest=manifest),
    )


async def _export(backend: Backend, *, path: str, quiet: bool) -> Manifest:
    from locus_memory.transfer import write_archive  # noqa: PLC0415 - help must be quick

    with one_bar("export", quiet=quiet) as show:
        return await write_archive(backend, path, overwrite=True, on_progress=partial(_tell, show))


def _tell(show: Callable[..., None], at: Progress) -> None:
    what = f"{at.step}: {visible_name(at.name)}"
    show(description=what[:60], completed=at.written)


def _render_export(console: Console, manifest: Manifest) -> None:
    row = [manifest.count("items"), manifest.count("thread"), len(manifest.entries)]
    print_report(console, [">items", ">checkpoints", ">files"], row)


def import_archive(session: Session, path: str) -> None:
    """Import an archive, and print the number of its new items and checkpoints.

    Raises:
        ArchiveError: The archive is not as it was written, or newer; nothing was written.
        Interrupted: The user interrupted the command.
        CommandError: A thread of the database has other checkpoints, and stays as it is.
    """
    from locus_memory.transfer import check_archive  # noqa: PLC0415 - help must be quick

    # Before the database is opened, which may create it.
    check_archive(path)
    with session.continued("imported"):
        report = session.run(partial(_import, path=path, quiet=session.as_json), create=True)
    session.answer(asdict(report), partial(_render_import, report=report))
    if report.conflicts:
        for thread_id in report.conflicts:
            note(f"thread {visible_name(thread_id)} has other checkpoints, and stays as it is")
        raise CommandError(f"{number(len(report.conflicts))} threads differ", answered=True)


async def _import(backend: Backend, *, path: str, quiet: bool) -> ImportReport:
    from locus_memory.transfer import read_archive  # noqa: PLC0415 - help must be quick

    with one_bar("import", quiet=quiet) as show:
        return await read_archive(path, backend, on_progress=partial(_tell, show))


def _render_import(console: Console, report: ImportReport) -> None:
    columns = [">new items", ">new checkpoints", ">known items", ">known checkpoints", ">kept"]
    row = [
        report.items,
        report.checkpoints,
        report.known_items,
        report.known_checkpoints,
        report.kept_items,
    ]
    print_report(console, columns, row)
