"""The commands `import` and `export`: for conversations, facts and archives."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from locus_memory.checkpoint.differences import messages_of
from locus_memory.cli.commands.copies.archive import (
    export_archive,
    import_archive,
    is_archive,
)
from locus_memory.cli.commands.memory.facts import (
    export_facts,
    import_facts,
    read_facts,
    render_imported,
)
from locus_memory.cli.conversations.importer import Imported, import_conversation
from locus_memory.cli.conversations.interruption import Account
from locus_memory.cli.conversations.states import read_state
from locus_memory.cli.conversations.transcripts import (
    Conversation,
    Format,
    read_conversations,
    write_messages,
)
from locus_memory.cli.foreign.family import Asked
from locus_memory.cli.foreign.formats import FOREIGN, import_foreign
from locus_memory.cli.options.common import AsJson, Url
from locus_memory.cli.options.memories import DEFAULT_PREFIX, Prefix, UserOption
from locus_memory.cli.options.models import EmbedderOption, open_embedder
from locus_memory.cli.options.names import find_reference
from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.outcome import CommandError, UsageError
from locus_memory.cli.printing.output import print_json
from locus_memory.cli.printing.paging import same_command
from locus_memory.cli.printing.progress import shown_progress
from locus_memory.cli.printing.tables import Cell, print_table

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.backends.base import Backend
    from locus_memory.retrieval.embedders.base import Embedder

__all__ = ["export", "import_files"]


class ExportFormat(StrEnum):
    """The format of an export."""

    OPENAI = "openai"
    JSONL = "jsonl"
    ARCHIVE = "archive"


def import_files(
    context: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE", help="File of JSON or JSON Lines; - reads stdin."),
    ] = None,
    *,
    thread: Annotated[
        str | None,
        typer.Option("--thread", metavar="ID", help="Thread of a single conversation."),
    ] = None,
    kind: Annotated[Format, typer.Option("--format", help="Format of the files.")] = Format.AUTO,
    where: Annotated[
        str | None,
        typer.Option("--from", metavar="URL", help="Database of another framework."),
    ] = None,
    embedder: EmbedderOption = None,
    user: UserOption = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Vouch for the memories: they count as a person's.")
    ] = False,
    prefix: Prefix = DEFAULT_PREFIX,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Import conversations as threads and searchable turns, or an archive.

    Each turn becomes one checkpoint of a thread and one item of the store. The item has a
    vector if --embedder names a model.

    Existing data stays unchanged, so an import can be repeated, or continue after an
    interruption. Nothing is written before all files are read and valid.

    With --format facts, each line of the file becomes a memory, of --user if given. Without
    --trust, imported memories are never rules, and replace nothing that the user or a person said.

    An archive of `export --format archive` is imported with everything that it holds.

    With the name of another framework as --format, what its database --from has is copied:
    langgraph: the threads of a saver; langgraph-store: the items of a store; openai-agents and
    adk: sessions; mem0: memories with their past versions, and with the users in a FILE of
    `get_all`.
    """
    session = Session.of(context, url, as_json=as_json)
    if kind in FOREIGN:
        asked = Asked(where or "", files or (), thread, embedder, user, prefix, trust)
        import_foreign(context, session, kind, asked)
        return
    if where is not None:
        raise UsageError(f"--from needs --format {', '.join(FOREIGN)}")
    if not files:
        raise UsageError("name a FILE to import, or - for stdin")
    if kind is Format.ARCHIVE or (kind is Format.AUTO and is_archive(files[0])):
        _refuse_options(
            "an archive takes", thread=thread, embedder=embedder, user=user, trust=trust or None
        )
        import_archive(context, session, _only(files, "an archive is"))
        return
    if kind is Format.FACTS:
        _refuse_options("facts are memories: they take", thread=thread, embedder=embedder)
        _import_facts(session, files, user, prefix, trust=trust)
        return
    if user is not None or trust:
        raise UsageError(f"--{'trust' if trust else 'user'} needs --format facts or mem0")
    read = partial(_read_files, files, thread, kind)
    _import_conversations(context, session, read, embedder)


def _only(files: list[str], why: str) -> str:
    if len(files) != 1:
        raise UsageError(f"{why} one FILE, not {len(files)}")
    return files[0]


def _refuse_options(why: str, **given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise UsageError(f"{why} no --{name}")


def _import_conversations(
    context: typer.Context,
    session: Session,
    read: Callable[[], list[Conversation]],
    embedder: str | None,
) -> None:
    account = Account()
    model = None if embedder is None else open_embedder(embedder)
    with account.told_when_interrupted(same_command(context)):
        conversations = read()
        work = partial(
            _import,
            conversations=conversations,
            embedder=model,
            quiet=session.as_json,
            account=account,
        )
        done = session.run(work, create=True)
    session.answer(_summary(done), partial(_render_summary, done=done))


def _import_facts(
    session: Session, files: list[str], user: str | None, prefix: str, *, trust: bool
) -> None:
    facts = read_facts(*_read(_only(files, "--format facts takes")))
    work = partial(import_facts, facts=facts, user=user, prefix=prefix, trust=trust)
    document = session.run(work, create=True)
    session.answer(document, partial(render_imported, document=document))


def _read_files(files: list[str], thread: str | None, kind: Format) -> list[Conversation]:
    if thread is not None:
        _only(files, "--thread takes")
    found: dict[str, Conversation] = {}
    for name in files:
        content, source = _read(name)
        for conversation in read_conversations(content, source, thread_id=thread, kind=kind):
            other = found.setdefault(conversation.thread_id, conversation)
            if other is not conversation:
                raise CommandError(
                    f"{source}: thread {conversation.thread_id!r} is also in {other.source}"
                )
    return list(found.values())


def _read(name: str) -> tuple[bytes, str]:
    if name == "-":
        return sys.stdin.buffer.read(), "stdin"
    return Path(name).read_bytes(), name


async def _import(
    backend: Backend,
    *,
    conversations: list[Conversation],
    embedder: Embedder | None,
    quiet: bool,
    account: Account,
) -> list[Imported]:
    done: list[Imported] = []
    account.of(conversations)
    with shown_progress(quiet=quiet) as progress, account.stopped_by_sigterm():
        for conversation in conversations:
            name = conversation.thread_id
            task = progress.add_task(name, total=len(conversation.messages))

            def show(turns: int, task: Any = task, name: str = name) -> None:
                progress.update(task, completed=turns)
                account.has(name, turns)

            async with account.recounted(backend.checkpointer, conversation):
                imported = await import_conversation(
                    backend, conversation, embedder=embedder, on_turn=show
                )
            done.append(imported)
    return done


def _summary(done: list[Imported]) -> dict[str, Any]:
    return {
        "threads": [asdict(each) for each in done],
        "turns": sum(each.turns for each in done),
        "saved": sum(each.saved for each in done),
        "stored": sum(each.stored for each in done),
    }


def _render_summary(console: Console, done: list[Imported]) -> None:
    rows: list[list[Cell]] = [
        [each.thread_id, each.turns, each.saved, each.stored] for each in done
    ]
    print_table(console, ["thread", ">turns", ">new checkpoints", ">new items"], rows)


def export(
    context: typer.Context,
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
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Print a thread, or memories, in a format that `import` reads.

    With --format archive, everything of the database is written to --output.
    """
    session = Session.of(context, url, as_json=as_json)
    if kind is ExportFormat.ARCHIVE:
        _refuse_options("an archive has everything: it takes", thread=thread, user=user)
        if facts or bare:
            raise UsageError("an archive has everything: leave --facts and --bare out")
        export_archive(session, output, force=force)
        return
    if output is not None or force:
        raise UsageError("--output and --force need --format archive")
    if (thread is None) is not facts:
        raise UsageError("name a THREAD, or pass --facts")
    if user is not None and not facts:
        raise UsageError("--user needs --facts")
    if thread is None:
        _export_facts(session, user, prefix)
    else:
        _export_thread(session, thread, kind, bare=bare)


def _export_thread(session: Session, thread: str, kind: ExportFormat, *, bare: bool) -> None:
    thread_id, state = session.run(partial(_export, reference=thread))
    messages = write_messages(messages_of(state)[0], bare=bare)
    if not messages:
        raise CommandError(f"{thread}: the state has no messages")
    if kind is ExportFormat.JSONL and not session.as_json:
        sys.stdout.writelines(orjson.dumps(message).decode() + "\n" for message in messages)
        return
    document: dict[str, Any] = {"id": thread_id, "messages": messages}
    metadata = state.get("metadata")
    if isinstance(metadata, dict) and metadata and not bare:
        document["metadata"] = metadata
    print_json(document)


def _export_facts(session: Session, user: str | None, prefix: str) -> None:
    found = session.run(partial(export_facts, user=user, prefix=prefix))
    if session.as_json:
        print_json({"user": user, "facts": found})
        return
    sys.stdout.writelines(orjson.dumps(fact).decode() + "\n" for fact in found)


async def _export(backend: Backend, *, reference: str) -> tuple[str, Any]:
    thread_id, checkpoint_id = await find_reference(backend.checkpointer, reference)
    return thread_id, await read_state(backend.checkpointer, thread_id, checkpoint_id)
