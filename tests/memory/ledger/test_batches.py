"""Several changes written together."""

from __future__ import annotations

import pytest

from locus_memory.memory.models import Memory, MemoryChange, MemoryType
from locus_memory.messages import Message
from locus_memory.state import AgentState

USER, PROJECT = MemoryType.USER, MemoryType.PROJECT
BERLIN = "The user lives in Berlin."


def owner(key, name):
    return Memory(PROJECT, key, f"{name} owns billing.")


async def current(manager):
    return {memory.key: memory.content for memory in await manager.retrieve()}


@pytest.mark.parametrize("add_first", [True, False])
async def test_a_fact_may_be_given_another_key(make, scripted, add_first):
    add = MemoryChange(op="add", type=USER, key="home:city", content=BERLIN)
    delete = MemoryChange(op="delete", type=USER, key="home")
    manager = make(extract_fn=scripted([add, delete] if add_first else [delete, add]))
    await manager.save([Memory(USER, "home", BERLIN)])
    await manager.on_session_end(AgentState(messages=(Message.user("Hi"),)))
    assert await current(manager) == {"home:city": BERLIN}
    assert [memory.content for memory in await manager.history("home")] == [BERLIN]


async def test_what_a_key_said_before_may_move_to_another(make):
    manager = make()
    await manager.save([owner("owner", "Ada")])
    await manager.save([owner("previous-owner", "Ada"), owner("owner", "Bob")])
    assert await current(manager) == {
        "owner": "Bob owns billing.",
        "previous-owner": "Ada owns billing.",
    }


async def test_a_key_that_will_say_the_same_still_counts(make, events):
    manager = make()
    await manager.save([owner("owner", "Ada")])
    await manager.save([owner("second", "Ada"), owner("owner", "Ada")])
    assert await current(manager) == {"owner": "Ada owns billing."}
    assert len(events.of("memory.duplicate_dropped")) == 1


async def test_any_key_that_stays_makes_a_duplicate(make):
    manager = make()
    await manager.save([owner("a", "Ada"), owner("b", "Bob")])
    await manager.save([owner("b", "Ada")])
    await manager.save([owner("c", "Ada"), owner("a", "Cid")])
    assert await current(manager) == {"a": "Cid owns billing.", "b": "Ada owns billing."}


async def test_what_is_added_and_deleted_together_makes_no_duplicate(make, scripted):
    add = [
        MemoryChange(op="add", type=USER, key=key, content=BERLIN) for key in ("home", "home:city")
    ]
    delete = MemoryChange(op="delete", type=USER, key="home")
    manager = make(extract_fn=scripted([*add, delete]))
    await manager.on_session_end(AgentState(messages=(Message.user("Hi"),)))
    assert await current(manager) == {"home:city": BERLIN}
