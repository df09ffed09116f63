"""The agent with this library's own managers."""

from __future__ import annotations

from itertools import pairwise

import pytest

from locus_memory import get_store, open_backend
from locus_memory.agent.loop import Agent
from locus_memory.chat.scripted import ScriptedModel
from locus_memory.conversation.base import NullManager
from locus_memory.conversation.summary.manager import SummarizingManager
from locus_memory.conversation.validation import validate
from locus_memory.conversation.window import SlidingWindowManager
from locus_memory.memory.base import NoopMemoryManager
from locus_memory.memory.models import Memory
from locus_memory.memory.providers.settings import MemorySettings
from locus_memory.messages import Message, Role


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


async def test_facts_outlive_the_process_and_the_thread():
    options = {"checkpointer": "sqlite:agent.db", "memory_manager": "sqlite:agent.db"}
    async with Agent(ScriptedModel(), **options) as agent:
        told = await agent.run("I live in Vienna.", "monday", user_id="ada")
    async with Agent(ScriptedModel(), **options) as agent:
        asked = await agent.run("Where do I live?", "friday", user_id="ada")
        stranger = await agent.run("Where do I live?", "sunday", user_id="bob")
        assert "Vienna" in asked.text
        assert stranger.text == "I do not know."
        (memory,) = await agent.memory_manager.for_user("ada").retrieve()
        assert memory.metadata["thread_id"] == "monday"
        assert memory.metadata["message_ids"] == [told.messages[0].id]
        for result in (asked, stranger):
            assert "system" not in {m.role for m in result.state.messages}


@pytest.mark.parametrize("kind", ["string", "store", "backend", "manager"])
async def test_ways_to_give_a_memory(kind):
    async with open_backend("sqlite:agent.db") as backend, get_store("memory") as store:
        given = {
            "string": "memory",
            "store": store,
            "backend": backend,
            "manager": NoopMemoryManager(),
        }[kind]
        async with Agent(ScriptedModel(), memory_manager=given) as agent:
            await agent.run("My name is Ada.")
            result = await agent.run("What is my name?")
            assert ("Ada" in result.text) is (kind != "manager")
        assert await store.list_keys(("still", "open")) == []


async def test_a_model_that_follows_instructions_extracts_by_itself():
    asked = []

    async def model(messages):
        asked.append(messages)
        return Message.assistant("[]" if len(asked) > 1 else "Hi.")

    async with Agent(model, memory_manager="memory") as agent:
        await agent.run(
            "I am Ada and live in Graz, where I teach chemistry to the children of a school."
        )
    assert len(asked) == 2
    assert any("Graz" in (message.content or "") for message in asked[1])


@pytest.mark.parametrize("manager", [NullManager(), SlidingWindowManager(4)])
async def test_what_the_model_sees_is_valid_and_begins_with_prompt_and_memories(manager):
    options = {"conversation_manager": manager, "memory_manager": "memory"}
    model = ScriptedModel()
    seen = []

    class Watched(ScriptedModel):
        async def __call__(self, messages, /, *, tools=()):
            seen.append(messages)
            return await model(messages, tools=tools)

    def add(a: int, b: int):
        return a + b

    agent = Agent(
        Watched(), system_prompt="Be brief.", tools=[add], checkpointer="memory", **options
    )
    async with agent:
        await agent.run("My name is Ada.", "t")
        for number in range(6):
            text = f"use add with a={number}, b=1 and use add with a={number}, b=2"
            result = await agent.run(text, "t")
            # Results come in the order in which the calls end.
            answers = [f"add: {number + 1}", f"add: {number + 2}"]
            assert sorted(result.text.splitlines()) == sorted(answers)
        assert (await agent.run("What is my name?", "t")).text.endswith("Ada.")
    for messages in seen:
        assert validate(messages) == []
        assert messages[0].content == "Be brief."
    asked = seen[-1][-1]
    assert asked.role == Role.USER
    assert asked.content.startswith("<memory>\n")
    assert "Ada" in asked.content
    assert asked.content.endswith("</memory>\n\nWhat is my name?")
    longest = max(map(len, seen))
    assert (longest > 20) is isinstance(manager, NullManager)


@pytest.mark.slow
async def test_each_message_is_summarised_once_whatever_is_remembered():
    asked = []

    def summarize(messages):
        asked.extend(m.content for m in messages if m.role != Role.SYSTEM)
        return f"{len(asked)} messages"

    manager = SummarizingManager(threshold=6, keep_recent=2, summarize_fn=summarize)
    async with Agent(
        ScriptedModel(),
        checkpointer="memory",
        memory_manager="memory",
        conversation_manager=manager,
    ) as agent:
        for number in range(20):
            await agent.run(f"My age is {number}.", "t")
    said = [text for text in asked if text != "Noted."]
    assert len(said) > 10
    assert len(said) == len(set(said))


async def test_the_prefix_of_consecutive_requests_is_the_same():
    seen = []

    async def model(messages):
        seen.append(messages)
        return Message.assistant(f"Answer {len(seen)}.")

    model.follows_instructions = False
    agent = Agent(model, system_prompt="Be brief.", checkpointer="memory", memory_manager="memory")
    questions = ["My name is Ada.", "What is my name?", "What is 17 times 23?", "Who am I?"]
    async with agent:
        for text in questions:
            result = await agent.run(text, "t")
    documents = [[message.model_dump_json() for message in request] for request in seen]
    for request, later in pairwise(documents):
        before = len(request) - 1
        assert later[:before] == request[:before]
    blocks = [request[-1].content.startswith("<memory>") for request in seen]
    assert blocks == [False, True, False, False]
    assert [m.content for m in result.state.messages if m.role == Role.USER] == questions


async def test_the_block_may_stand_after_the_system_prompt():
    seen = []

    async def model(messages):
        seen.append([message.role.value for message in messages])
        return Message.assistant("Hi.")

    model.follows_instructions = False
    options = {"system_prompt": "Be brief.", "checkpointer": "memory", "memory_manager": "memory"}
    settings = MemorySettings(placement="system")
    async with Agent(model, memory_settings=settings, **options) as agent:
        await agent.run("My name is Ada.", "t")
        await agent.run("What is my name?", "t")
    assert seen[-1][:2] == ["system", "system"]


async def test_a_sum_has_no_tail_and_a_rule_is_always_there():
    seen = []

    async def model(messages):
        seen.append([message.content for message in messages])
        return Message.assistant("391")

    model.follows_instructions = False
    async with Agent(model, memory_manager="memory") as agent:
        memory = agent.memory_manager
        await memory.save(Memory("user", f"n{n}", f"Ada noted {n}.") for n in range(60))
        await agent.run("What is 17 times 23?")
        await memory.save([Memory("feedback", "language", "Always answer in English.")])
        await agent.run("What is 17 times 24?")
    assert [request[-1] for request in seen] == ["What is 17 times 23?", "What is 17 times 24?"]
    assert "- feedback: Always answer in English." in seen[1][0]
    assert seen[1][0].count("Ada noted") == 60


async def test_a_summary_never_holds_the_block():
    texts = []

    def summarize(messages):
        texts.extend(message.content or "" for message in messages)
        return "summary"

    manager = SummarizingManager(threshold=4, keep_recent=2, summarize_fn=summarize)
    options = {"checkpointer": "memory", "memory_manager": "memory"}
    async with Agent(ScriptedModel(), conversation_manager=manager, **options) as agent:
        for number in range(8):
            await agent.run(f"My age is {number}.", "t")
            await agent.run("How old am I?", "t")
    assert texts
    assert not any("<memory>" in text for text in texts)
