"""Knowledge that changes: recall goes by the links, and never by likeness or age."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.memory.forgetting.forget import forget
from locus_memory.memory.ledger.wording import search_text
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryChange
from locus_memory.messages import Message
from locus_memory.retrieval.embedders.marks import mark_of
from locus_memory.state import AgentState
from locus_memory.store.wrappers import EmbeddingStore, StoreWrapper
from locus_memory.testing import FakeEmbedder

CURRENT = ("locus_memory", "current")


def fact(content, key="home", **metadata):
    return Memory("user", key, content, metadata)


@pytest.fixture
def make(searching, clock, scripted):
    def manager(**options):
        return LLMMemoryManager(searching, **{"extract_fn": scripted(), "clock": clock, **options})

    return manager


async def say(manager, *contents, clock, key="home"):
    for content in contents:
        await manager.save([fact(content, key)])
        clock.advance(60)


async def found(store, word):
    """Return the contents that text search finds by a word."""
    return [item.value["content"] for item in await store.search(CURRENT, word, 100)]


async def test_the_words_of_the_old_version_find_the_current_one(make, clock):
    manager = make()
    await say(manager, "Lives in Vienna", "Lives in Graz", clock=clock)
    for number in range(30):
        await say(manager, f"Fact number {number}", clock=clock, key=f"k{number}")
    recalled = await manager.retrieve(1, "Do you still remember my flat in Vienna?")
    assert [memory.content for memory in recalled] == ["Lives in Graz"]


async def test_what_says_it_now_comes_before_what_used_to(make, clock):
    manager = make()
    said = "The office that everybody in the team works from on most days of the week is in Vienna"
    await say(manager, said, clock=clock, key="office")
    await say(manager, "Vienna", "Graz", clock=clock)
    recalled = await manager.retrieve(2, "Who is in Vienna?")
    assert [memory.key for memory in recalled] == ["office", "home"]


async def test_what_was_undone_is_not_searched(make, searching, clock):
    manager = make()
    await say(manager, "Lives in Vienna", "Lives in Graz", "Lives in Linz", clock=clock)
    await manager.undo("home")
    assert await found(searching, "Linz") == []
    assert await found(searching, "Vienna") == ["Lives in Graz"]
    await say(manager, "Lives in Wels", clock=clock)
    assert await found(searching, "Linz") == []
    assert await found(searching, "Graz") == ["Lives in Wels"]
    await manager.undo("home")
    await manager.undo("home")
    assert await found(searching, "Graz") == []
    assert await found(searching, "Vienna") == ["Lives in Vienna"]


async def test_a_key_that_is_made_anew_starts_anew(make, searching, clock, scripted):
    delete = MemoryChange(op="delete", type="user", key="home")
    manager = make(extract_fn=scripted([delete]))
    await say(manager, "Lives in Vienna", "Lives in Graz", clock=clock)
    await manager.on_session_end(AgentState(messages=(Message.user("Forget my home"),)))
    assert await found(searching, "Vienna") == []
    await say(manager, "Lives in Linz", clock=clock)
    assert await found(searching, "Vienna") == await found(searching, "Graz") == []
    assert await found(searching, "Linz") == ["Lives in Linz"]
    assert (await manager.undo("home")) is None
    assert (await manager.undo("home")).content == "Lives in Graz"
    assert await found(searching, "Vienna") == ["Lives in Graz"]


async def test_what_is_not_kept_is_not_searched(make, searching, clock):
    manager = make(history_limit=1)
    await say(manager, "Lives in Vienna", "Lives in Graz", "Lives in Linz", clock=clock)
    assert await found(searching, "Vienna") == []
    assert await found(searching, "Graz") == ["Lives in Linz"]
    await say(make(history_limit=0), "Lives in Wels", clock=clock)
    assert await found(searching, "Linz") == []


async def test_metadata_that_is_merged_changes_nothing_of_it(make, searching, clock):
    manager = make()
    await say(manager, "Lives in Vienna", "Lives in Graz", clock=clock)
    await manager.save([fact("Lives in Graz", mood="happy")])
    assert await found(searching, "Vienna") == ["Lives in Graz"]


async def test_a_vector_is_of_what_is_true_now(make, searching, clock):
    manager = make(embedder=FakeEmbedder())
    await say(manager, "Lives in Vienna", "Lives in Graz", clock=clock)
    item = await searching.get_item(CURRENT, "user:home")
    mark = mark_of(item.metadata)
    assert (mark.source, mark.text) == ("Lives in Graz", "home\nLives in Graz\nLives in Vienna")
    [expected] = await FakeEmbedder().embed(["Lives in Graz"])
    vector = await searching.get_embedding(CURRENT, "user:home")
    assert vector == pytest.approx(expected, abs=1e-6)


CHANGES = st.sampled_from(["update", "undo", "delete", None, 5])


def past_fact(content, change):
    return fact(content, superseded_by={"change": change})


@pytest.mark.slow
@given(told=st.lists(st.tuples(st.text(min_size=1).filter(str.strip), CHANGES), max_size=6))
def test_what_is_searched_of_the_past_is_bounded_whatever_it_says(told):
    past = {number: past_fact(*each) for number, each in enumerate(told, 1)}
    text = search_text(fact("Now", sequence=len(told) + 1), past)
    assert text.startswith("home\nNow")
    assert len(text) <= len("home\nNow\n") + 500


def test_a_long_past_is_cut():
    past = {1: past_fact("a" * 300, "update"), 2: past_fact("b" * 400, "update"), 4: fact("c")}
    text = search_text(fact("Now", sequence=3), past)
    assert text == f"home\nNow\n{'b' * 400}\n{'a' * 99}"


async def test_three_versions_of_the_past_are_searched(make, searching, clock):
    await say(make(), "Vienna", "Graz", "Linz", "Wels", "Bregenz", clock=clock)
    names = ["Bregenz", "Wels", "Linz", "Graz", "Vienna"]
    assert [bool(await found(searching, name)) for name in names] == [True] * 4 + [False]


@pytest.mark.parametrize("embedder", [None, FakeEmbedder()], ids=["words", "vectors"])
async def test_a_past_that_is_forgotten_is_not_searched(make, searching, clock, embedder):
    manager = make(embedder=embedder)
    await say(manager, "Lives in Vienna", "Lives in Graz", "Lives in Linz", clock=clock)
    before = await searching.get_item(CURRENT, "user:home")
    vector = await searching.get_embedding(CURRENT, "user:home")
    await forget(searching, query="Graz", dry_run=True)
    assert await found(searching, "Graz") == ["Lives in Linz"]
    await forget(searching, query="Graz")
    assert await found(searching, "Graz") == []
    assert await found(searching, "Linz") == ["Lives in Linz"]
    after = await searching.get_item(CURRENT, "user:home")
    assert (after.value, after.created_at) == (before.value, before.created_at)
    assert await searching.get_embedding(CURRENT, "user:home") == vector
    assert "Graz" not in repr(after.metadata)
    assert (mark_of(after.metadata) is None) is (embedder is None)


@pytest.mark.parametrize("embedder", [None, FakeEmbedder()], ids=["words", "vectors"])
async def test_a_forgotten_past_leaves_no_trace_in_any_table(tmp_path, clock, embedder):
    async with SQLiteStore(tmp_path / "a.db", clock=clock) as store:
        manager = LLMMemoryManager(store, clock=clock, embedder=embedder)
        await say(manager, "Lives in Vienna", "Lives in Graz", clock=clock)
        await forget(store, query="Vienna")
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        tables = [connection.execute(f'SELECT * FROM "{name}"').fetchall() for (name,) in names]
    assert "graz" in str(tables).casefold()
    assert "vienna" not in str(tables).casefold()


async def test_a_change_while_the_past_is_forgotten_is_not_lost(clock):
    store = InMemoryStore(clock=clock)
    manager = LLMMemoryManager(store, clock=clock)
    await say(manager, "Lives in Vienna", "Lives in Graz", clock=clock)

    class Overtaken(StoreWrapper):
        async def put_batch(self, items):
            await manager.save([fact("Lives in Graz", mood="happy")])
            return await super().put_batch(items)

    await forget(Overtaken(store), query="Vienna")
    [memory] = await manager.retrieve()
    assert memory.metadata["mood"] == "happy"
    assert await found(store, "Vienna") == []


async def test_a_store_that_embeds_texts_does_so_again(clock):
    inner = InMemoryStore(clock=clock)
    store = EmbeddingStore(inner, FakeEmbedder())
    await say(LLMMemoryManager(store, clock=clock), "Vienna", "Graz", clock=clock)
    await forget(store, query="Vienna")
    assert mark_of((await inner.get_item(CURRENT, "user:home")).metadata).text == "home\nGraz"


LINKS = [
    ({}, {"supersedes": {"type": "user", "key": "old"}}),
    ({}, {"supersedes": "user:old"}),
    ({"superseded_by": {"type": "user", "key": "new"}}, {}),
    ({"sequence": 3}, {"supersedes": {"type": "user", "key": "old", "sequence": 3}}),
]


@pytest.mark.parametrize("links", LINKS, ids=["key", "name", "by", "number"])
async def test_nothing_that_is_found_stands_above_what_supersedes_it(make, searching, clock, links):
    of_old, of_new = links
    imported = [
        fact("Lives in Graz, formerly in Vienna", "new", **of_new),
        fact("Lives in Vienna, Vienna, Vienna", "old", **of_old),
    ]
    for memory in imported:
        await searching.put(CURRENT, f"user:{memory.key}", memory.to_store_value())
        clock.advance(60)
    recalled = await make().retrieve(query="Where in Vienna?")
    assert [memory.key for memory in recalled] == ["new", "old"]
    assert recalled[0].metadata == of_new
