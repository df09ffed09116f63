"""The doors of the memory: what goes in by any of them comes out by all that read its kind.

Each writer says one sentence about one user in one SQLite file, and each reader looks for it. There
are two kinds of what is remembered: a fact, and a turn of a conversation, word for word. What a
program, a tree or an index keeps is apart, for the reasons in `KINDS`.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import re
import zipfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest
import typer.main

pytest.importorskip("mcp.server.lowlevel")

from mcp import Client

from locus_memory import (
    AgentState,
    Backend,
    DocumentIndex,
    LLMMemoryManager,
    Message,
    StoreContext,
    open_backend,
)
from locus_memory.agent import memory_tool, memory_tools
from locus_memory.cli import app
from locus_memory.integrations.mcp import Caller, MemoryServer
from locus_memory.integrations.mem0 import AsyncMemory
from locus_memory.resources.tree import MemoryTree
from locus_memory.transfer.archive.writing import write_archive
from locus_memory.transfer.chats.formats import ChatFormat
from locus_memory.web import make_app
from locus_memory.web.pages import make_pages
from tests.cli.conversations import exports

USER = "ada"
MOMENT = "2026-03-01T10:00:00+00:00"
BASE = "http://127.0.0.1:8484"

KINDS = {
    "fact": "what is remembered of a user: one list, whoever writes it",
    "turn": "what was said, word for word; a model makes facts of it",
    "item": "apart: a program's own value under its own key, which only the program reads",
    "resource": "apart: a text that was written for a tree, with levels and a URI",
    "document": "apart: a file of other people, which says nothing of the user",
}
"""What a sentence becomes. A reader of one kind does not read the others."""


@dataclass(frozen=True)
class World:
    """Everything that is open on the file, for one user."""

    folder: Path
    backend: Backend
    manager: LLMMemoryManager
    tree: MemoryTree
    index: DocumentIndex
    context: StoreContext
    mem0: AsyncMemory
    mcp: Client
    http: httpx2.AsyncClient

    async def api(self, method, path, /, **fields):
        told = {"json": fields} if method == "POST" else {"params": fields}
        answer = await self.http.request(method, f"/api/v1{path}", **told)
        assert answer.status_code == 200, answer.text
        return answer.text

    async def form(self, path, /, **fields):
        """Send a form of the pages, with the token that they have."""
        page = await self.http.get("/memories/list", params={"user": USER})
        token = re.search(r'name="form_token" value="([^"]+)"', page.text)[1]
        answer = await self.http.post(path, data={"form_token": token, **fields})
        assert answer.status_code == 200, answer.text

    async def archive(self):
        """Return the texts of an archive of everything."""
        file = self.folder / f"{uuid4().hex}.zip"
        await write_archive(self.backend, file)
        with zipfile.ZipFile(file) as archive:
            return " ".join(archive.read(name).decode() for name in archive.namelist())

    async def tool(self, name, /, **arguments):
        result = await self.mcp.call_tool(name, arguments)
        assert not result.is_error, result.content
        return result.content[0].text


async def ended_run(world, text):
    state = AgentState(messages=(Message.user(text),), metadata={"thread_id": "a run"})
    await world.manager.on_session_end(state)


WRITERS: dict[str, tuple[set[str], Any]] = {
    "manager.remember": ({"fact"}, lambda w, text: w.manager.remember(text)),
    "identity.add": ({"fact"}, lambda w, text: w.manager.identity.add(text)),
    "memory tool": (
        {"fact"},
        lambda w, text: memory_tool(w.manager).function(action="remember", content=text),
    ),
    "mem0's add": ({"fact"}, lambda w, text: w.mem0.add(text, user_id=USER, infer=False)),
    "MCP remember": ({"fact"}, lambda w, text: w.tool("remember", content=text)),
    "HTTP remember": (
        {"fact"},
        lambda w, text: w.api("POST", "/memory/remember", content=text, user=USER),
    ),
    "command line: remember": ({"fact"}, ["remember", "{text}", "--user", USER]),
    "ingest: facts": ({"fact"}, ["ingest", "{file}", "--format", "facts", "--user", USER]),
    "page: remember": (
        {"fact"},
        lambda w, text: w.form("/memories/remember", content=text, user=USER),
    ),
    "manager.add": ({"turn"}, lambda w, text: w.manager.add(text)),
    "on_session_end": ({"turn"}, ended_run),
    "StoreContext.remember": ({"item"}, lambda w, text: w.context.remember("shed", text)),
    "tree.write": ({"resource"}, lambda w, text: w.tree.write("memory://shed", text, wait=True)),
    "documents.add": ({"document"}, lambda w, text: w.index.add(text, source="shed.md")),
}
"""What each writer makes of a sentence, and the writer: a function, or the words of a command."""


def ingested(text):
    """Return a file of each format."""
    spoken = [{"role": "user", "content": text}, {"role": "assistant", "content": "Noted."}]
    named = [{"speaker": "Ada", "text": text}, {"speaker": "Bo", "text": "Noted."}]
    run = exports.run("r", 12, {"input": text}, {"output": "Noted."})
    return {
        "chatgpt": [exports.chatgpt("in chatgpt", said=text)],
        "claude": [exports.claude("in claude", said=text)],
        "langsmith": [run | {"extra": {"metadata": {"thread_id": "in langsmith"}}}],
        "openai": {"id": "in openai", "messages": spoken},
        "sessions": [
            {"id": "in sessions", "speakers": ["Ada", "Bo"], "sessions": [{"turns": named}]}
        ],
        "turns": {"conversation_id": "in turns", "turns": [{"user": text, "assistant": "Noted."}]},
        "whatsapp": exports.WHATSAPP["german"].format(text),
        "slack": exports.SLACK.format(text),
        "facts": {"id": uuid4().hex, "content": text, "source": "a file", "created_at": MOMENT},
    }


for _kind in ChatFormat:
    _me = ["--me", "Ada"] if _kind in ("whatsapp", "slack") else []
    _command = ["ingest", "{file}", "--format", _kind.value, "--user", USER, *_me]
    WRITERS[f"ingest: {_kind.value}"] = ({"turn"}, _command)

READERS: dict[str, tuple[set[str], Any]] = {
    "block": ({"fact", "turn"}, lambda w, word: w.manager.prefetch(word)),
    "manager.retrieve": ({"fact"}, lambda w, word: w.manager.retrieve(word, min_score=0.02)),
    "manager.search": ({"fact"}, lambda w, word: w.manager.search(word)),
    "manager.search_transcript": ({"turn"}, lambda w, word: w.manager.search_transcript(word)),
    "memory tool": (
        {"fact"},
        lambda w, word: memory_tool(w.manager).function(action="search", query=word),
    ),
    "search_memory: facts": (
        {"fact"},
        lambda w, word: memory_tools(w.manager)[0].function(scope="facts", query=word),
    ),
    "search_memory: transcript": (
        {"turn"},
        lambda w, word: memory_tools(w.manager)[0].function(scope="transcript", query=word),
    ),
    "mem0's search": ({"fact"}, lambda w, word: w.mem0.search(word, user_id=USER)),
    "MCP recall": ({"fact"}, lambda w, word: w.tool("recall", query=word)),
    "MCP search_conversations": (
        {"turn"},
        lambda w, word: w.tool("search_conversations", query=word),
    ),
    "MCP search_documents": ({"document"}, lambda w, word: w.tool("search_documents", query=word)),
    "MCP find_resources": (
        {"fact", "resource"},
        lambda w, word: w.tool("find_resources", query=word),
    ),
    "HTTP search": (
        {"fact"},
        lambda w, word: w.api("GET", "/memory/search", query=word, user=USER),
    ),
    "HTTP plan": (
        {"fact", "turn"},
        lambda w, word: w.api("GET", "/memory/plan", text=word, user=USER),
    ),
    "HTTP documents": ({"document"}, lambda w, word: w.api("GET", "/documents/search", query=word)),
    "page of a search": (
        {"fact"},
        lambda w, word: w.http.get("/memories/list", params={"user": USER, "query": word}),
    ),
    "page of a try": (
        {"fact", "turn"},
        lambda w, word: w.http.get("/try", params={"user": USER, "text": word, "gate": "off"}),
    ),
    "archive": (set(KINDS), lambda w, _: w.archive()),
    "tree.find": ({"fact", "resource"}, lambda w, word: w.tree.find(word)),
    "documents.retrieve": ({"document"}, lambda w, word: w.index.retrieve(word)),
    "StoreContext.search_memories": ({"item"}, lambda w, word: w.context.search_memories(word)),
    "command line: memories": ({"fact"}, ["memories", "--user", USER, "--query", "{word}"]),
    "command line: search": (
        set(KINDS),
        ["search", "{word}"],
    ),
    "command line: export --facts": ({"fact"}, ["export", "--facts", "--user", USER]),
}
"""The kinds that each reader reads, and the reader."""

LETTERS = "bdfgklmnprstvz"
WORDS = {name: f"{LETTERS[n // 14]}o{LETTERS[n % 14]}udium" for n, name in enumerate(WRITERS)}
"""A word of its own for each writer."""


def sentence(word):
    return f"There is a {word} in the shed."


def command(where, *words):
    """Run a command; return what it printed."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()) as told:
        code = app.run([*words, "--url", where, "--json"])
    # Where nothing is found, the command says so, and fails.
    assert code == 0 or told.getvalue().startswith("error: no "), (words, told.getvalue())
    return printed.getvalue()


async def opened(stack, where):
    backend = await stack.enter_async_context(open_backend(where, state_type=None))
    manager = LLMMemoryManager(backend.store)
    server = MemoryServer(
        backend,
        caller=Caller(user_id=USER),
        tools=("memory", "conversations", "documents", "resources"),
    )
    await stack.enter_async_context(server)
    pages = make_app(backend, pages=make_pages())
    await stack.enter_async_context(pages.router.lifespan_context(pages))
    transport = httpx2.ASGITransport(app=pages)
    return World(
        folder=Path(where.removeprefix("sqlite:")).parent,
        backend=backend,
        manager=manager.for_user(USER),
        tree=await stack.enter_async_context(MemoryTree(backend.store, user_id=USER)),
        index=DocumentIndex(backend.store),
        context=StoreContext(backend.store, USER),
        mem0=await stack.enter_async_context(AsyncMemory(backend.store)),
        mcp=await stack.enter_async_context(Client(server.server)),
        http=await stack.enter_async_context(
            httpx2.AsyncClient(transport=transport, base_url=BASE, follow_redirects=True)
        ),
    )


async def lived(where):
    """Write by all functions, and return what each reader says of each word."""
    async with AsyncExitStack() as stack:
        world = await opened(stack, where)
        for name, (_, write) in WRITERS.items():
            if callable(write):
                await write(world, sentence(WORDS[name]))
        return {
            (writer, name): shown(await read(world, word))
            for name, (_, read) in READERS.items()
            if callable(read)
            for writer, word in WORDS.items()
        }


def shown(found):
    return found.text if isinstance(found, httpx2.Response) else repr(found)


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What each reader says of the word of each writer."""
    folder = tmp_path_factory.mktemp("doors")
    where = f"sqlite:{folder / 'one.db'}"
    with pytest.MonkeyPatch.context() as patch:
        # Typer builds the commands for every call, which takes longer than the call.
        patch.setattr(typer.main, "get_command", cache(typer.main.get_command))
        for name, (_, words) in WRITERS.items():
            if callable(words):
                continue
            text, kind = sentence(WORDS[name]), name.removeprefix("ingest: ")
            made, file = ingested(text).get(kind, ""), folder / f"{kind.replace(':', '')}.txt"
            file.write_text(made if isinstance(made, str) else json.dumps(made), "utf-8")
            command(where, *(each.format(text=text, file=file) for each in words))
        found = asyncio.run(lived(where))
        for name, (_, words) in READERS.items():
            for writer, word in WORDS.items() if not callable(words) else ():
                found[writer, name] = command(where, *(each.format(word=word) for each in words))
    return found


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("writer", WRITERS)
def test_what_goes_in_comes_out(answers, writer, reader):
    makes, reads = WRITERS[writer][0], READERS[reader][0]
    is_found = sentence(WORDS[writer]) in answers[writer, reader]
    assert is_found is bool(makes & reads), [KINDS[kind] for kind in makes]
