"""Facts of the turn before, in the block of the next one."""

from __future__ import annotations

import pytest

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.backends.sqlite.store import SQLiteStore

TEA = "Ada drinks green tea in the garden."
FENCES = [f"Ticket {n} is about the garden fence." for n in range(30)]
NEXT = "What do I like about the garden fence?"


@pytest.fixture(params=["memory", "sqlite"])
async def world(request, make_world, clock, tmp_path):
    store = InMemoryStore(clock=clock)
    if request.param == "sqlite":
        store = SQLiteStore(tmp_path / "m.db", clock=clock)
    made = make_world(store, retrieve_limit=3)
    await made.knows(TEA, *FENCES, kind="project")
    return made


def facts(block):
    return [line for line in (block or "").splitlines() if line.startswith("- ")]


async def test_facts_of_the_turn_before_come_first(world):
    assert TEA not in await world.block(NEXT, thread_id="t")
    await world.manager.queue_prefetch("Is there green tea in the garden?", session_id="t")
    lines = facts(await world.block(NEXT, thread_id="t"))
    assert TEA in lines[0]
    assert len(lines) == 3
    block = await world.manager.prefetch(NEXT, session_id="t")
    assert facts(block) == lines
    await world.manager.drain()
    assert f"project:{TEA[:40]}" in {i.key for i in await world.store.scan(world.scope.vitals)}


@pytest.mark.parametrize(
    ("text", "thread", "seconds"),
    [("What do I like about the fence?", "t", 0), (NEXT, "other", 0), (NEXT, "t", 61)],
)
async def test_other_words_another_thread_and_a_minute_end_it(world, text, thread, seconds):
    await world.manager.queue_prefetch("Is there green tea in the garden?", session_id="t")
    world.clock.advance(seconds)
    assert TEA not in await world.block(text, thread_id=thread)


@pytest.mark.parametrize("text", ["Translate 'garden' into Polish.", "Verbatim: garden?"])
async def test_the_gate_decides_first(world, text):
    await world.manager.queue_prefetch("Is there green tea in the garden?", session_id="t")
    assert await world.block(text, thread_id="t") is None


async def test_never_across_users(world):
    ada, bob = world.manager.for_user("ada"), world.manager.for_user("bob")
    await ada.save([memory async for memory in world.manager.memories()])
    await bob.save([m async for m in world.manager.memories() if "fence" in m.content])
    await ada.queue_prefetch("Is there green tea in the garden?", session_id="t")
    assert TEA in await world.block(NEXT, thread_id="t", user_id="ada")
    assert TEA not in await world.block(NEXT, thread_id="t", user_id="bob")


async def test_what_was_forgotten_meanwhile_is_not_shown(world):
    await world.manager.queue_prefetch("Is there green tea in the garden?", session_id="t")
    await world.manager.forget(TEA[:40])
    assert TEA not in await world.block(NEXT, thread_id="t")


async def test_without_the_passive_part_nothing_is_searched(make_world):
    world = make_world(passive=False)
    await world.knows(TEA)
    await world.manager.queue_prefetch("green tea", session_id="t")
    assert world.manager._warmed.names(world.scope, "t", "green tea") == ()
