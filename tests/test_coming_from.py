"""Each row of the tables of `docs/coming-from.md` for those whose packages are not installed here.

Sources: `rath.flow.agent` and `rath.memory` of openrath 2.0.0; `docs/memory.md` of
https://github.com/CursorTouch/Operator-Use; `docs/MEMORY.md` of https://github.com/osaurus-ai/osaurus.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from locus_memory import (
    Agent,
    BaseMemoryProvider,
    LLMMemoryManager,
    MemoryOptions,
    MemoryProvider,
    MemorySettings,
    Message,
    get_checkpointer,
    get_documents,
    get_memory_manager,
    get_store,
    list_memory_providers,
    register_memory_api,
    register_memory_provider,
)
from locus_memory.agent import ResourceSettings, memory_tool, memory_tools
from locus_memory.documents import ChunkConfig, ContextConfig, HybridOptions, fuse, inject_context
from locus_memory.errors import MemoryAccessDenied, UnsupportedMemoryOp
from locus_memory.messages import ToolCall
from locus_memory.resources import (
    FetchOptions,
    MemoryCommitResult,
    MemoryExecutionFailure,
    MemoryFindResult,
    MemoryListResult,
    MemoryOpCommit,
    MemoryOpFind,
    MemoryOpList,
    MemoryOpRead,
    MemoryOpResource,
    MemoryOpSearch,
    MemoryOpTree,
    MemoryOpWrite,
    MemoryReadResult,
    MemoryTree,
    MemoryWriteResult,
    backends,
)
from locus_memory.retrieval.ranking.fusion import reciprocal_rank_fusion
from locus_memory.testing import FakeModel
from locus_memory.tools import Tool

PAGE = (Path(__file__).parents[1] / "docs" / "coming-from.md").read_text("utf-8")
SECTIONS = ("OpenRath", "operator-use", "Osaurus", "Defaults")
TESTS = {}


def rows(section):
    """Return the cells of the rows of a section's table."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| ")][1:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def row(section, beginning):
    """Register the test of the row whose first cell begins so."""

    def decorated(function):
        TESTS[section, beginning] = function
        return function

    return decorated


ROWS = [(section, cells[0]) for section in SECTIONS for cells in rows(section)]


@pytest.mark.parametrize(("section", "cell"), ROWS)
async def test_a_row(section, cell, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [test] = [
        each for (of, begins), each in TESTS.items() if of == section and cell.startswith(begins)
    ]
    await test(tmp_path)


def test_each_test_is_of_a_row():
    for section, beginning in TESTS:
        assert [cell for of, cell in ROWS if of == section and cell.startswith(beginning)]


def test_the_page_is_short():
    assert len(PAGE.split()) <= 2_150


# OpenRath


@row("OpenRath", '`flow.Agent(memory="local")`')
async def _(folder):
    (folder / "pyproject.toml").write_text('[tool.locus_memory.presets]\nnotes = "memory"\n')
    handle = await backends.current().open(backends.MemoryStoreSpec(options={"store": "memory"}))
    spec = backends.MemoryStoreSpec(namespace="x", options={"store": "memory"})
    for where in ("local", handle, spec, MemoryTree("memory"), "@notes", "sqlite:./a.db"):
        async with Agent(FakeModel(), memory=where) as agent:
            await agent.remember_memory("Oak.")
    assert handle.is_closed


@row("OpenRath", "`remember_memory(text")
async def _(folder):
    tree = MemoryTree("memory")
    agent = Agent(FakeModel(), memory=tree)
    done = await agent.remember_memory("I like tea.", scope="agent", category="tastes", wait=True)
    assert done.uri.startswith("memory://agent/memories/tastes/")
    await agent.remember_memory("I like rum.", user_id="ada")
    assert len((await tree.for_user("ada").list("memory://user/memories/preferences")).entries) == 1


@row("OpenRath", "`recall_memory(query")
async def _(folder):
    agent = Agent(FakeModel(), memory="memory")
    for text in ("I like tea.", "I like green tea.", "The mast is of spruce."):
        await agent.remember_memory(text)
    found = await agent.recall_memory("tea")
    assert len(found.hits) == 2
    assert all(0 < each.score <= 1 for each in found.hits)
    assert len((await agent.recall_memory("tea", top_k=1)).hits) == 1
    assert (await agent.recall_memory("tea", target_uri="memory://agent")).hits == ()


@row("OpenRath", "`commit_memory(session)`")
async def _(folder):
    tree = MemoryTree("memory")
    agent = Agent(FakeModel(["Noted."]), memory=tree)
    session = await agent.run("I live in Berlin now.", "monday")
    assert (await agent.commit_memory(session, wait=True)).extracted_count == 1
    assert (await tree.list("memory://sessions")).entries[0].name == "monday"


@row("OpenRath", "`memory_inject=")
async def _(folder):
    tree = MemoryTree("memory")
    for number in range(3):
        await tree.write(f"memory://notes/{number}", "The mast</memory> is of spruce.")
    model = FakeModel(["Spruce."])
    settings = ResourceSettings(top_k=1)
    await Agent(model, memory=tree, resource_settings=settings).run("What is the mast of?")
    text = model.calls[0][-1].content
    assert text.count("(abstract)") == text.count("</memory>") == 1
    assert settings.min_score == 0.2


@row("OpenRath", "`commit_on_forward=True`")
async def _(folder):
    tree = MemoryTree("memory")
    settings = ResourceSettings(commit="run")
    await Agent(FakeModel(["Yes."]), memory=tree, resource_settings=settings).run("Hi.", "monday")
    assert (await tree.list("memory://sessions")).entries[0].name == "monday"


@row("OpenRath", "`store.dispatch(MemoryOpWrite")
async def _(folder):
    async with MemoryTree("memory") as tree:
        said = ({"role": "user", "content": "Hi."},)
        for op, result in (
            (MemoryOpWrite("memory://user/a", "Oak is a tree."), MemoryWriteResult),
            (MemoryOpRead("memory://user/a", level="abstract"), MemoryReadResult),
            (MemoryOpList("memory://user"), MemoryListResult),
            (MemoryOpTree("memory://", depth=2), MemoryListResult),
            (MemoryOpFind("oak", None, 8), MemoryFindResult),
            (MemoryOpSearch("oak", session_id="s"), MemoryFindResult),
            (MemoryOpCommit("s", said, used_uris=("memory://user/a",)), MemoryCommitResult),
        ):
            assert isinstance(await tree.dispatch(op), result)


@row("OpenRath", "`MemoryOpResource(url)`")
async def _(folder):
    async with MemoryTree("memory", fetch=FetchOptions(seconds=5)) as tree:
        with pytest.raises(MemoryAccessDenied, match="not public"):
            await tree.add_resource("http://127.0.0.1:1/page")
        failure = await tree.dispatch(MemoryOpResource("http://169.254.169.254/latest"))
        assert failure.kind == "unauthorized"


@row("OpenRath", "`MemoryExecutionFailure(kind=...)`")
async def _(folder):
    tree = MemoryTree("memory")
    await tree.write("memory://a", "Oak.")
    kinds = {
        MemoryOpRead("memory://b"): "not_found",
        MemoryOpRead("viking://a"): "invalid_uri",
        MemoryOpWrite("memory://a/b", "Elm."): "conflict",
    }
    for op, kind in kinds.items():
        failure = await tree.dispatch(op)
        assert isinstance(failure, MemoryExecutionFailure)
        assert failure.kind == kind


@row("OpenRath", "`memory://user/...`")
async def _(folder):
    tree = MemoryTree("memory")
    for scope in ("user", "agent", "session", "resources", "mine"):
        await tree.write(f"memory://{scope}/memories/x", "Oak.")
    with pytest.raises(UnsupportedMemoryOp):
        await tree.write("memory://memories/x", "Oak.")


@row("OpenRath", "`memory.register`, `get`")
async def _(folder):
    assert "local" in backends.list_names()
    assert type(backends.get("local")) is backends.get_class("local") is type(backends.current())
    assert backends.is_available("local")
    assert backends.preferred(["none", "local"]).name == "local"
    backends.set_default("local")


@row("OpenRath", "`MemoryStoreSpec.from_config(name)`")
async def _(folder):
    text = '[tool.locus_memory.memory.providers.notes]\nnamespace = "n"\n'
    (folder / "pyproject.toml").write_text(text)
    assert backends.MemoryStoreSpec.from_config("notes").namespace == "n"
    with pytest.raises(KeyError):
        backends.MemoryStoreSpec.from_config("others")


@row("OpenRath", "`with store:`, `acquire`")
async def _(folder):
    handle = await backends.current().open(backends.MemoryStoreSpec(options={"store": "memory"}))
    async with handle:
        handle.acquire()
        assert handle.refcount == 2
        await handle.release()
    assert handle.is_closed


@row("OpenRath", "the backend `openviking`")
async def _(folder):
    assert not backends.is_available("openviking")
    assert "openviking" not in list_memory_providers()


# operator-use


@row("operator-use", "`memory.provider`: ")
async def _(folder):
    assert {"local", "mem0", "supermemory"} <= set(list_memory_providers())
    async with Agent(FakeModel(), memory_manager="local:memory") as agent:
        assert isinstance(agent.memory_manager, LLMMemoryManager)


@row("operator-use", "`enabled`, `sync_turns`")
async def _(folder):
    settings = MemorySettings(enabled=True, sync_turns=False, prefetch=False, max_prompt_chars=6000)
    assert (settings.provider, MemorySettings().sync_turns) == (None, True)
    assert Agent(FakeModel(), memory_settings=settings).memory_manager is None


@row("operator-use", "`prefetch`, `on_turn_complete` and")
async def _(folder):
    called = []

    class Mine(BaseMemoryProvider):
        async def prefetch(self, query, *, session_id=""):
            called.append("prefetch")
            return ""

        async def queue_prefetch(self, query, *, session_id=""):
            called.append("queue_prefetch")

        async def on_turn_complete(self, user, assistant, *, session_id=""):
            called.append("on_turn_complete")

        async def on_session_end(self, messages):
            called.append("on_session_end")

        async def on_pre_compact(self, messages):
            called.append("on_pre_compact")

        async def shutdown(self):
            called.append("shutdown")

    model = FakeModel(["Yes."] * 3)
    async with Agent(
        model, memory_manager=Mine(), conversation_manager="sliding_window:2", checkpointer="memory"
    ) as agent:
        for _ in range(3):
            await agent.run("Hi.", "t")
    assert set(called) == {
        "prefetch", "queue_prefetch", "on_turn_complete", "on_session_end", "on_pre_compact",
        "shutdown",
    }  # fmt: skip
    assert callable(BaseMemoryProvider().on_memory_write)


class Notes:
    async def prefetch(self, query, *, session_id=""):
        return "recalled context for: " + query

    async def on_turn_complete(self, user_content, assistant_content, *, session_id=""):
        pass


@row("operator-use", "`BaseMemoryAPI`")
async def _(folder):
    model = FakeModel(["Yes."])
    await Agent(model, memory_manager=Notes()).run("Hi.")
    assert "recalled context for: Hi." in model.calls[0][-1].content


@row("operator-use", "`register_memory_provider`")
async def _(folder):
    provider = MemoryProvider(
        id="my-memory", name="My Memory", api="my_memory_api", options=MemoryOptions()
    )
    undo = [
        register_memory_api("my_memory_api", Notes),
        register_memory_provider(provider),
    ]
    assert isinstance(get_memory_manager("my-memory").provider, Notes)
    for each in undo:
        each()


async def used(tool: Tool, **arguments):
    result = await tool.run(ToolCall(id="1", name=tool.spec.name, arguments=arguments))
    assert result.error is None
    return str(result.content)


@row("operator-use", "the tool `memory`")
async def _(folder):
    manager = LLMMemoryManager("memory")
    tool = memory_tool(manager)
    await used(tool, action="remember", content="Ada likes tea.")
    found = json.loads(await used(tool, action="search", query="tea"))
    [fact] = found["results"] if isinstance(found, dict) else found
    [kept] = await manager.retrieve()
    await used(tool, action="forget", memory_id=fact["id"])
    assert await manager.retrieve() == []
    await manager.undo(kept.key)
    assert [each.content for each in await manager.retrieve()] == ["Ada likes tea."]


@row("operator-use", "`memories.jsonl`")
async def _(folder):
    line = {
        "id": "0123456789abcdef0123456789abcdef",
        "content": "Ada likes tea.",
        "source": "turn",
        "created_at": "2024-03-01T10:00:00+00:00",
        "created_ts": 1709287200.0,
    }
    async with LLMMemoryManager("memory") as manager:
        assert len(await manager.import_facts([line])) == 1
        [back] = [fact async for fact in manager.export_facts()]
        assert {name: back[name] for name in line if name != "created_at"} == {
            name: line[name] for name in line if name != "created_at"
        }
        assert back["created_at"].startswith("2024-03-01T10:00:00")


@row("operator-use", "0.7 overlap")
async def _(folder):
    async with LLMMemoryManager("memory", blend="recency") as manager:
        await manager.remember("Ada likes tea.")
        assert len(await manager.retrieve(5, "tea")) == 1


@row("operator-use", "`MemoryConsolidateWorkflow`")
async def _(folder):
    async def nonsense(messages):
        return Message.assistant("[]")

    async with LLMMemoryManager("memory") as manager:
        for number in range(3):
            await manager.remember(f"Ada likes tea, cup {number}.")
        await manager.consolidate_facts(nonsense)
        assert len(await manager.retrieve()) == 3


# Osaurus


@row("Osaurus", "`memory.sqlite`")
async def _(folder):
    """Its test is `tests/cli/foreign/test_family.py`; here, an encrypted file."""
    from locus_memory.errors import ConfigurationError  # noqa: PLC0415
    from locus_memory.integrations.mem0.osaurus import open_osaurus  # noqa: PLC0415

    (folder / "memory.sqlite").write_bytes(bytes(range(1, 255)) * 40)
    with (
        pytest.raises(ConfigurationError, match="not a database of Osaurus"),
        open_osaurus("memory.sqlite"),
    ):
        pass


@row("Osaurus", "overrides")
async def _(folder):
    async with LLMMemoryManager("memory") as manager:
        await manager.identity.add("Always reply in English.")
        model = FakeModel(["Yes."])
        await Agent(model, memory_manager=manager).run("17 times 23?")
        assert "Always reply in English." in str(model.calls[0])


@row("Osaurus", "pinned facts")
async def _(folder):
    async with LLMMemoryManager("memory") as manager:
        await manager.add("I live in Vienna.")
        await manager.add("I live in Graz now.")
        [home] = [each for each in await manager.retrieve() if each.key == "home"]
        assert home.content == "The user lives in Graz."
        assert len(await manager.history("home")) >= 1


@row("Osaurus", "episodes")
async def _(folder):
    async with LLMMemoryManager("memory") as manager:
        assert await manager.episodes() == []


@row("Osaurus", "`search_memory(scope, query)`")
async def _(folder):
    async with LLMMemoryManager("memory") as manager:
        await manager.remember("Ada likes tea.")
        [tool] = memory_tools(manager)
        assert tool.spec.name == "search_memory"
        assert "Ada likes tea." in await used(tool, scope="facts", query="tea")
        for scope in ("notes", "transcript"):
            await used(tool, scope=scope, query="tea")


@row("Osaurus", "`POST /memory/ingest`")
async def _(folder):
    turns = [{"user": "I live in Vienna.", "assistant": "Noted."}]
    async with LLMMemoryManager("memory") as manager:
        only = await manager.ingest(
            "my-agent", "c", turns, session_date="2025-03-01", skip_extraction=True
        )
        assert (only["turns"], only["facts"]) == (1, 0)
        done = await manager.ingest("my-agent", "c", turns, session_date="2025-03-01")
        assert done["facts"] == 1


@row("Osaurus", "`memoryBudgetTokens`")
async def _(folder):
    assert LLMMemoryManager("memory", memory_budget_tokens=800) is not None
    from locus_memory.memory.options import MemoryOptions as Options  # noqa: PLC0415

    assert Options().memory_budget_tokens == 4_000


@row("Osaurus", "`relevanceGateMode`")
async def _(folder):
    from locus_memory.memory.options import MemoryOptions as Options  # noqa: PLC0415

    assert (Options().gate, Options(gate="rules").gate) == ("off", "rules")


@row("Osaurus", "`summaryDebounceSeconds`")
async def _(folder):
    from locus_memory.memory.options import MemoryOptions as Options  # noqa: PLC0415

    assert (Options().session_idle, Options().retention) == (60, 365)


@row("Osaurus", "prepended to")
async def _(folder):
    model = FakeModel(["Yes."])
    async with LLMMemoryManager("memory") as manager:
        await manager.add("I live in Vienna.")
        prompt = "You are kind."
        await Agent(model, memory_manager=manager, system_prompt=prompt).run("Where do I live?")
    assert MemorySettings().placement == "user"


@row("Osaurus", "FTS5 queries")
async def _(folder):
    async with get_store("sqlite:./a.db") as store:
        await store.put(("a",), "k", "mulligatawny")
        assert len(await store.search(("a",), "mull*")) == 1
        assert await store.search(("a",), "*") == []


# Defaults


@row("Defaults", "`max_chain_depth=5`")
async def _(folder):
    """The figures are those of `tests/benchmarks/conversations.py`; here, their order."""
    sizes = {}
    for options in ({}, {"options": "locus"}):
        async with get_checkpointer("memory", **options) as checkpointer:
            lines = []
            for number in range(60):
                lines.append(f"{number} " + str([number * each % 997 for each in range(99)]))
                await checkpointer.save({"lines": lines}, "t")
            stats = await checkpointer.get_storage_stats("t")
            sizes[checkpointer.max_chain_depth] = stats["compressed_size"]
    assert set(sizes) == {5, 64}
    assert sizes[64] * 2 < sizes[5]


@row("Defaults", "`rrf_k=60`")
async def _(folder):
    assert HybridOptions().fusion == "weighted"
    assert HybridOptions.classic() == HybridOptions(fusion="rrf", k=60)
    assert get_documents("memory", options="openjarvis", kind="text").chunking.unit == "words"


@row("Defaults", "`min_score=.1`")
async def _(folder):
    best = reciprocal_rank_fusion([["a"], ["a"]], k=60)[0][1]
    assert best < 0.033
    assert ContextConfig().min_score == 0.5
    model = FakeModel(["Yes."])
    async with get_documents("memory", kind="text") as index:
        await index.store("Invoices are paid on the fifteenth.")
        agent = Agent(model, documents=index, document_context="openjarvis")
        asked = "Which invoices of the boat and of the house and of the office do I pay?"
        assert len((await agent.run(asked)).sources) == 1


@row("Defaults", "chunks of 512 words")
async def _(folder):
    assert ChunkConfig() == ChunkConfig(chunk_size=512, chunk_overlap=64, unit="tokens")
    text = "文書" * 3000
    counts = {}
    for options in ({}, {"options": "openjarvis"}):
        async with get_documents("memory", kind="text", **options) as index:
            counts[index.chunking.unit] = (await index.add(text)).chunks
    assert counts["words"] == 1 < counts["tokens"]


async def test_a_fused_index_has_the_verbs_of_openjarvis():
    async with fuse(get_documents("memory", kind="text"), get_documents("memory")) as both:
        one = await both.store("Invoices are paid on the fifteenth.", source="pay.md", metadata={})
        assert [each.source for each in await both.retrieve("invoice", top_k=5)] == ["pay.md"]
        assert (await both.delete(one), await both.clear()) == (True, 0)


async def test_an_index_has_the_verbs_of_openjarvis():
    with pytest.warns(DeprecationWarning, match="sqlite"):
        get_documents("memory", kind="sqlite")
    async with get_documents("memory", chunking=ChunkConfig(chunk_size=512)) as documents:
        one = await documents.store("Invoices are paid on the fifteenth.", source="a", metadata={})
        [found] = await documents.retrieve("When is an invoice paid?", top_k=5)
        assert (found.source, 0 < found.score <= 1) == ("a", True)
        assert len(await inject_context("When is an invoice paid?", [], documents)) == 1
        assert (await documents.delete(one), await documents.delete(one)) == (True, False)
        assert await documents.clear() == 0


async def test_a_blocking_index_is_asked_as_it_is():
    class Mine:
        def retrieve(self, query, *, top_k=5):
            return [SimpleNamespace(content="Rent is due on the first.", score=0.02, source="rent")]

    context = ContextConfig(min_score=0.01)
    agent = Agent(FakeModel(["On the first."]), documents=Mine(), document_context=context)
    assert [each.source for each in (await agent.run("When is rent due?")).sources] == ["rent"]
