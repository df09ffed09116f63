"""The import of the threads that LangGraph's own savers keep."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from locus_memory._internal.providers.drivers import require
from locus_memory.cli.printing.outcome import CommandError, Interrupted, UsageError
from locus_memory.cli.printing.paging import same_command
from locus_memory.cli.printing.progress import shown_progress
from locus_memory.cli.printing.tables import Cell, print_table

if TYPE_CHECKING:
    import typer
    from rich.console import Console

    from locus_memory.backends.base import Backend
    from locus_memory.cli.options.session import Session
    from locus_memory.integrations.langgraph.importing.threads import Copied
    from locus_memory.integrations.langgraph.threads import Place

__all__ = ["import_savers"]


def import_savers(
    context: typer.Context,
    session: Session,
    where: str | None,
    thread: str | None,
    files: list[str],
) -> None:
    """Copy the threads of a saver, and print how many checkpoints are there.

    Args:
        context: The context of the command.
        session: The target.
        where: The database of the saver.
        thread: Only this thread; `None`: all.
        files: The files of the command, of which there is none.

    Raises:
        UsageError: There are files, or no database.
        Interrupted: The user interrupted the command.
        CommandError: A checkpoint was not copied.
    """
    import asyncio  # noqa: PLC0415 - `--help` loads this module

    if files or where is None:
        raise UsageError("--format langgraph takes a database with --from, and no FILE")
    require("langgraph.checkpoint.base", "langgraph", needed_by="the import of a saver")
    work = partial(_copied, where=where, thread=thread, quiet=session.as_json)
    try:
        done = session.run(work, create=True)
    except (KeyboardInterrupt, asyncio.CancelledError):
        command = same_command(context)
        message = f"interrupted; what is copied stays. To continue, run: {command}"
        raise Interrupted(message, hint=command) from None
    session.answer(_summary(done), partial(_render, done=done))
    _check(done)


async def _copied(backend: Backend, *, where: str, thread: str | None, quiet: bool) -> list[Copied]:
    from locus_memory.integrations.langgraph.importing.sources import open_source  # noqa: PLC0415 - an extra
    from locus_memory.integrations.langgraph.importing.threads import (  # noqa: PLC0415 - the same
        import_threads,
    )

    with shown_progress(quiet=quiet) as progress:
        tasks: dict[Place, Any] = {}

        def show(place: Place, number: int) -> None:
            if place not in tasks:
                tasks[place] = progress.add_task(place.thread_id, total=None)
            progress.update(tasks[place], completed=number)

        async with open_source(where) as source:
            done = await import_threads(source, backend, thread_id=thread, on_checkpoint=show)
    if not done:
        raise CommandError(f"no thread {thread!r} there" if thread else "no threads there")
    return done


def _summary(done: list[Copied]) -> dict[str, Any]:
    names = ("checkpoints", "writes", "saved", "unreadable", "missing")
    sums = {name: sum(getattr(each, name) for each in done) for name in names}
    return {"threads": [asdict(each) for each in done], **sums}


def _render(console: Console, done: list[Copied]) -> None:
    rows: list[list[Cell]] = [
        [each.thread_id, each.namespace, each.checkpoints, each.writes, each.saved] for each in done
    ]
    columns = ["thread", "namespace", ">checkpoints", ">pending writes", ">new checkpoints"]
    print_table(console, columns, rows)


def _check(done: list[Copied]) -> None:
    unreadable = sum(each.unreadable for each in done)
    missing = sum(each.missing for each in done)
    if missing:
        raise CommandError(
            f"{missing} checkpoints or writes are not there: another process removes them; run the "
            "import again when it has finished",
            answered=True,
        )
    if unreadable:
        raise CommandError(
            f"{unreadable} checkpoints cannot be read, and are left out: they are damaged, "
            "encrypted, pickled, or of a release of LangGraph before 0.3",
            answered=True,
        )
