"""How long a memory may be."""

from __future__ import annotations

import pytest

from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.extraction import extraction
from locus_memory.memory.models import Memory, MemoryChange, MemoryType
from locus_memory.messages import Message
from locus_memory.state import AgentState

USER = MemoryType.USER


def fact(key, content):
    return Memory(USER, key, content)


def said(text):
    return AgentState(messages=(Message.user(text),))


async def contents(manager):
    return [memory.content for memory in await manager.retrieve()]


@pytest.mark.parametrize(
    "change",
    [
        MemoryChange(op="add", type=USER, key="long", content="x" * 2001),
        fact("long", "x" * 100_000),
        fact("k" * 2001, "Long name"),
        MemoryChange(op="delete", type=USER, key="\ud800"),
    ],
)
async def test_what_is_too_long_is_refused_before_it_is_searched(
    make, scripted, events, monkeypatch, change
):
    searched = []
    monkeypatch.setattr(extraction, "find_secret", searched.append)
    manager = make(extract_fn=scripted([change, fact("tea", "Likes tea")]))
    await manager.on_session_end(said("I like tea"))
    assert await contents(manager) == ["Likes tea"]
    assert searched == ["Likes tea", "tea"]
    (event,) = events.of("memory.change_refused")
    assert isinstance(event.error, InvalidArgumentError)


async def test_as_much_as_may_be_is_extracted(make, scripted):
    manager = make(extract_fn=scripted([fact("long", "x" * 2000)]))
    await manager.on_session_end(said("A long story"))
    assert await contents(manager) == ["x" * 2000]


async def test_what_is_too_long_is_not_saved(make):
    manager = make()
    with pytest.raises(InvalidArgumentError, match="20,000 characters"):
        await manager.save([fact("a", "One"), fact("b", "x" * 20_001)])
    with pytest.raises(InvalidArgumentError, match="key"):
        await manager.save([fact("k" * 20_001, "One")])
    assert await manager.retrieve() == []
    await manager.save([fact("b", "x" * 20_000)])
    assert await contents(manager) == ["x" * 20_000]


async def test_what_is_stored_is_read_however_long(make, store):
    place = ("locus_memory", "current")
    await store.put(place, "user:long", fact("long", "x" * 30_000).to_store_value())
    manager = make()
    assert await contents(manager) == ["x" * 30_000]
    await manager.save([fact("long", "Short")])
    assert (await manager.undo("long")).content == "x" * 30_000
