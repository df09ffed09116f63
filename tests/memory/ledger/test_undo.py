"""Taking changes back: which one it is, and what that does to the others."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.memory.ledger.ledger import Retirement
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.testing import FakeClock

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


async def test_what_an_earlier_version_evicted_is_brought_back(make, store):
    """Databases of a version that evicted by count have endings of this kind."""
    manager = make(max_memories=1)
    await manager.save([fact("old", "Old one"), fact("new", "New one")])
    item = await store.get_item(("locus_memory", "current"), "user:old")
    ended = {
        "superseded_at": item.value["metadata"]["valid_from"],
        "superseded_by": {"type": "user", "key": "old", "change": "evict"},
    }
    value = {**item.value, "metadata": {**item.value["metadata"], **ended}}
    await store.put(("locus_memory", "history", "user", "old"), "000000000001", value)
    await store.delete(("locus_memory", "current"), "user:old")
    assert [each.content for each in await manager.history("old")] == ["Old one"]
    assert (await manager.undo("old")).content == "Old one"
    assert {each.key async for each in manager.memories()} == {"old", "new"}
    assert await manager.undo("old") is None


async def test_a_type_with_nothing_left_to_take_back_is_passed_over(saved):
    manager = await saved(
        ("Site", PROJECT), ("Oslo", USER), ("Rome", USER), ("Bern", USER), history_limit=1
    )
    assert (await manager.undo("k")).content == "Rome"
    assert await manager.undo("k") is None
    assert await current(manager) == {(USER, "k"): "Rome"}


_STEPS = st.lists(
    st.tuples(
        st.sampled_from([MemoryType.USER, MemoryType.PROJECT, MemoryType.REFERENCE]),
        st.booleans(),
        st.sampled_from([0.0, 60.0, -60.0, 3_600.0, -3_600.0]),
    ),
    max_size=8,
)


@given(_STEPS)
def test_whatever_the_clock_says_the_last_change_is_taken_back_first(steps):
    """Of all types that have the key."""

    async def work():
        clock = FakeClock()
        manager = LLMMemoryManager(InMemoryStore(), clock=clock)
        ledger, scope = manager._ledger, manager._scope
        known, before = {}, []
        for number, (kind, deletes, passed) in enumerate(steps):
            if deletes and kind not in known:
                continue
            before.append(dict(known))
            if deletes:
                await ledger.apply(scope, [Retirement(kind, "k")])
                del known[kind]
            else:
                known[kind] = f"Fact {number}"
                await manager.save([Memory(kind, "k", known[kind])])
            clock.advance(passed)
        while before:
            await manager.undo("k")
            found = {each.type: each.content for each in await manager.retrieve()}
            assert found == before.pop()
        assert await manager.undo("k") is None

    asyncio.run(work())
