"""Recall at an earlier moment, against a model of the history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.blend import Blend
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import EXPIRES_AT, Memory, MemoryType
from locus_memory.testing import FakeClock, FakeEmbedder

START = datetime(2026, 3, 1, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)
WORDS = ["tea", "coffee", "juice", "milk"]

steps = st.lists(
    st.tuples(
        st.sampled_from(["save", "delete", "undo", "forget"]),
        st.sampled_from(["user", "project"]),
        st.sampled_from(["a", "b"]),
        st.sampled_from(WORDS),
    ),
    max_size=12,
)


def clocked(**options):
    """Return a manager whose clock stands at the start, and the clock."""
    clock = FakeClock(START.timestamp())
    return LLMMemoryManager(InMemoryStore(clock=clock), clock=clock, **options), clock


def fact(key, content, kind=MemoryType.USER, **metadata):
    return Memory(kind, key, content, metadata)


def contents(memories):
    return [each.content for each in memories]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(steps=steps, query=st.sampled_from([None, *WORDS]), kind=st.sampled_from([None, "user"]))
async def test_what_was_current_at_any_moment_is_what_retrieve_saw_then(steps, query, kind):
    """An answer as of a moment is that of the moment, but for what was undone or erased since."""
    manager, clock = clocked()
    seen = []
    for number, (verb, of, key, word) in enumerate(steps):
        if verb == "save":
            await manager.save(Memory(of, key, f"Number {number} is about {word}."))
        elif verb == "delete":
            await manager.delete(f"{of}:{key}")
        else:
            await getattr(manager, verb)(key, of)
            # History is rewritten: what was seen before is no model of it.
            seen.clear()
        clock.advance(1800)
        moment = datetime.fromtimestamp(clock(), UTC)
        seen.append((moment, await manager.retrieve(query, type=kind)))
        clock.advance(1800)
    for moment, expected in seen:
        found = await manager.retrieve(query, type=kind, at=moment)
        assert set(map(content_and_key, found)) == set(map(content_and_key, expected))
        if all(verb != "undo" for verb, *_ in steps):
            # What was brought back is as new as its statement, not as the undo.
            assert contents(found) == contents(expected)
    assert await manager.retrieve(query, at=START - HOUR) == []


def content_and_key(memory):
    return memory.type, memory.key, memory.content, memory.metadata.get("valid_from")


async def test_the_words_of_replaced_versions_find_the_version_of_then():
    manager, clock = clocked()
    for city in ("Vienna", "Graz", "Linz"):
        await manager.save([fact("home", f"Lives in {city}."), fact("pet", "Has a cat.")])
        clock.advance(3600)
    (found, *_) = await manager.retrieve("Vienna", 1, at=START + 1.5 * HOUR)
    assert found.content == "Lives in Graz."
    assert contents(await manager.retrieve("Vienna", min_score=0.1, at=START)) == [
        "Lives in Vienna."
    ]
    assert contents(await manager.retrieve("Linz", min_score=0.1, at=START + 1.5 * HOUR)) == []


async def test_options_count_as_of_the_moment():
    manager, clock = clocked()
    soon = (START + HOUR).isoformat()
    await manager.save([fact("code", "The tea room is 5.", **{EXPIRES_AT: soon})])
    await manager.save([fact("tea", "Tea at noon.", MemoryType.PROJECT, importance=0.9)])
    clock.advance(100 * 3600)
    await manager.save([fact("later", "Tea is sold out.")])

    async def keys(hours, *arguments, **options):
        at = START + hours * HOUR
        return {each.key for each in await manager.retrieve(*arguments, at=at, **options)}

    assert await keys(0.5, "tea") == {"code", "tea"}
    assert await keys(1, "tea") == {"tea"}
    assert await keys(0.5, "tea", 0) == set()
    assert len(await keys(0.5, 1)) == 1
    assert await keys(0.5, "tea", type="project") == {"tea"}
    assert await keys(0.5, "tea", filter={"metadata.importance": {"$gte": 0.8}}) == {"tea"}
    assert await keys(101, "tea", min_score=0.1) == {"tea", "later"}
    with pytest.raises(InvalidArgumentError, match="min_score needs a query"):
        await manager.retrieve(min_score=0.5, at=START)
    with pytest.raises(InvalidArgumentError, match="a moment is"):
        await manager.retrieve("tea", at="yesterday")


@pytest.mark.parametrize("blend", ["hybrid", "recency", "trust"])
async def test_meaning_counts_and_ages_are_those_of_the_moment(blend):
    kind = blend if blend == "hybrid" else Blend(name=blend, min_relevance=0)
    manager, clock = clocked(embedder=FakeEmbedder(256), blend=kind)
    await manager.save([fact("old", "Likes green tea")])
    clock.advance(50 * 24 * 3600)
    await manager.save([fact("new", "Likes green tea with milk")])
    clock.advance(3600)
    now = datetime.fromtimestamp(clock(), UTC)
    expected = await manager.retrieve("green tea")
    clock.advance(3650 * 24 * 3600)
    await manager.delete("user:old")
    assert contents(await manager.retrieve("green tea", at=now)) == contents(expected)
    assert contents(await manager.retrieve("green tea")) == ["Likes green tea with milk"]


async def test_words_do_if_the_embedder_fails(events):
    class Broken(FakeEmbedder):
        async def embed(self, texts, *, kind="document"):
            raise RuntimeError("no model")

    manager, _ = clocked(embedder=Broken(8))
    await manager.save([fact("tea", "Likes green tea"), fact("pet", "Has a cat")])
    assert contents(await manager.retrieve("tea", 1, at=START)) == ["Likes green tea"]
    assert "memory.embed_failed" in events.names


async def test_a_store_that_searches_nothing_is_searched_as_of_a_moment(make, store):
    manager = make()
    await manager.save([fact("tea", "Likes green tea"), fact("pet", "Has a cat")])
    now = datetime.now(UTC) + timedelta(days=36_500)
    assert contents(await manager.retrieve("cat", 1, at=now)) == ["Has a cat"]
    assert await manager.for_user("bob").retrieve("cat", at=now) == []
