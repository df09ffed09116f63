"""The command `ingest`, and its other name `import`: conversations, facts and archives."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from locus_memory.cli.commands.copies.archive import import_archive, is_archive
from locus_memory.cli.commands.memory.facts import (
    holds_facts,
    import_facts,
    read_facts,
    render_imported,
)
from locus_memory.cli.conversations.importer import import_conversation
from locus_memory.cli.conversations.interruption import Account
from locus_memory.cli.conversations.remembering import COUNTS, remember_conversation
from locus_memory.cli.conversations.transcripts import Format, chats_in
from locus_memory.cli.foreign.family import Asked
from locus_memory.cli.foreign.importers import FOREIGN, import_foreign
from locus_memory.cli.options.memories import DEFAULT_PREFIX, Prefix
from locus_memory.cli.options.models import (
    BaseUrlOption,
    EmbedderOption,
    ModelOption,
    open_embedder,
    open_model,
)
from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.output import note
from locus_memory.cli.printing.progress import shown_progress
from locus_memory.cli.printing.tables import Cell, print_table
from locus_memory.errors import ConfigurationError, InvalidArgumentError
from locus_memory.inspection.errors import CommandError, UsageError
from locus_memory.inspection.memories import open_manager
from locus_memory.inspection.names import parse_namespace
from locus_memory.inspection.text import number
from locus_memory.transfer.chats.conversation import Conversation, Unread

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from locus_memory.backends.base import Backend
    from locus_memory.memory.manager import LLMMemoryManager
    from locus_memory.retrieval.embedders.base import Embedder

__all__ = ["ingest"]

_THREADS: Final = ("turns", "saved", "stored")
_NAMED: Final = 100
"""How many conversations that are left out are named; more are counted."""
_ALONE: Final = {
    Format.FACTS: ("user", "trust", "prefix"),
    Format.ARCHIVE: (),
    **{kind: (*each.options, "prefix") for kind, each in FOREIGN.items()},
}
"""The formats that are no chats, with the options that they take."""


def ingest(
    session: Session,
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE", help="File of conversations; - reads stdin."),
    ] = None,
    *,
    threads: Annotated[
        bool, typer.Option("--threads", help="Only store threads and searchable turns.")
    ] = False,
    memories: Annotated[
        bool, typer.Option("--memories", help="Only make memories and the transcript.")
    ] = False,
    kind: Annotated[Format, typer.Option("--format", help="Format of the files.")] = Format.AUTO,
    me: Annotated[
        str | None,
        typer.Option("--me", metavar="NAME", help="Speaker who is the user, in WhatsApp or Slack."),
    ] = None,
    thread: Annotated[
        str | None,
        typer.Option("--thread", metavar="ID", help="Thread of a single conversation."),
    ] = None,
    conversation: Annotated[
        str | None,
        typer.Option(
            "--conversation", metavar="ID", help="Name, if the file has none; by default, its own."
        ),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            "--user",
            metavar="ID",
            help="User of the memories; by default, the one that a conversation names.",
        ),
    ] = None,
    agent: Annotated[
        str, typer.Option("--agent", metavar="ID", help="Agent, if the file names none.")
    ] = "agent",
    date: Annotated[
        str | None,
        typer.Option("--date", metavar="DATE", help="Date of undated turns, ISO 8601; else now."),
    ] = None,
    skip_extraction: Annotated[
        bool, typer.Option("--skip-extraction", help="Only record the turns in the transcript.")
    ] = False,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    embedder: EmbedderOption = None,
    where: Annotated[
        str | None,
        typer.Option("--from", metavar="URL", help="Database of another framework."),
    ] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Vouch for the memories: they count as a person's.")
    ] = False,
    prefix: Prefix = DEFAULT_PREFIX,
) -> None:
    """Take in conversations of other places: as threads and as memories.

    A file is an export of ChatGPT, Claude, LangSmith, WhatsApp or Slack, messages in the format of
    OpenAI, or turns, each with the texts "user" and "assistant". Its format is found by looking.
    Each message becomes a checkpoint of a thread and an item that search finds; the conversation
    is recorded, and distilled into notes and memories of --user. Without --model, rules distil.

    What is there already is left out, so the command can be repeated, or continue after an
    interruption. A conversation that cannot be read is named, and the others are taken in.

    Of a file of `export --facts`, each line becomes a memory, of --user if given. Without
    --trust, imported memories are never rules, and replace nothing that the user or a person said.

    An archive of `export --format archive` is imported with everything that it holds.

    With the name of another framework as --format, what its database --from has is copied: threads
    of langgraph, items of langgraph-store, sessions of openai-agents and adk, memories of mem0
    and osaurus.
    """
    if kind in FOREIGN:
        _check_options(session, kind)
        asked = Asked(where or "", files or (), thread, embedder, user, prefix, trust)
        import_foreign(session, kind, asked)
        return
    if where is not None:
        raise UsageError(f"--from needs --format {', '.join(FOREIGN)}")
    if not files:
        raise UsageError("name a FILE to ingest, or - for stdin")
    kind = _looked_at(files) if kind is Format.AUTO else kind
    if kind in _ALONE:
        _check_options(session, kind)
        if len(files) != 1:
            raise UsageError(f"--format {kind} takes one FILE, not {len(files)}")
        if kind is Format.ARCHIVE:
            import_archive(session, files[0])
        else:
            _import_facts(session, files[0], user, prefix, trust=trust)
        return
    if trust:
        raise UsageError("--trust needs --format facts, mem0 or osaurus")
    if base_url is not None and model is None:
        raise UsageError("--base-url needs --model")
    if thread is not None and len(files) != 1:
        raise UsageError(f"--thread takes one FILE, not {len(files)}")
    work = _Work(
        has_threads=threads or not memories,
        has_memories=memories or not threads,
        insists=threads or memories,
        embedder=None if embedder is None else open_embedder(embedder),
        extractor=None if model is None else _extractor(model, base_url),
        prefix=prefix,
        user=user,
        agent=agent,
        date=_checked_date(date),
        skip_extraction=skip_extraction,
        quiet=session.as_json,
    )
    found = chain.from_iterable(
        chats_in(each, kind=kind, name=conversation, me=me) for each in files
    )
    _take_in(session, work, _renamed(found, thread))


def _looked_at(files: list[str]) -> Format:
    """Return the format that takes a file alone; a missing file is found before any write."""
    archives = [each for each in files if is_archive(each)]
    if archives:
        return Format.ARCHIVE
    return Format.FACTS if any(map(holds_facts, files)) else Format.AUTO


def _check_options(session: Session, kind: Format) -> None:
    """Refuse an option that the format does not take."""
    taken = {"files", "kind", "where", "url", "as_json", *_ALONE[kind]}
    for name, written in session.given.items():
        if name not in taken:
            raise UsageError(f"--format {kind} takes no {written}")


def _checked_date(date: str | None) -> str | None:
    from locus_memory.memory.queue.turns import moment_of  # noqa: PLC0415 - help must be quick

    moment_of(date, "")
    return date


def _extractor(model: str, base_url: str | None) -> Any:
    from locus_memory.memory.extraction.extractors import LLMExtractor  # noqa: PLC0415 - help must be quick

    return LLMExtractor(open_model(model, base_url))


def _import_facts(
    session: Session, file: str, user: str | None, prefix: str, *, trust: bool
) -> None:
    source = "stdin" if file == "-" else file
    content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    facts = read_facts(content, source)
    work = partial(import_facts, facts=facts, user=user, prefix=prefix, trust=trust)
    session.show(work, render_imported, create=True)


_Found = Iterator[Conversation | Unread]


def _renamed(found: _Found, thread: str | None) -> _Found:
    """Yield the conversations, each of another thread; `thread` names the only one."""
    sources: dict[str, str] = {}
    for each in found:
        if isinstance(each, Unread):
            yield each
            continue
        if thread is not None:
            rest = list(found)
            others = sum(isinstance(other, Conversation) for other in rest)
            if others:
                count = number(1 + others)
                raise CommandError(
                    f"{each.source}: --thread needs one conversation, the file has {count}"
                )
            yield replace(each, thread_id=thread)
            yield from rest
            return
        first = sources.setdefault(each.thread_id, each.source)
        if first != each.source:
            yield Unread(f"{each.source}: thread {each.thread_id!r} is also in {first}")
        else:
            yield each


@dataclass(slots=True)
class _Work:
    """What is to be done with conversations, and what was done."""

    has_threads: bool
    has_memories: bool
    insists: bool
    embedder: Embedder | None
    extractor: Any
    prefix: str
    user: str | None
    agent: str
    date: str | None
    skip_extraction: bool
    quiet: bool
    account: Account = field(default_factory=Account)
    threads: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    conversations: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    unread: list[str] = field(default_factory=list[str])
    left_out: int = 0

    def misses(self, why: str, *, tells: bool = True) -> None:
        """Name a conversation that is left out; beyond the first ones, count it."""
        self.left_out += 1
        if self.left_out <= _NAMED:
            self.unread.append(why)
            if tells:
                note(why)

    def document(self) -> dict[str, Any]:
        """Return the answer."""
        return {
            "user": self.user,
            "threads": self.threads,
            "conversations": self.conversations,
            **{name: sum(row[name] for row in self.threads) for name in _THREADS},
            **{name: sum(row[name] for row in self.conversations) for name in COUNTS},
            "unread": self.unread,
            "left_out": self.left_out,
        }


def _take_in(session: Session, work: _Work, found: _Found) -> None:
    with work.account.told_when_interrupted(session.command()):
        # A file in which nothing can be read creates no database.
        while isinstance(first := next(found, None), Unread):
            work.misses(first.why, tells=False)
        for why in work.unread[first is None :]:
            note(why)
        if first is None:
            raise CommandError(next(iter(work.unread), "there are no messages in it"))
        session.run(partial(_run, work=work, found=chain((first,), found)), create=True)
    document = work.document()
    session.answer(document, partial(_render, work=work))
    if work.left_out:
        named = "" if work.left_out <= _NAMED else f" (the first {_NAMED})"
        count = number(work.left_out)
        raise CommandError(f"left out, as said above{named}: {count}", answered=True)
    if document["pending"]:
        raise CommandError(
            "turns wait, because they could not be distilled: run it again", answered=True
        )


async def _run(backend: Backend, *, work: _Work, found: _Found) -> None:
    with shown_progress(quiet=work.quiet) as progress:
        async with _opened_manager(backend, work) as manager:
            for each in found:
                await _shown(backend, manager, work, each, progress)


async def _shown(
    backend: Backend,
    manager: LLMMemoryManager | None,
    work: _Work,
    each: Conversation | Unread,
    progress: Progress,
) -> None:
    """Take in one conversation, and show how far it is; name one that could not be read."""
    if isinstance(each, Unread):
        work.misses(each.why)
        return
    work.account.of(each)
    task = progress.add_task(each.thread_id, total=len(each.messages))

    def show(turns: int) -> None:
        progress.update(task, completed=turns)
        work.account.has(turns)

    await _one(backend, manager, work, each, show)
    work.account.is_done()
    progress.remove_task(task)


async def _one(
    backend: Backend, manager: LLMMemoryManager | None, work: _Work, each: Conversation, show: Any
) -> None:
    """Take in one conversation; a thread that holds another one keeps it from no memory."""
    try:
        if work.has_threads:
            async with work.account.recounted(backend.checkpointer, each):
                done = await import_conversation(
                    backend, each, embedder=work.embedder, on_turn=show
                )
            work.threads.append(asdict(done))
    except (CommandError, InvalidArgumentError) as error:
        work.misses(str(error))
    try:
        if manager is not None:
            row = await remember_conversation(
                manager,
                each,
                user=work.user,
                agent=work.agent,
                date=work.date,
                skip_extraction=work.skip_extraction,
            )
            work.conversations.append(row)
    except InvalidArgumentError as error:
        work.misses(f"{each.source}: {each.thread_id!r}: {error}")


@asynccontextmanager
async def _opened_manager(backend: Backend, work: _Work) -> AsyncGenerator[LLMMemoryManager | None]:
    """Yield the manager; leave out what the database has no place for, unless it was asked for."""
    try:
        _ = backend.checkpointer if work.has_threads else None
    except ConfigurationError:
        if work.insists:
            raise
        work.has_threads = False
    try:
        store = backend.store if work.has_memories else None
    except ConfigurationError:
        if work.insists:
            raise
        store = None
    if store is None:
        yield None
        return
    yield open_manager(
        store, parse_namespace(work.prefix), work.extractor, extract_mode="session_end"
    )


def _render(console: Console, work: _Work) -> None:
    shown = ["thread"]
    rows: dict[str, list[Cell]] = {}
    for wanted, found, name, counts in (
        (work.has_threads, work.threads, "thread_id", _THREADS),
        (work.has_memories, work.conversations, "conversation_id", COUNTS),
    ):
        if wanted:
            for row in found:
                cells = rows.setdefault(row[name], [row[name]])
                cells += [0] * (len(shown) - len(cells)) + [row[each] for each in counts]
            shown += [f">{each}" for each in counts]
    print_table(console, shown, [each + [0] * (len(shown) - len(each)) for each in rows.values()])
