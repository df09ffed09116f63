"""The command `demo`: a conversation that survives its process, and an agent with a memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from locus_memory.cli.options.session import Session, WithJson
from locus_memory.inspection.errors import CommandError

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend

__all__ = ["demo"]

_DATABASE = "locus.db"


def demo(
    session: WithJson,
    directory: Annotated[
        Path, typer.Argument(metavar="DIRECTORY", help="Folder for locus.db.")
    ] = Path(),
    *,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Replace the database of an earlier demo.")
    ] = False,
) -> None:
    """Run a demo: a conversation and an agent survive the kill of their processes.

    It imports a sample conversation, kills the import half-way, resumes it, and searches, forks and
    measures the thread. Then an agent learns about its user, is killed while a tool runs, resumes,
    and recalls its memories in another process. Last, facts fade in a simulated year.

    DIRECTORY/locus.db stays there for you to inspect. The demo fails if any data is lost, repeated
    or altered.
    """
    from locus_memory.cli.demo.play import play  # noqa: PLC0415 - help must be quick

    path = directory / _DATABASE
    session = Session(f"sqlite:{path}", as_json=session.as_json)
    _make_room(session, path, fresh=fresh)
    directory.mkdir(parents=True, exist_ok=True)
    if not play(session):
        raise typer.Exit(1)


def _make_room(session: Session, path: Path, *, fresh: bool) -> None:
    if not path.exists():
        return
    if not fresh:
        raise CommandError(
            f"{path} exists: run the demo in an empty directory, or replace an earlier demo's "
            "database with --fresh"
        )
    if not session.run(_is_ours):
        raise CommandError(f"{path} holds other data than a demo's: choose another directory")
    for name in (_DATABASE, f"{_DATABASE}-wal", f"{_DATABASE}-shm"):
        path.with_name(name).unlink(missing_ok=True)


async def _is_ours(backend: Backend) -> bool:
    from locus_memory.cli.demo import agent_story as story  # noqa: PLC0415 - help must be quick
    from locus_memory.cli.demo import tending_play as tending  # noqa: PLC0415
    from locus_memory.cli.demo.sample import BRANCH, SAMPLE  # noqa: PLC0415

    starts = (("turns", SAMPLE), *story.NAMESPACES, tending.NAMESPACE)
    threads = set(await backend.checkpointer.list_threads())
    return threads <= {SAMPLE, BRANCH, *story.THREADS} and all(
        any(namespace[: len(start)] == start for start in starts)
        for namespace in await backend.store.list_namespaces()
    )
