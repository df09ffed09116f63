"""The command `export`: for conversations, facts and archives."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from locus_memory.cli.commands.copies.archive import (
    export_archive,
)
from locus_memory.cli.commands.memory.facts import (
    export_facts,
)
from locus_memory.cli.options.memories import DEFAULT_PREFIX, Prefix, UserOption
from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.output import note, print_json, write_out
from locus_memory.inspection.errors import UsageError
from locus_memory.inspection.names import find_reference
from locus_memory.inspection.threads import conversation_of

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend

__all__ = ["export"]


class ExportFormat(StrEnum):
    """The format of an export."""

    OPENAI = "openai"
    JSONL = "jsonl"
    ARCHIVE = "archive"


def _refuse_options(why: str, **given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise UsageError(f"{why} no --{name}")


def export(
    session: Session,
    thread: Annotated[
        str | None,
        typer.Argument(
            metavar="THREAD", help="Thread, or THREAD@CHECKPOINT; the newest by default."
        ),
    ] = None,
    *,
    facts: Annotated[
        bool, typer.Option("--facts", help="Memories in place of a thread, one per line.")
    ] = False,
    kind: Annotated[
        ExportFormat,
        typer.Option(
            "--format", help="One document, one line per message, or an archive of everything."
        ),
    ] = ExportFormat.OPENAI,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="File of the archive.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
    bare: Annotated[
        bool, typer.Option("--bare", help="Leave out id and metadata, for the OpenAI API.")
    ] = False,
    user: UserOption = None,
    prefix: Prefix = DEFAULT_PREFIX,
) -> None:
    """Print a thread, or memories, in a format that `import` reads.

    With --format archive, everything of the database is written to --output.
    """
    if kind is ExportFormat.ARCHIVE:
        _refuse_options("an archive has everything: it takes", thread=thread, user=user)
        if facts or bare:
            raise UsageError("an archive has everything: leave --facts and --bare out")
        export_archive(session, output, force=force)
        return
    if output is not None or force:
        raise UsageError(
            "--output and --force need --format archive; anything else goes to stdout: add > FILE"
        )
    if (thread is None) is not facts:
        raise UsageError("name a THREAD, or pass --facts")
    if user is not None and not facts:
        raise UsageError("--user needs --facts")
    if thread is None:
        _export_facts(session, user, prefix)
    else:
        _export_thread(session, thread, kind, bare=bare)


def _export_thread(session: Session, thread: str, kind: ExportFormat, *, bare: bool) -> None:
    document = session.run(partial(_export, reference=thread, bare=bare))
    if kind is ExportFormat.JSONL and not session.as_json:
        write_out(
            "".join(orjson.dumps(message).decode() + "\n" for message in document["messages"])
        )
    else:
        print_json(document)


def _export_facts(session: Session, user: str | None, prefix: str) -> None:
    found, told = session.run(partial(export_facts, user=user, prefix=prefix))
    if session.as_json:
        print_json({"user": user, "facts": found})
        return
    if not found:
        note(f"no memories{told}")
    write_out("".join(orjson.dumps(fact).decode() + "\n" for fact in found))


async def _export(backend: Backend, *, reference: str, bare: bool) -> dict[str, Any]:
    place = await find_reference(backend.checkpointer, reference)
    return await conversation_of(backend.checkpointer, *place, bare=bare, tell=note)
