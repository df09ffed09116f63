"""Runs, threads and messages that are off the record: in their checkpoint and nowhere else."""

from __future__ import annotations

import pytest

from locus_memory import Agent, LLMMemoryManager, Memory, Message, SummarizingManager, ToolCall
from locus_memory.agent import ResourceSettings, memory_tool, resource_tools
from locus_memory.chat.scripted import ScriptedModel
from locus_memory.memory.providers import BaseMemoryProvider
from locus_memory.registry import get_checkpointer, get_store
from locus_memory.resources.tree import MemoryTree
from locus_memory.state import AgentState
from locus_memory.sync import blocking
from locus_memory.testing import FakeModel

SECRET = "I am secretly moving to Zanzibar."
OPEN = "I live in Vienna."


@pytest.fixture(params=["memory", "sqlite:memory.db"])
async def store(request):
    async with get_store(request.param) as made:
        yield made


class Reading:
    """An extractor that notes the texts that it was given, and finds nothing."""

    name = "reading"

    def __init__(self):
        self.read = []

    async def extract(self, messages, memories):
        self.read += [each.content for each in messages]
        return []


async def held(store):
    """Return all that a store has: each item with its version and its moment."""
    found = []
    for namespace in await store.list_namespaces(limit=1_000):
        found += await store.scan(namespace, 1_000)
    return [(each.namespace, each.key, each.value, each.version, each.updated_at) for each in found]


def agent_of(store, model=None, checkpointer="memory", **options):
    options = {"extract_mode": "session_end", **options}
    manager = LLMMemoryManager(store, **options)
    return Agent(model or ScriptedModel(), checkpointer=checkpointer, memory_manager=manager)


async def test_a_run_is_in_its_checkpoint_and_nowhere_else(store):
    agent = agent_of(store)
    await agent.run(OPEN, "before")
    await agent.run("Where do I live?", "t")
    await agent.memory_manager.drain()
    before = await held(store)
    result = await agent.run(SECRET, "t", remember=False)
    shown = await agent.run("Where do I live?", "t", remember=False)
    assert await agent.memory_manager.drain() == 0
    assert await held(store) == before
    assert "Vienna" in shown.text
    assert [each.metadata for each in result.messages] == [{"remember": False}] * 2
    kept = (await agent.state("t")).messages
    assert SECRET in [each.content for each in kept]


async def test_what_is_known_is_shown_to_a_new_thread_and_no_block_of_it_is_kept(store):
    model = FakeModel(["Yes."])
    agent = agent_of(store, model, extract_fn=Reading())
    await agent.memory_manager.save(Memory("user", "home", "Ada lives in Vienna."))
    before = await held(store)
    await agent.run("Where do I live?", "t", remember=False)
    await agent.memory_manager.drain()
    assert "Vienna" in (model.calls[0][0].content or "")
    assert await held(store) == before


async def test_a_use_is_counted_on_the_record_only(store):
    agent = agent_of(store, FakeModel(["Yes."] * 4))
    # What a tool said stands in the tail, where a use counts.
    memory = Memory("user", "tea", "The best tea shop is in Graz.", {"origin": "tool"})
    await agent.memory_manager.save(memory)

    async def uses():
        await agent.memory_manager.drain()
        return (await agent.memory_manager.vitals([memory]))[0].use_count

    await agent.run("Which tea shop is best?", "t", remember=False)
    assert await uses() == 0
    await agent.run("Which tea shop is best?", "t", remember=True)
    assert await uses() == 1


@pytest.mark.parametrize("mode", ["inline", "background", "sessions"])
async def test_a_thread_that_goes_on_is_extracted_without_it(store, mode):
    reading = Reading()
    options = {"extract_mode": "session_end"}
    if mode != "sessions":
        options = {"extract_mode": mode}
    agent = agent_of(store, FakeModel(["One.", "Two?", "Three."]), extract_fn=reading, **options)
    await agent.run(OPEN, "t")
    await agent.run(SECRET, "t", remember=False)
    await agent.run("I eat fish.", "t")
    await agent.memory_manager.drain()
    assert [*dict.fromkeys(reading.read)] == [OPEN, "One.", "I eat fish.", "Three."]
    assert "Zanzibar" not in str(await held(store))


async def test_a_thread_that_begins_so_stays_so_until_told_otherwise(store):
    reading = Reading()
    agent = agent_of(store, FakeModel(["a", "b", "c", "d", "e"]), extract_fn=reading)
    await agent.run("one", "t", remember=False)
    assert (await agent.state("t")).metadata["remember"] is False
    await agent.run("two", "t")
    fork = await agent.fork("t", new_thread_id="fork")
    await agent.run("three", "t", remember=True)
    await agent.run("four", "t")
    await agent.run("five", fork)
    await agent.memory_manager.drain()
    assert reading.read == ["three", "c", "four", "d"]


async def test_a_run_amid_a_thread_is_only_that_run(store):
    reading = Reading()
    agent = agent_of(store, FakeModel(["a", "b", "c"]), extract_fn=reading)
    await agent.run("one", "t", metadata={"remember": "the milk"})
    await agent.run("two", "t", remember=False)
    await agent.run("three", "t", remember=None)
    await agent.memory_manager.drain()
    assert reading.read == ["one", "a", "three", "c"]
    assert (await agent.state("t")).metadata["remember"] == "the milk"


async def test_the_metadata_of_a_thread_says_it_as_well(store):
    agent = agent_of(store, extract_fn=Reading())
    await agent.run(SECRET, "t", metadata={"remember": False})
    await agent.memory_manager.drain()
    assert await held(store) == []


async def test_a_stream_is_off_the_record(store):
    agent = agent_of(store)
    async for _ in agent.stream(SECRET, "t", remember=False):
        pass
    assert await held(store) == []


def test_so_is_a_blocking_run(tmp_path):
    with blocking(Agent(ScriptedModel(), memory_manager=f"sqlite:{tmp_path / 'a.db'}")) as agent:
        agent.run(SECRET, "t", remember=False)
        assert agent.run("Where am I moving?", "u").text == "I do not know."


async def test_a_run_that_is_resumed_in_another_process_is_still_off_the_record(store):
    async def broken(messages):
        raise OSError("no network")

    broken.follows_instructions = False
    async with get_checkpointer("sqlite:threads.db") as threads:
        agent = agent_of(store, broken, threads)
        with pytest.raises(OSError, match="no network"):
            await agent.run(SECRET, "t", remember=False)
    async with get_checkpointer("sqlite:threads.db") as threads:
        agent = agent_of(store, checkpointer=threads)
        result = await agent.resume("t")
        assert result.messages[0].metadata["remember"] is False
    assert await held(store) == []


class Told(BaseMemoryProvider):
    """A provider that notes all that it is told."""

    def __init__(self):
        self.told = []

    async def prefetch(self, query, *, session_id=""):
        self.told.append(query)
        return "Ada likes tea."

    async def queue_prefetch(self, query, *, session_id=""):
        self.told.append(query)

    async def on_turn_complete(self, user, assistant, *, session_id=""):
        self.told += [user, assistant]

    async def on_session_end(self, messages):
        self.told += [each.content for each in messages]

    async def on_pre_compact(self, messages):
        self.told += [each.content for each in messages]


class Hooks(Told):
    """A manager of somebody else: what it is shown stays in the process."""

    def on_session_start(self, state):
        return state

    async def on_session_end(self, state):
        self.told += [each.content for each in state.messages]


class LastOne:
    def apply(self, messages):
        return messages[-1:]


@pytest.mark.parametrize("kind", [Told, Hooks])
async def test_no_provider_is_told(kind):
    provider = kind()
    agent = Agent(
        FakeModel(["a", "b", "c"]),
        checkpointer="memory",
        memory_manager=provider,
        conversation_manager=LastOne(),
    )
    async with agent:
        await agent.run("one", "t")
        said = list(provider.told)
        await agent.run("two", "t", remember=False)
        assert [each for each in provider.told if each in ("two", "b")] == []
        assert set(provider.told) - set(said) <= {"one", "a"}
        await agent.run("three", "t")
    if kind is Told:
        assert {"two", "b"}.isdisjoint(provider.told)
    assert {"one", "a", "three", "c"} <= set(provider.told)


@pytest.mark.parametrize("commit", ["run", "close"])
async def test_no_session_of_resources_has_it(store, commit):
    tree = MemoryTree(store)
    await tree.write("memory://boat", "# Mast\n\nThe mast is of spruce.")
    model = FakeModel(["Spruce.", "Noted.", "Good."])
    agent = Agent(
        model,
        checkpointer="memory",
        resources=tree,
        resource_settings=ResourceSettings(commit=commit),
    )
    before = await held(store)
    await agent.run("Will the mast be in Zanzibar?", "t", remember=False)
    assert "spruce" in (model.calls[0][-1].content or "")
    assert await held(store) == before
    await agent.run("I live in Berlin.", "t", remember=True)
    await agent.close()
    everything = str(await held(store))
    assert "Berlin" in everything
    assert "Zanzibar" not in everything


async def test_a_tool_that_writes_is_refused_and_one_that_reads_is_not(store):
    manager = LLMMemoryManager(store)
    await manager.save(Memory("user", "home", "Ada lives in Vienna."))
    calls = [
        ToolCall(name="memory", arguments={"action": "search", "query": "Where does Ada live?"}),
        ToolCall(name="memory", arguments={"action": "remember", "content": SECRET}),
        ToolCall(name="write_resource", arguments={"uri": "memory://a/b", "content": "Zanzibar"}),
    ]
    model = FakeModel([Message.assistant(tool_calls=calls), "Done."] * 2)
    tools = [memory_tool(manager), *resource_tools(MemoryTree(store), write=True)]
    agent = Agent(model, tools=tools, checkpointer="memory")
    before = await held(store)
    result = await agent.run("Remember my plans.", "t", remember=False)
    told = {each.content for each in result.messages if each.role == "tool"}
    assert any("Vienna" in each for each in told)
    assert sum("off the record" in each for each in told) == 2
    assert await held(store) == before
    await agent.run("Remember my plans.", "t", remember=True)
    assert "Zanzibar" in str(await held(store))


async def test_no_summary_that_outlives_the_thread_tells_it(store):
    def summarize(messages):
        return " / ".join(each.content for each in messages)

    texts = []
    for remember in (True, False):
        manager = SummarizingManager(4, 2, summarize, store=store)
        model = FakeModel(["ok"] * 4)
        agent = Agent(model, checkpointer="memory", conversation_manager=manager)
        for n, text in enumerate([f"first {remember}", SECRET, "three", "four"]):
            await agent.run(text, "t", remember=remember if n == 1 else None)
        assert "Zanzibar" in str(model.calls[-1])
        texts.append(str(await held(store)))
    assert "Zanzibar" in texts[0]
    assert texts[1] == texts[0]


async def test_a_message_of_a_loop_of_ones_own_is_off_the_record(store):
    reading = Reading()
    manager = LLMMemoryManager(store, extract_fn=reading, extract_mode="session_end")
    said = [
        Message.user(OPEN),
        Message.assistant("Good."),
        Message.user(SECRET).model_copy(update={"metadata": {"remember": False}}),
        Message.assistant("Whereto?").model_copy(update={"metadata": {"remember": False}}),
        Message.user("I eat fish."),
    ]
    await manager.on_session_end(AgentState(messages=said, metadata={"thread_id": "t"}))
    written = {"role": "user", "content": SECRET, "metadata": {"remember": False}}
    assert await manager.add([written], thread_id="u") == 0
    await manager.drain()
    assert reading.read == [OPEN, "Good.", "I eat fish."]
    await manager.extract(said)
    assert SECRET not in reading.read


async def test_what_a_state_off_the_record_adds_is_passed_for_ever(store):
    reading = Reading()
    manager = LLMMemoryManager(store, extract_fn=reading, extract_mode="session_end")
    said = []
    for text, remember in ((OPEN, True), (SECRET, False), ("Wow.", False), ("I eat fish.", True)):
        said += [Message.user(text), Message.assistant(f"And {text[-5:]}?")]
        metadata = {"thread_id": "t", "remember": remember}
        state = AgentState(messages=said, metadata=metadata)
        assert (await manager.on_session_start(state)).messages == state.messages
        before = await held(store)
        await manager.on_session_end(state)
        changed = [each for each in await held(store) if each not in before]
        # Of what is passed, only the place is kept.
        assert {each[0][-1] for each in changed} == {"cursors"} or remember
        await manager.drain()
    assert reading.read == [OPEN, "And enna.?", "I eat fish.", "And fish.?"]
    assert "Zanzibar" not in str(await held(store))
