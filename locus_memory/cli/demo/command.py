"""The command `demo`: a conversation that survives its process, and an agent with a memory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from locus_memory.cli.options.session import Session, WithJson
from locus_memory.inspection.errors import CommandError

__all__ = ["demo"]

_DATABASE = "locus.db"


def demo(
    session: WithJson,
    directory: Annotated[
        Path, typer.Argument(metavar="DIRECTORY", help="Folder for locus.db.")
    ] = Path(),
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
    if path.exists():
        raise CommandError(f"{path} exists: run the demo in an empty directory")
    directory.mkdir(parents=True, exist_ok=True)
    if not play(session):
        raise typer.Exit(1)
