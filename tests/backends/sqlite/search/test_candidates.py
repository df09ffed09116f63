"""What a SQLite store hands over for a ranking."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.errors import (
    BackendCorruptError,
    InvalidArgumentError,
    InvalidEmbeddingError,
)
from locus_memory.store.item import Put
from locus_memory.testing.fakes import FakeClock

NS = ("n",)
BELOW = ("n", "below")
VECTOR = [1.0, 0.5]

namespaces = st.sampled_from([NS, BELOW, ("other",)])
keys = st.sampled_from("abcd")
texts = st.sampled_from(["tea", "red tea", "a boat", "", "tea tea boat"])
vectors = st.none() | st.lists(st.sampled_from([0.25, 1.0, -1.0]), min_size=2, max_size=2)
changes = st.one_of(
    st.tuples(st.just("put"), namespaces, keys, texts, vectors, st.none() | st.just(5.0)),
    st.tuples(st.just("delete"), namespaces, keys),
    st.tuples(st.just("wait"), st.sampled_from([1.0, 6.0])),
    st.tuples(st.just("clear"), namespaces),
)


async def change(store, clock, what, *given):
    if what == "put":
        namespace, key, text, vector, ttl = given
        value = {"text": text, "now": clock()}
        put = Put(namespace=namespace, key=key, value=value, ttl=ttl, embedding=vector)
        await store.put_batch([put])
    elif what == "delete":
        await store.delete(*given)
    elif what == "clear":
        await store.clear_namespace(*given)
    else:
        clock.advance(*given)


def plain(items):
    return [(each.namespace, each.key, each.value, each.version, each.score) for each in items]


def scored(found):
    return [(item.namespace, item.key, item.value, item.version, score) for item, score in found]


async def check(store, **where):
    found = await store.candidates(NS, 3, words="a red tea", embedding=VECTOR, **where)
    by_text = await store.search(NS, "a red tea", 3, **where)
    where["metadata_filter"] = where.pop("filter", None)
    by_vector = await store.search_by_embedding(NS, VECTOR, 3, **where)
    assert scored(found.by_text) == plain(by_text)
    assert scored(found.by_vector) == plain(hit.item for hit in by_vector)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(changes, max_size=4), max_size=8))
def test_what_is_changed_and_searched_at_once_in_memory(rounds):
    """A conflict undoes the transaction that all of a round share."""

    async def run():
        clock = FakeClock()
        async with SQLiteStore(":memory:", clock=clock) as store:
            for steps in rounds:
                conflict = a_put("z", 1, if_version=99)
                await asyncio.gather(
                    *(change(store, clock, *step) for step in steps),
                    store.candidates(NS, 3, words="a red tea", embedding=VECTOR),
                    store.put_batch([a_put("a", "red tea"), conflict]),
                    store.candidates(NS, 3, words="a red tea", embedding=VECTOR),
                    return_exceptions=True,
                )
                await check(store)

    asyncio.run(run())


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.booleans(), changes), max_size=30))
def test_candidates_are_what_the_two_searches_find(steps):
    """Whatever changes in between, by this process or by another."""

    async def run(path):
        clock = FakeClock()
        async with SQLiteStore(path, clock=clock) as store, SQLiteStore(path, clock=clock) as other:
            for is_other, step in steps:
                await change(other if is_other else store, clock, *step)
                await check(store)
                await check(store, recursive=True, filter={"now": {"$gte": 0}})

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder) / "store.db"))


@pytest.fixture
async def store(tmp_path):
    async with SQLiteStore(tmp_path / "store.db") as store:
        yield store


def a_put(key, value, **more):
    return Put(namespace=NS, key=key, value=value, **more)


async def fill(store, count=5, size=0):
    value = {"text": "tea", "rest": "-" * size}
    puts = [a_put(str(number), value, embedding=[1.0, number]) for number in range(count)]
    await store.put_batch(puts)


async def test_what_is_held_is_bounded(store, monkeypatch):
    kept = store._caches.last.items._kept
    monkeypatch.setattr(kept, "_capacity", 40_000)
    await fill(store, 100, size=3_000)
    for _ in range(3):
        found = await store.candidates(NS, 100, words="tea", embedding=VECTOR)
        assert len({item.key for item, _ in found.by_text}) == len(found.by_vector) == 100
    assert 5 <= len(kept) <= 15


async def test_one_search_alone(store):
    await fill(store)
    by_text, by_vector, *_ = await store.candidates(NS, 2, words="tea")
    assert (len(by_text), by_vector) == (2, [])
    by_text, by_vector, *_ = await store.candidates(NS, 2, embedding=VECTOR)
    assert (by_text, len(by_vector)) == ([], 2)
    assert (await store.candidates(NS, 2, words="?!"))[:2] == ([], [])
    assert (await store.candidates(("no",), 2, words="tea", embedding=VECTOR))[:2] == ([], [])


async def test_bad_input_is_refused(store):
    await fill(store)
    with pytest.raises(InvalidArgumentError):
        await store.candidates(NS, -1, words="tea")
    with pytest.raises(InvalidEmbeddingError):
        await store.candidates(NS, 1, embedding=[1.0, 2.0, 3.0])


async def test_a_damaged_file_is_no_empty_answer(store, tmp_path):
    await fill(store)
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection, connection:
        connection.execute("UPDATE items SET value = '{' WHERE key = (SELECT min(key) FROM items)")
    with pytest.raises(BackendCorruptError):
        await store.candidates(NS, 10, words="tea")
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection, connection:
        connection.execute("DELETE FROM items WHERE key = (SELECT min(key) FROM items)")
    with pytest.raises(BackendCorruptError):
        await store.candidates(NS, 10, embedding=[1.0, 0.0])
