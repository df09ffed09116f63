"""Taking changes back: which one it is, and what that does to the others."""

from __future__ import annotations

import pytest

from locus_memory.memory.models import Memory, MemoryChange, MemoryType
from locus_memory.messages import Message
from locus_memory.state import AgentState

USER, PROJECT = MemoryType.USER, MemoryType.PROJECT


def fact(key, content, kind=USER, **metadata):
    return Memory(kind, key, content, metadata)


@pytest.fixture
def saved(make, clock):
    """Saves contents of types under one key, a minute apart."""

    async def save(*facts, **options):
        manager = make(**options)
        for content, kind in facts:
            await manager.save([fact("k", content, kind)])
            clock.advance(60)
        return manager

    return save


async def current(manager):
    return {(memory.type, memory.key): memory.content for memory in await manager.retrieve()}


async def test_what_is_brought_back_takes_the_place_of_another(make, clock, events):
    manager = make(max_memories=2)
    for number in range(3):
        await manager.save([fact(f"k{number}", f"Number {number}")])
        clock.advance(60)
    assert (await manager.undo("k0")).content == "Number 0"
    assert set(await current(manager)) == {(USER, "k0"), (USER, "k2")}
    assert events.of("memory.evicted")[-1].attributes == {"type": "user", "key": "k1"}
    assert (await manager.undo("k1")).content == "Number 1"
    assert len(await current(manager)) == 2


async def test_what_is_brought_back_stays_however_little_it_is_worth(make):
    manager = make(max_memories=1)
    await manager.save([fact("low", "Low one", importance=0.1)])
    await manager.save([fact("high", "High one", importance=0.9)])
    assert (await manager.undo("low")).content == "Low one"
    assert await current(manager) == {(USER, "low"): "Low one"}


async def test_without_a_type_one_change_after_another_is_taken_back(saved):
    manager = await saved(("Oslo", USER), ("Site", PROJECT), ("Rome", USER), ("Lab", PROJECT))
    assert (await manager.undo("k")).content == "Site"
    assert (await manager.undo("k")).content == "Oslo"
    assert await manager.undo("k") is None
    assert await current(manager) == {(USER, "k"): "Oslo"}
    assert await manager.undo("k") is None
    assert await current(manager) == {}
    assert await manager.undo("k") is None


async def test_a_deletion_is_the_latest_change(make, scripted, clock):
    delete = MemoryChange(op="delete", type=USER, key="k")
    manager = make(extract_fn=scripted([delete]))
    await manager.save([fact("k", "Oslo")])
    clock.advance(60)
    await manager.save([fact("k", "Site", PROJECT)])
    clock.advance(60)
    await manager.on_session_end(AgentState(messages=(Message.user("Forget it"),)))
    assert (await manager.undo("k")).content == "Oslo"
    assert await manager.undo("k") is None
    assert await current(manager) == {(USER, "k"): "Oslo"}


async def test_a_type_with_nothing_left_to_take_back_is_passed_over(saved):
    manager = await saved(
        ("Site", PROJECT), ("Oslo", USER), ("Rome", USER), ("Bern", USER), history_limit=1
    )
    assert (await manager.undo("k")).content == "Rome"
    assert await manager.undo("k") is None
    assert await current(manager) == {(USER, "k"): "Rome"}
