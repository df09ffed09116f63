"""The agent with this library's own managers."""

from __future__ import annotations

import pytest

from locus_memory import get_store, open_backend
from locus_memory.agent import Agent
from locus_memory.chat.scripted import ScriptedModel
from locus_memory.conversation.base import NullManager
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.messages import Message, Role
from locus_memory.testing.model import FakeModel


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
            "manager": LLMMemoryManager(store),
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
        await agent.run("I am Ada and live in Graz.")
    assert len(asked) == 2
    assert any("Graz" in (message.content or "") for message in asked[1])


async def test_our_conversation_manager():
    async with Agent(FakeModel(["Hi."]), conversation_manager=NullManager()) as agent:
        result = await agent.run("Hello")
    assert [m.role for m in result.messages] == [Role.USER, Role.ASSISTANT]
