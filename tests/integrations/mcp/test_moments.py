"""Each way into a memory takes a validity, and each way out answers for an earlier moment."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

pytest.importorskip("httpx2")
pytest.importorskip("mcp.server.lowlevel")

import httpx2
from typer.testing import CliRunner

from locus_memory.agent import memory_tool, memory_tools
from locus_memory.cli.app import app as commands
from locus_memory.integrations.mcp.memories import conversation_functions, memory_functions
from locus_memory.memory.layers.episodes import Episode, Note, episode_put
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.scope import Scope
from locus_memory.messages import Message, ToolCall
from locus_memory.registry import open_backend
from locus_memory.store.item import timestamp
from locus_memory.testing import FakeClock
from locus_memory.web import make_app
from locus_memory.web.pages import make_pages
from tests.memory.transcripts import transcript_puts

BETWEEN = timestamp(1_770_000_000 + 432_000).isoformat()
SPAN = {"valid_from": "2026-01-01", "valid_to": "2026-01-10"}


class Doors:
    """The doors of one database."""

    def __init__(self, backend, url) -> None:
        self.backend, self.url = backend, url
        self.manager = LLMMemoryManager(backend.store)

    async def tool(self, /, **arguments):
        return await self._tool(memory_tool(self.manager), **arguments)

    async def layer(self, /, **arguments):
        (tool,) = memory_tools(self.manager)
        return await self._tool(tool, query="Ada", **arguments)

    async def _tool(self, tool, **arguments):
        result = await tool.run(ToolCall(name=tool.spec.name, arguments=arguments))
        assert result.error is None, result.error
        return result.content

    async def mcp(self, name, /, **arguments):
        every = [
            *memory_functions(self.manager, self.backend.store),
            *conversation_functions(self.manager),
        ]
        return await {each.__name__: each for each in every}[name](**arguments)

    async def http(self, path, /, **params):
        async with self._client() as client:
            found = await client.get(path, params=params)
            assert found.status_code == 200, found.text
            return found.text

    async def post(self, /, **document):
        async with self._client() as client:
            found = await client.post("/api/v1/memory/remember", json=document)
            assert found.status_code == 200, found.text

    @asynccontextmanager
    async def _client(self):
        app = make_app(self.backend, pages=make_pages())
        transport = httpx2.ASGITransport(app=app)
        base = "http://127.0.0.1:8484"
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=transport, base_url=base) as client,
        ):
            yield client

    async def command(self, /, *words, **options):
        named = [f"--{name.replace('_', '-')}={each}" for name, each in options.items()]
        arguments = [*words, *named, "--url", self.url]
        done = await asyncio.to_thread(CliRunner().invoke, commands, arguments)
        assert done.exit_code == 0, done.output
        return done.output


OUT = {
    "memory": lambda doors, **then: doors.tool(action="search", query="Ada", **then),
    "search_memory facts": lambda doors, **then: doors.layer(scope="facts", **then),
    "search_memory episodes": lambda doors, **then: doors.layer(scope="notes", **then),
    "search_memory transcript": lambda doors, **then: doors.layer(scope="transcript", **then),
    "recall": lambda doors, **then: doors.mcp("recall", query="Ada", **then),
    "list_memories": lambda doors, **then: doors.mcp("list_memories", **then),
    "search_conversations": lambda doors, **then: doors.mcp(
        "search_conversations", query="Ada", **then
    ),
    "GET list": lambda doors, **then: doors.http("/api/v1/memory/list", **then),
    "GET search": lambda doors, **then: doors.http("/api/v1/memory/search", query="Ada", **then),
    "GET episodes": lambda doors, **then: doors.http("/api/v1/memory/episodes", **then),
    "GET transcript": lambda doors, **then: doors.http(
        "/api/v1/memory/transcript", thread="t", **then
    ),
    "GET plan": lambda doors, **then: doors.http("/api/v1/memory/plan", text="Ada", **then),
    "page list": lambda doors, **then: doors.http("/memories/list", **then),
    "page search": lambda doors, **then: doors.http("/memories/list", query="Ada", **then),
    "page episodes": lambda doors, **then: doors.http("/memories/episodes", **then),
    "page transcript": lambda doors, **then: doors.http("/memories/transcript", thread="t", **then),
    "page try": lambda doors, **then: doors.http("/try", text="Ada", **then),
    "memories": lambda doors, **then: doors.command("memories", **then),
    "memories --query": lambda doors, **then: doors.command("memories", query="Ada", **then),
    "episodes": lambda doors, **then: doors.command("episodes", **then),
}

IN = {
    "remember": lambda doors, text: doors.manager.remember(text, **SPAN),
    "tool": lambda doors, text: doors.tool(action="remember", content=text, **SPAN),
    "mcp": lambda doors, text: doors.mcp("remember", content=text, **SPAN),
    "http": lambda doors, text: doors.post(content=text, **SPAN),
    "command": lambda doors, text: doors.command("remember", text, **SPAN),
}


@asynccontextmanager
async def opened(folder):
    url = f"sqlite:{folder / 'memory.db'}"
    async with open_backend(url, state_type=None) as backend:
        yield Doors(backend, url)


@pytest.fixture
async def doors(tmp_path):
    """The doors of a database where Ada moved from Graz to Linz."""
    async with opened(tmp_path) as doors:
        clock, store = FakeClock(1_770_000_000), doors.backend.store
        manager = LLMMemoryManager(store, clock=clock)
        scope = Scope(manager.namespace)
        for number, city in enumerate(("Graz", "Linz"), 1):
            said = timestamp(clock()).isoformat(timespec="microseconds")
            await manager.remember(f"Ada lives in {city}.", source={"origin": "user"})
            note = Note(f"Ada is in {city}.", at=said)
            notes = Episode(session_id=city, started_at=said, ended_at=said, notes=(note,))
            turn = Message.user(f"Ada is in {city} now.")
            puts = [episode_put(scope, notes), *transcript_puts(scope, "t", [turn], number, said)]
            await store.put_batch(puts)
            clock.advance(864_000)
        yield doors


@pytest.mark.slow
@pytest.mark.parametrize("name", ["as_of", "at"])
async def test_each_way_out_answers_for_an_earlier_moment(doors, name):
    for door, ask in OUT.items():
        now, then = await ask(doors), await ask(doors, **{name: BETWEEN})
        assert "Linz" in now, door
        assert "Graz" in then, (door, then)
        assert "Linz" not in then, (door, then)


@pytest.mark.slow
async def test_each_way_in_takes_a_validity(tmp_path):
    async with opened(tmp_path) as doors:
        for way, write in IN.items():
            await write(doors, f"Ada borrows the {way} of a friend.")
        found = [each async for each in doors.manager.memories()]
        assert len(found) == len(IN)
        assert all({n: each.metadata[n] for n in SPAN} == SPAN for each in found)
        for door, ask in OUT.items():
            if "episodes" not in door and "transcript" not in door and "conv" not in door:
                assert "friend" in await ask(doors, at="2026-01-10T12:00:00Z"), door
                assert "friend" not in await ask(doors, at="2026-01-12T12:00:00Z"), door
