"""What the adapters for frameworks cost, against the frameworks' own files and the bare store."""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from rows import Row

from locus_memory._internal.bridge import shared_bridge
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.store.base import BaseStore
from locus_memory.store.wrappers.base import StoreWrapper

APPENDS = 500
CROWD, TURNS = 50, 10
ROUNDS = 5
Turn = Callable[[int], Awaitable[Any]]


def said(number: int) -> str:
    return f"What was said at {number}: the flat in Lisbon is too far from the sea."


@dataclass(frozen=True)
class Framework:
    """An adapter, as this measures it.

    `ours` and `theirs` return what one turn of a session does; `theirs` keeps it in a file of the
    framework's own, the fastest that it has. Without `ours`, only its import is measured. The calls
    of a `blocking` one come from threads, and so do those of the store that it is held against.
    """

    name: str
    alone: str
    adapter: str
    ours: Callable[[BaseStore, str], Turn] | None
    theirs: dict[str, Callable[[Path], Turn]]
    blocking: bool = False


def our_session(store: BaseStore, name: str) -> Turn:
    from locus_memory.integrations.openai_agents import LocusSession  # noqa: PLC0415 - if it is there

    session = LocusSession(name, store)
    return lambda number: session.add_items([{"role": "user", "content": said(number)}])


def their_session(folder: Path) -> Turn:
    from agents import SQLiteSession  # noqa: PLC0415 - if it is there

    session = SQLiteSession("ada", folder / "theirs.db")
    return lambda number: session.add_items([{"role": "user", "content": said(number)}])


def our_adk(store: BaseStore, name: str) -> Turn:
    from locus_memory.integrations.adk import LocusSessionService  # noqa: PLC0415 - if it is there

    return adk_appends(LocusSessionService(store), name)


def their_adk(folder: Path) -> Turn:
    from google.adk.sessions.sqlite_session_service import (  # noqa: PLC0415 - if it is there
        SqliteSessionService,
    )

    return adk_appends(SqliteSessionService(str(folder / "theirs.db")), "ada")


def their_adk_database(folder: Path) -> Turn:
    from google.adk.sessions import DatabaseSessionService  # noqa: PLC0415 - if it is there

    return adk_appends(DatabaseSessionService(f"sqlite+aiosqlite:///{folder / 'theirs.db'}"), "ada")


def adk_appends(service: Any, name: str) -> Turn:
    from google.adk.events import Event  # noqa: PLC0415 - if it is there
    from google.genai import types  # noqa: PLC0415 - as above

    sessions: list[Any] = []

    async def append(number: int) -> Any:
        if not sessions:
            place = {"app_name": "app", "user_id": "ada", "session_id": name}
            sessions.append(await service.create_session(**place))
        content = types.Content(role="user", parts=[types.Part(text=said(number))])
        return await service.append_event(sessions[0], Event(author="user", content=content))

    return append


def our_files(store: BaseStore, name: str) -> Turn:
    from locus_memory.integrations.anthropic import (  # noqa: PLC0415 - if it is there
        AsyncLocusMemoryTool,
    )

    return creating(AsyncLocusMemoryTool(store, namespace=("files", name)))


def their_files(folder: Path) -> Turn:
    from anthropic.lib.tools._beta_builtin_memory_tool import (  # noqa: PLC0415 - if it is there
        BetaAsyncLocalFilesystemMemoryTool,
    )

    return creating(BetaAsyncLocalFilesystemMemoryTool(str(folder / "theirs")))


def creating(tool: Any) -> Turn:
    def create(number: int) -> Awaitable[Any]:
        path = f"/memories/{number}.md"
        return tool.call({"command": "create", "path": path, "file_text": said(number)})

    return create


def our_conversation(store: BaseStore, name: str) -> Turn:
    from pydantic_ai.conversation import Conversation  # noqa: PLC0415 - if it is there
    from pydantic_ai.messages import ModelRequest, UserPromptPart  # noqa: PLC0415 - as above

    from locus_memory.integrations.pydantic_ai import (  # noqa: PLC0415 - as above
        LocusConversationStore,
    )

    conversations = LocusConversationStore(store)
    conversation = Conversation(conversation_id=name)

    def save(number: int) -> Awaitable[Any]:
        part = UserPromptPart(content=said(number))
        conversation.messages.append(ModelRequest(parts=[part]))
        return conversations.save(conversation)

    return save


def our_memories(store: BaseStore, name: str) -> Turn:
    from locus_memory.integrations.pydantic_ai import (  # noqa: PLC0415 - if it is there
        LocusMemoryStore,
    )

    return writing(LocusMemoryStore(store, namespace=("memories", name)))


def their_memories(folder: Path) -> Turn:
    from pydantic_ai_harness.memory import SqliteMemoryStore  # noqa: PLC0415 - if it is there

    return writing(SqliteMemoryStore(database=folder / "theirs.db"))


def their_memory_files(folder: Path) -> Turn:
    from pydantic_ai.workspaces.local import (  # noqa: PLC0415 - if it is there
        LocalWorkspaceBackend,
    )
    from pydantic_ai_harness.memory import FileStore  # noqa: PLC0415 - as above

    return writing(FileStore("theirs", workspace=LocalWorkspaceBackend(str(folder))))


def writing(store: Any) -> Turn:
    return lambda number: store.write(f"{number}.md", said(number), expected_version=None)


def our_key_value(store: BaseStore, name: str) -> Turn:
    from locus_memory.integrations.key_value import LocusKeyValue  # noqa: PLC0415 - if it is there

    return putting(LocusKeyValue(store), name)


def their_file_tree(folder: Path) -> Turn:
    from key_value.aio.stores.filetree import (  # noqa: PLC0415 - if it is there
        FileTreeStore,
        FileTreeV1CollectionSanitizationStrategy,
        FileTreeV1KeySanitizationStrategy,
    )

    # As FastMCP opens it for its OAuth storage.
    store = FileTreeStore(
        data_directory=folder,
        key_sanitization_strategy=FileTreeV1KeySanitizationStrategy(folder),
        collection_sanitization_strategy=FileTreeV1CollectionSanitizationStrategy(folder),
    )
    return putting(store, "ada")


def putting(store: Any, collection: str) -> Turn:
    return lambda number: store.put(f"{number}", {"text": said(number)}, collection=collection)


def our_repository(store: BaseStore, name: str) -> Turn:
    from locus_memory.integrations.strands import (  # noqa: PLC0415 - if it is there
        LocusSessionRepository,
    )

    return appending(LocusSessionRepository(store), name)


def their_repository(folder: Path) -> Turn:
    from strands.session import FileSessionManager  # noqa: PLC0415 - if it is there

    return appending(FileSessionManager("theirs", str(folder)), "ada")


def appending(repository: Any, name: str) -> Turn:
    """Append messages as an agent does that was called blocking: in a thread of its own."""
    from strands.types.session import (  # noqa: PLC0415 - if it is there
        Session,
        SessionAgent,
        SessionMessage,
        SessionType,
    )

    agents = ThreadPoolExecutor(1)

    def append(number: int) -> None:
        if number == 0:
            repository.create_session(Session(name, SessionType.AGENT))
            repository.create_agent(name, SessionAgent("ada", {}, {}))
        message: Any = {"role": "user", "content": [{"text": said(number)}]}
        repository.create_message(name, "ada", SessionMessage.from_message(message, number))

    return lambda number: asyncio.get_running_loop().run_in_executor(
        agents, copy_context().run, append, number
    )


def our_storage(store: BaseStore, name: str) -> Turn:
    from locus_memory.integrations.strands import LocusStorage  # noqa: PLC0415 - if it is there

    storage = LocusStorage(store)
    return lambda number: storage.write(f"{name}/{number}.txt", said(number).encode())


def their_storage(folder: Path) -> Turn:
    from strands.storage import LocalFileStorage  # noqa: PLC0415 - if it is there

    storage = LocalFileStorage(str(folder))
    return lambda number: storage.write(f"ada/{number}.txt", said(number).encode())


def our_strands_memories(store: BaseStore, name: str) -> Turn:
    from locus_memory.integrations.strands import LocusMemoryStore  # noqa: PLC0415 - if it is there

    return adding(LocusMemoryStore(name, store))


def their_strands_memories(folder: Path) -> Turn:
    from strands.storage import LocalFileStorage  # noqa: PLC0415 - if it is there
    from strands.vended_memory_stores.file_memory_store import (  # noqa: PLC0415 - as above
        FileMemoryStore,
    )

    return adding(FileMemoryStore(name="ada", storage=LocalFileStorage(str(folder))))


def adding(memories: Any) -> Turn:
    return lambda number: memories.add(f"# Flat {number}\n{said(number)}")


FRAMEWORKS = [
    Framework(
        "adk",
        "google.adk.sessions.base_session_service",
        "locus_memory.integrations.adk.sessions",
        our_adk,
        {
            "SqliteSessionService": their_adk,
            **({"DatabaseSessionService": their_adk_database} if find_spec("sqlalchemy") else {}),
        },
    ),
    Framework(
        "openai-agents",
        "agents",
        "locus_memory.integrations.openai_agents",
        our_session,
        {"SQLiteSession": their_session},
    ),
    Framework(
        "anthropic",
        "anthropic",
        "locus_memory.integrations.anthropic",
        our_files,
        {"BetaAsyncLocalFilesystemMemoryTool": their_files},
    ),
    # A call of a tool is mostly the protocol, which the bare store has not.
    Framework(
        "mcp",
        "mcp.server.lowlevel",
        "locus_memory.integrations.mcp.server",
        None,
        {},
    ),
    # It keeps conversations in memory alone.
    Framework(
        "pydantic-ai",
        "pydantic_ai.conversation_store",
        "locus_memory.integrations.pydantic_ai.conversations",
        our_conversation,
        {},
    ),
    Framework(
        "pydantic-ai-harness",
        "pydantic_ai_harness.memory",
        "locus_memory.integrations.pydantic_ai.memories; "
        "locus_memory.integrations.pydantic_ai.memories._harness()",
        our_memories,
        {"SqliteMemoryStore": their_memories, "FileStore": their_memory_files},
    ),
    Framework(
        "py-key-value",
        "key_value.aio.stores.base",
        "locus_memory.integrations.key_value",
        our_key_value,
        {"FileTreeStore": their_file_tree},
    ),
    Framework(
        "strands sessions",
        "strands.session",
        "locus_memory.integrations.strands",
        our_repository,
        {"FileSessionManager": their_repository},
        blocking=True,
    ),
    Framework(
        "strands storage",
        "strands.storage",
        "locus_memory.integrations.strands",
        our_storage,
        {"LocalFileStorage": their_storage},
    ),
    Framework(
        "strands memories",
        "strands.memory",
        "locus_memory.integrations.strands",
        our_strands_memories,
        {"FileMemoryStore": their_strands_memories},
    ),
]


def installed() -> Iterable[Framework]:
    """Yield the frameworks of this environment; the harness has one of its own."""
    for framework in FRAMEWORKS:
        package, _, module = framework.alone.partition(".")
        if find_spec(package) and (not module or find_spec(framework.alone)):
            yield framework


async def taken(turn: Turn, times: int) -> float:
    start = time.perf_counter()
    for number in range(times):
        await turn(number)
    return time.perf_counter() - start


async def framework_appends(folder: Path) -> list[Row]:
    """500 single appends on SQLite, against the fastest file of the framework; medians of 5."""
    from locus_memory.backends.sqlite.store import SQLiteStore  # noqa: PLC0415 - as the others

    rows: list[Row] = []
    for framework in installed():
        if framework.ours is None or not framework.theirs:
            continue
        ours: list[float] = []
        theirs: dict[str, list[float]] = defaultdict(list)
        for number in range(ROUNDS):
            place = folder / f"{framework.name}-{number}"
            place.mkdir()
            async with SQLiteStore(place / "ours.db") as store:
                ours.append(await taken(framework.ours(store, "ada"), APPENDS))
            for name, make in framework.theirs.items():
                (place / name).mkdir()
                theirs[name].append(await taken(make(place / name), APPENDS))
        name, least = min(
            ((name, median(each)) for name, each in theirs.items()), key=lambda pair: pair[1]
        )
        detail = f"{median(ours) * 1e3:.0f} ms / {least * 1e3:.0f} ms"
        figure = f"{framework.name}: 500 appends on SQLite / {name}"
        rows.append(Row(figure, median(ours) / least, 1.0, detail))
    return rows


SESSION: ContextVar[str] = ContextVar("session")


class Recording(StoreWrapper):
    """Notes the calls of each session, so that they can be made again without the adapter."""

    def __init__(self) -> None:
        super().__init__(InMemoryStore())
        self.calls: dict[str, list[tuple[str, tuple[Any, ...], dict[str, Any]]]] = defaultdict(list)

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in VERBS:
            return found

        async def noted(*arguments: Any, **options: Any) -> Any:
            self.calls[SESSION.get()].append((name, arguments, options))
            return await found(*arguments, **options)

        return noted


VERBS = frozenset(
    {
        *("get", "get_item", "exists", "scan", "list_keys", "search", "get_batch"),
        *("put", "put_batch", "write_batch", "delete", "delete_batch"),
    }
)


async def crowded(turns: Iterable[tuple[str, Turn]]) -> float:
    """Return the seconds that sessions take for their turns, all of them at once."""

    async def one(name: str, turn: Turn) -> None:
        SESSION.set(name)
        for number in range(TURNS):
            await turn(number)

    start = time.perf_counter()
    await asyncio.gather(*(one(name, turn) for name, turn in turns))
    return time.perf_counter() - start


async def again(
    store: BaseStore, calls: Iterable[Iterable[tuple[Any, ...]]], *, blocking: bool
) -> float:
    """Return the seconds that the calls of the sessions take without the adapter."""

    async def one(made: Iterable[tuple[Any, ...]]) -> None:
        for name, arguments, options in made:
            await getattr(store, name)(*arguments, **options)

    def in_a_thread(made: Iterable[tuple[Any, ...]]) -> None:
        for name, arguments, options in made:
            shared_bridge().run(getattr(store, name)(*arguments, **options))

    start = time.perf_counter()
    if blocking:
        with ThreadPoolExecutor(CROWD) as threads:
            for _ in threads.map(in_a_thread, calls):
                pass
    else:
        await asyncio.gather(*(one(made) for made in calls))
    return time.perf_counter() - start


async def framework_crowd(folder: Path) -> list[Row]:
    """50 sessions at once on PostgreSQL, 10 turns each, against the same calls of the store.

    The calls of the store are those that the adapter makes; medians of 5.
    """
    from databases import PostgreSQL  # noqa: PLC0415 - the harness's environment has no driver

    del folder
    async with PostgreSQL.running() as database:
        return [
            await _crowd(framework, framework.ours, database)
            for framework in installed()
            if framework.ours is not None
        ]


async def _crowd(
    framework: Framework, ours: Callable[[BaseStore, str], Turn], database: Any
) -> Row:
    recording = Recording()
    names = [f"session {number}" for number in range(CROWD)]
    await crowded((each, ours(recording, each)) for each in names)
    pairs: list[tuple[float, float]] = []
    schema = framework.name.replace("-", "_").replace(" ", "_")
    for number in range(ROUNDS):
        async with database.store(schema=f"{schema}_raw_{number}") as store:
            calls = recording.calls.values()
            raw = await again(store, calls, blocking=framework.blocking)
        async with database.store(schema=f"{schema}_{number}") as store:
            pairs.append((raw, await crowded((each, ours(store, each)) for each in names)))
    raw, through = (median(each) for each in zip(*pairs, strict=True))
    a_turn = sum(map(len, recording.calls.values())) / (CROWD * TURNS)
    detail = f"{CROWD * TURNS / through:.0f} turns/s, {a_turn:.1f} calls a turn"
    figure = f"{framework.name}: 50 sessions on PostgreSQL / the store's calls"
    return Row(figure, raw / through, 0.7, detail, at_least=True)


def _processor_time(statement: str) -> float:
    """Return the seconds of processor time that a new interpreter takes for a statement."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", statement], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


async def framework_imports(folder: Path) -> list[Row]:
    """The import of an adapter against that of its framework alone; the least of 7 runs each."""
    del folder
    rows: list[Row] = []
    for framework in installed():
        theirs, ours = f"import {framework.alone}", f"import {framework.adapter}"
        least = dict.fromkeys(("pass", theirs, ours), float("inf"))
        for _ in range(7):
            for statement in least:
                least[statement] = min(least[statement], _processor_time(statement))
        alone, both = least[theirs] - least["pass"], least[ours] - least["pass"]
        detail = f"{both * 1e3:.0f} ms / {alone * 1e3:.0f} ms"
        rows.append(
            Row(f"{framework.name}: import of the adapter / alone", both / alone, 1.1, detail)
        )
    return rows
