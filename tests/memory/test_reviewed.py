"""Damaged and foreign records, expired memories, and searches that fail: what a run gets then."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from locus_memory.memory.forgetting.forget import forget
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.memory.scope import Scope

ADA = Scope(("locus_memory", "users", "ada"))
DERIVED = {"text": "Ada sails.", "at": "2026-01-01T00:00:00+00:00", "source": {}}


@pytest.mark.parametrize(
    "damaged",
    [
        {**DERIVED, "source": None},
        {**DERIVED, "text": " "},
        {"text": "Ada sails."},
        "Ada sails.",
        7,
    ],
)
async def test_a_damaged_identity_hides_no_memory_and_stops_no_pass(store, events, damaged):
    manager = LLMMemoryManager(store)
    await store.put(ADA.identity, "identity", {"overrides": [], "facts": [damaged]}, text="")
    ended = {"expires_at": "2020-01-01T00:00:00+00:00"}
    for user in ("ada", "bob"):
        facts = [Memory("user", "tea", "Likes tea."), Memory("user", "old", "Was here.", ended)]
        await manager.for_user(user).save(facts)
    assert "Likes tea." in str((await manager.for_user("ada").plan("Tea?")).block)
    passes = manager if store.capabilities.list_namespaces else manager.for_user("ada")
    assert (await passes.consolidate()).evicted == (2 if passes is manager else 1)
    assert "memory.record_unreadable" in events.names


async def test_erasing_a_user_takes_what_stands_at_their_name_and_no_more(store):
    """Items that another program put beside the memories."""
    manager = LLMMemoryManager(store)
    await manager.for_user("ada").save(Memory("user", "tea", "Ada likes tea."))
    await store.put(ADA.namespace, "note", {"text": "hers"})
    await store.put(("locus_memory", "queue", "x"), "note", {"text": "somebody's"})
    await forget(store, user_id="ada")
    assert await store.get(ADA.namespace, "note") is None
    assert await store.get(("locus_memory", "queue", "x"), "note") is not None
    assert [each async for each in manager.for_user("ada").memories()] == []


async def test_many_expired_memories_hide_no_more_than_they_take(store, clock):
    """It is looked once more for what they take the places of, and never without end."""
    manager = LLMMemoryManager(store, clock=clock)
    now = datetime.fromtimestamp(clock(), UTC).isoformat()
    await manager.save(Memory(MemoryType.USER, "live", "Tea with milk."))
    gone = [Memory(MemoryType.USER, f"k{n}", f"Tea {n}.", {"expires_at": now}) for n in range(60)]
    await manager.save(gone)
    clock.advance(10)
    assert [each.key for each in await manager.retrieve("tea", 5)] == ["live"]
    assert [each.key for each in await manager.retrieve(limit=5)] == ["live"]


async def test_a_manager_with_a_retrieve_of_its_own_prefetches_nothing_if_it_fails(events):
    class Own(LLMMemoryManager):
        async def retrieve(self, query=None, limit=None, **keywords):
            raise ValueError("no")

    assert await Own("memory").prefetch("tea") == ""
    assert events.names == ["memory.retrieve_failed"]
