"""Threads that begin with messages of another one."""

from __future__ import annotations

import pytest

from locus_memory.agent.loop import Agent
from locus_memory.chat.scripted import ScriptedModel
from locus_memory.memory.extraction.distillate import Distillate, NoteDraft
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.messages import Message
from locus_memory.state import AgentState

THREAD = ["one", "two", "three", "four"]


def run_of(texts, thread="t", *, system=False, **metadata):
    roles = (Message.user, Message.assistant)
    messages = [roles[n % 2](text) for n, text in enumerate(texts)]
    lead = [Message.system("You help.")] if system else []
    return AgentState(messages=(*lead, *messages), metadata={"thread_id": thread, **metadata})


def fork_of(thread, messages):
    return {"thread_id": thread, "messages": messages}


@pytest.mark.parametrize("shared", [2, 4])
async def test_what_the_parent_has_seen_is_not_read_again(make, scripted, shared):
    extractor = scripted((), [Memory(MemoryType.USER, "new", "New")])
    manager = make(extract_fn=extractor)
    await manager.on_session_end(run_of(THREAD))
    texts = [*THREAD[:shared], "new", "Noted"]
    await manager.on_session_end(run_of(texts, "f", forked_from=fork_of("t", shared)))
    assert extractor.texts[1] == ["new", "Noted"]
    (memory,) = await manager.retrieve()
    assert memory.metadata["thread_id"] == "f"
    assert memory.metadata["message_ids"] == [f"#{shared + 1}"]


async def test_what_the_parent_has_not_seen_is_read(make, scripted):
    extractor = scripted()
    manager = make(extract_fn=extractor)
    await manager.on_session_end(run_of(THREAD[:2]))
    await manager.on_session_end(run_of([*THREAD, "new"], "f", forked_from=fork_of("t", 4)))
    assert extractor.texts[1] == ["three", "four", "new"]


@pytest.mark.parametrize(("shared", "read"), [(2, 2), (3, 2), (4, 2)])
async def test_what_waits_in_the_parent_is_not_read_in_the_fork(make, scripted, shared, read):
    manager = make(extract_fn=scripted(), extract_mode="manual")
    await manager.on_session_end(run_of(THREAD[:2]))
    await manager.sync_now()
    await manager.on_session_end(run_of(THREAD))
    fork = run_of(THREAD[:shared], "f", forked_from=fork_of("t", shared))
    bounds = list(range(1, shared + 1))
    assert await manager.notes_of(fork, fork.messages, bounds) == (read, [])
    await manager.sync_now()
    assert await manager.notes_of(fork, fork.messages, bounds) == (shared, [])


class Noting:
    """An extractor that makes one note, of the messages at these positions."""

    name = "noting"

    def __init__(self, *sources):
        self.told = [NoteDraft("It rained.", sources=sources)]

    async def distill(self, messages, memories):
        told, self.told = self.told, []
        return Distillate(notes=told)

    async def extract(self, messages, memories):
        return []


@pytest.mark.parametrize(
    ("sources", "is_shown"), [((0, 1), True), ((1,), True), ((0, 2), False), ((0, 3), False)]
)
async def test_a_note_of_what_a_fork_has_not_is_of_its_parent(make, sources, is_shown):
    """Also if the fork has another message of the same number."""
    manager = make(extract_fn=Noting(*sources))
    await manager.on_session_end(run_of(THREAD))
    fork = run_of([*THREAD[:2], "new"], "f", forked_from=fork_of("t", 2))
    await manager.on_session_end(fork)
    for bound in (2, 3):
        read, lines = await manager.notes_of(fork, fork.messages, [bound])
        assert (read, len(lines)) == (bound, int(is_shown))


async def test_system_messages_are_not_counted(make, scripted):
    extractor = scripted()
    manager = make(extract_fn=extractor)
    await manager.on_session_end(run_of(THREAD, system=True))
    fork = run_of([*THREAD[:2], "new"], "f", system=True, forked_from=fork_of("t", 3))
    await manager.on_session_end(fork)
    assert extractor.texts[1] == ["new"]


async def test_a_fork_goes_on_as_any_thread_does(make, scripted, store):
    extractor = scripted()
    manager = make(extract_fn=extractor)
    await manager.on_session_end(run_of(THREAD))
    origin = fork_of("t", 4)
    await manager.on_session_end(run_of(THREAD, "f", forked_from=origin))
    assert len(extractor.calls) == 1
    texts = list(THREAD)
    for number in range(3):
        texts.append(f"new {number}")
        await manager.on_session_end(run_of(texts, "f", forked_from=origin))
        assert extractor.texts[-1] == [f"new {number}"]
    assert await store.list_keys(("locus_memory", "queue")) == []


async def test_only_a_parent_of_the_same_scope_counts(make, scripted):
    extractor = scripted()
    manager = make(extract_fn=extractor)
    await manager.on_session_end(run_of(THREAD, user_id="ana"))
    fork = run_of([*THREAD, "new"], "f", user_id="bob", forked_from=fork_of("t", 4))
    await manager.on_session_end(fork)
    assert extractor.texts[1] == [*THREAD, "new"]


@pytest.mark.parametrize(
    "origin",
    [
        "t",
        {},
        {"thread_id": "", "messages": 4},
        {"thread_id": 5, "messages": 4},
        {"thread_id": "t", "messages": "4"},
        {"thread_id": "t", "messages": -1},
        {"thread_id": "t", "messages": True},
        {"thread_id": "elsewhere", "messages": 4},
    ],
)
async def test_what_names_no_parent_does_not_count(make, scripted, events, origin):
    extractor = scripted()
    manager = make(extract_fn=extractor)
    await manager.on_session_end(run_of(THREAD))
    await manager.on_session_end(run_of(THREAD, "f", forked_from=origin))
    assert extractor.texts[1] == THREAD
    assert "memory.queue_failed" not in events.names


async def test_a_fork_of_the_agent_is_not_read_from_its_beginning(make, scripted):
    extractor = scripted()
    manager = make(extract_fn=extractor)
    async with Agent(ScriptedModel(), checkpointer="memory", memory_manager=manager) as agent:
        for number in range(3):
            await agent.run(f"hello {number}", "t")
        first = await agent.fork("t")
        second = await agent.fork(first)
        await agent.run("never mind", second)
        third = await agent.fork(second)
        await agent.run("good bye", third)
    assert [texts[0] for texts in extractor.texts] == [
        "hello 0",
        "hello 1",
        "hello 2",
        "never mind",
        "good bye",
    ]
    assert {len(texts) for texts in extractor.texts} == {2}
