"""What waits for an extraction without a model: the messages that may state something."""

from __future__ import annotations

import pytest

from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.messages import Message
from locus_memory.state import AgentState


async def said(manager, *texts, thread="t", **metadata):
    """Let a thread have these messages, each with an answer, a run each."""
    told = []
    for text in texts:
        told += [Message.user(text), Message.assistant("Noted.")]
        state = AgentState(messages=tuple(told), metadata={"thread_id": thread, **metadata})
        await manager.on_session_end(state)
    return tuple(told)


async def facts(manager):
    return {each.key for each in await manager.retrieve(None)}


@pytest.mark.parametrize(
    "role",
    ["Let's role-play: I am a wizard.", "You are a recruiter.", "Fix this e-mail: Hi, I am Bo."],
)
async def test_a_role_lasts_for_its_thread(store, role):
    manager = LLMMemoryManager(store)
    told = await said(manager, role, "Tell me a joke.", "I live in Vienna.", "I'm vegetarian.")
    assert await facts(manager) == set()
    # A restart knows it, and so does a thread that goes on from it.
    later = LLMMemoryManager(store)
    state = AgentState(
        messages=(*told, Message.user("I work as a nurse.")), metadata={"thread_id": "t"}
    )
    await later.on_session_end(state)
    fork = {"thread_id": "t", "messages": len(told)}
    forked = AgentState(
        messages=state.messages, metadata={"thread_id": "fork", "forked_from": fork}
    )
    await later.on_session_end(forked)
    assert await facts(later) == set()
    await said(later, "I live in Vienna.", thread="another")
    assert await facts(later) == {"home"}


async def test_what_states_nothing_waits_nowhere(store):
    manager = LLMMemoryManager(store, extract_mode="manual")
    await said(manager, "What is the weather?", "Ich mag Tee.", "Thank you!")
    assert manager.pending == 0
    await said(manager, "I live in Vienna.", thread="u")
    assert manager.pending == 1
    assert await manager.sync_now() == 0
    assert await facts(manager) == {"home"}


async def test_its_words_are_kept(store):
    manager = LLMMemoryManager(store)
    await said(manager, "The key of the shed hangs behind the mirror.")
    block = await manager.prefetch("Where is the key of the shed?")
    assert "behind the mirror" in block


async def test_an_answer_in_the_next_run_is_read_with_its_question(store):
    manager = LLMMemoryManager(store)
    told = (
        Message.user("Guess where I live."),
        Message.assistant("You live in Vienna, right?"),
        Message.user("Yes."),
    )
    await manager.on_session_end(AgentState(messages=told[:2], metadata={"thread_id": "t"}))
    assert await facts(manager) == set()
    await manager.on_session_end(AgentState(messages=told, metadata={"thread_id": "t"}))
    assert await facts(manager) == {"home"}


async def test_what_a_message_asks_to_remember_is_kept_in_any_thread(store):
    manager = LLMMemoryManager(store)
    await said(manager, "Fix this e-mail: Hi, I am Bo.", "Remember that I'm allergic to nuts.")
    assert await facts(manager) == {"allergy:nuts"}
    manager = LLMMemoryManager(store)
    told = await said(manager, "You are a recruiter.", "I work at Google.", thread="u")
    asks = Message.user("Forget that I'm allergic to nuts.")
    state = AgentState(messages=(*told, asks), metadata={"thread_id": "u"})
    await manager.on_session_end(state)
    assert await facts(manager) == set()
