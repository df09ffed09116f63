"""The formats of `import` that are databases of other frameworks, each with its importer."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from locus_memory._internal.providers.drivers import require
from locus_memory.cli.conversations.transcripts import Format
from locus_memory.cli.foreign.family import Asked, Importer, Show, import_from
from locus_memory.cli.options.models import open_embedder
from locus_memory.errors import InvalidArgumentError
from locus_memory.inspection.errors import CommandError, UsageError
from locus_memory.inspection.memories import open_manager
from locus_memory.inspection.names import format_namespace, parse_namespace
from locus_memory.transfer.chats.exact_json import parse_json

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend
    from locus_memory.cli.options.session import Session
    from locus_memory.integrations.adk.importing.copying import CopiedSession
    from locus_memory.integrations.adk.importing.sources import SessionSource
    from locus_memory.integrations.langgraph.importing.items import CopiedItems, ItemSource
    from locus_memory.integrations.langgraph.importing.threads import Copied, Source
    from locus_memory.integrations.langgraph.threads import Place
    from locus_memory.integrations.mem0.export import Exported
    from locus_memory.integrations.mem0.importing import CopiedMemories, MemorySource
    from locus_memory.integrations.openai_agents.importing import BranchSource, CopiedBranch
    from locus_memory.store.item import Namespace

__all__ = ["FOREIGN", "import_foreign"]


def _of_saver(asked: Asked) -> Importer[Any]:
    """Return the import of the threads of a saver of LangGraph."""
    require("langgraph.checkpoint.base", "langgraph", needed_by="the import of a saver")
    from locus_memory.integrations.langgraph.importing.threads import open_source  # noqa: PLC0415 - an extra

    async def copy(source: Source, backend: Backend, show: Show) -> list[Copied]:
        from locus_memory.integrations.langgraph.importing.threads import (  # noqa: PLC0415 - an extra
            import_threads,
        )

        def count(place: Place, completed: int) -> None:
            show(place.thread_id, completed)

        return await import_threads(source, backend, thread_id=asked.thread, on_checkpoint=count)

    return Importer(
        listed="threads",
        source=open_source(asked.where),
        copy=copy,
        columns={
            "thread_id": "thread",
            "namespace": "namespace",
            "checkpoints": ">checkpoints",
            "writes": ">pending writes",
            "saved": ">new checkpoints",
        },
        sums=("checkpoints", "writes", "saved", "unreadable", "missing"),
        faults={
            "missing": "{} checkpoints or writes are not there: another process removes them; run "
            "the import again when it has finished",
            "unreadable": "{} checkpoints cannot be read, and are left out: they are damaged, "
            "encrypted, pickled, or of a release of LangGraph before 0.3",
        },
        only=asked.thread,
    )


def _of_store(asked: Asked) -> Importer[Any]:
    """Return the import of the items of a store of LangGraph."""
    require("langgraph.store.base", "langgraph", needed_by="the import of a store")
    from locus_memory.integrations.langgraph.importing.items import open_items  # noqa: PLC0415 - an extra

    index = None if asked.embedder is None else {"embed": open_embedder(asked.embedder)}

    async def copy(source: ItemSource, backend: Backend, show: Show) -> list[CopiedItems]:
        from locus_memory.integrations.langgraph.importing.items import (  # noqa: PLC0415 - an extra
            import_items,
        )

        def count(namespace: Namespace, completed: int) -> None:
            show(format_namespace(namespace), completed)

        return await import_items(source, backend, index=index, on_item=count)

    return Importer(
        listed="namespaces",
        source=open_items(asked.where),
        copy=copy,
        columns={
            "namespace": "namespace",
            "items": ">items",
            "saved": ">new items",
            "kept": ">newer there",
            "expired": ">expired",
        },
        sums=("items", "saved", "kept", "expired", "unreadable"),
        faults={"unreadable": "items that cannot be read are left out: {}"},
    )


def _of_agents(asked: Asked) -> Importer[Any]:
    """Return the import of the sessions of a `SQLiteSession` of the OpenAI Agents SDK."""
    require("agents.memory", "openai-agents", needed_by="the import of sessions")
    from locus_memory.integrations.openai_agents.importing import open_source  # noqa: PLC0415 - an extra

    async def copy(source: BranchSource, backend: Backend, show: Show) -> list[CopiedBranch]:
        from locus_memory.integrations.openai_agents.importing import (  # noqa: PLC0415 - an extra
            import_sessions,
        )

        return await import_sessions(source, backend, session_id=asked.thread, on_item=show)

    return Importer(
        listed="sessions",
        source=open_source(asked.where),
        copy=copy,
        columns={
            "session_id": "session",
            "branch": "branch",
            "items": ">items",
            "saved": ">new items",
        },
        sums=("items", "saved", "unreadable", "conflicts"),
        faults={
            "conflicts": "sessions with other items stay as they are: {}",
            "unreadable": "items that cannot be read are left out: {}",
        },
        only=asked.thread,
    )


def _of_adk(asked: Asked) -> Importer[Any]:
    """Return the import of the sessions of `SqliteSessionService` or `DatabaseSessionService`."""
    require("google.adk", "adk", needed_by="the import of sessions")
    from locus_memory.integrations.adk.importing.sources import open_source  # noqa: PLC0415 - an extra

    async def copy(source: SessionSource, backend: Backend, show: Show) -> list[CopiedSession]:
        from locus_memory.integrations.adk.importing.copying import import_sessions  # noqa: PLC0415 - an extra

        return await import_sessions(source, backend, session_id=asked.thread, on_session=show)

    return Importer(
        listed="sessions",
        source=open_source(asked.where),
        copy=copy,
        columns={
            "app_name": "app",
            "user_id": "user",
            "session_id": "session",
            "events": ">events",
            "saved": ">new events",
            "saved_keys": ">new keys",
        },
        sums=("events", "saved", "saved_keys", "unreadable", "conflicts"),
        faults={
            "conflicts": "sessions with other events stay as they are: {}",
            "unreadable": "events and keys of states that cannot be read are left out: {}",
        },
        only=asked.thread,
    )


def _of_mem0(
    asked: Asked, source: AbstractAsyncContextManager[MemorySource] | None = None
) -> Importer[Any]:
    """Return the import of memories with their past versions and their users.

    Args:
        asked: The options of the command.
        source: Opens them; `None`: the history of mem0, and the memories in a file of `get_all`.
    """

    async def copy(source: MemorySource, backend: Backend, show: Show) -> list[CopiedMemories]:
        from locus_memory.integrations.mem0.importing import import_memories  # noqa: PLC0415 - help must be quick

        def count(user: str | None, completed: int) -> None:
            show(user or "-", completed)

        manager = open_manager(backend.store, parse_namespace(asked.prefix))
        return await import_memories(
            source, manager, user=asked.user, trust=asked.trust, on_user=count
        )

    return Importer(
        listed="users",
        source=source or _history(asked),
        copy=copy,
        columns={
            "user": "user",
            "memories": ">memories",
            "changes": ">changes",
            "saved": ">new or changed",
        },
        sums=("memories", "changes", "saved", "unreadable", "unknown"),
        faults={
            "unreadable": "changes that cannot be read are left out: {}",
            "unknown": "memories of an unknown user are left out: {}; name the user with --user",
        },
    )


@asynccontextmanager
async def _history(asked: Asked) -> AsyncGenerator[MemorySource]:
    from locus_memory.integrations.mem0.history import open_history  # noqa: PLC0415 - help must be quick
    from locus_memory.integrations.mem0.importing import MemorySource  # noqa: PLC0415 - the same

    exported = _exported(asked.files[0]) if asked.files else None
    with ExitStack() as stack:
        history = stack.enter_context(open_history(asked.where)) if asked.where else None
        yield MemorySource(history, exported)


def _exported(name: str) -> list[Exported]:
    """Return the memories of a file.

    Raises:
        CommandError: It is no JSON of mem0; the error names the file and the memory.
    """
    from locus_memory.integrations.mem0.export import read_export  # noqa: PLC0415 - help must be quick

    source = "stdin" if name == "-" else name
    content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    try:
        return read_export(parse_json(content.removeprefix(b"\xef\xbb\xbf")))
    except UnicodeDecodeError:
        raise CommandError(f"{source}: not UTF-8") from None
    except orjson.JSONDecodeError as error:
        raise CommandError(f"{source}: not JSON: {error}") from None
    except InvalidArgumentError as error:
        raise CommandError(f"{source}: {error}") from None


def _of_osaurus(asked: Asked) -> Importer[Any]:
    """Return the import of the memory of Osaurus."""

    @asynccontextmanager
    async def opened() -> AsyncGenerator[MemorySource]:
        from locus_memory.integrations.mem0.osaurus import open_osaurus  # noqa: PLC0415 - help must be quick

        with open_osaurus(asked.where) as source:
            yield source

    return _of_mem0(asked, opened())


@dataclass(frozen=True, slots=True)
class _Foreign:
    """A format: its import, and the options that it takes besides `--from`."""

    importer: Callable[[Asked], Importer[Any]]
    options: frozenset[str] = frozenset()
    takes_file: bool = False


FOREIGN: Final = {
    Format.LANGGRAPH: _Foreign(_of_saver, frozenset({"thread"})),
    Format.LANGGRAPH_STORE: _Foreign(_of_store, frozenset({"embedder"})),
    Format.OPENAI_AGENTS: _Foreign(_of_agents, frozenset({"thread"})),
    Format.ADK: _Foreign(_of_adk, frozenset({"thread"})),
    Format.MEM0: _Foreign(_of_mem0, frozenset({"user", "trust"}), takes_file=True),
    Format.OSAURUS: _Foreign(_of_osaurus, frozenset({"user", "trust"})),
}
"""The formats that `--from` is for."""


def import_foreign(session: Session, kind: Format, asked: Asked) -> None:
    """Import from the database of another framework.

    Raises:
        UsageError: There is no database.
    """
    foreign = FOREIGN[kind]
    if foreign.takes_file:
        if len(asked.files) > 1 or not (asked.files or asked.where):
            raise UsageError(f"--format {kind} takes a database with --from, one FILE, or both")
    elif not asked.where or asked.files:
        raise UsageError(f"--format {kind} takes a database with --from, and no FILE")
    import_from(session, foreign.importer(asked))
