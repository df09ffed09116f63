"""Text search over cached postings finds what FTS5 finds."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.backends.selection import Page, Selection
from locus_memory.backends.sqlite.items import OutdatedError, Scope
from locus_memory.backends.sqlite.search import caches, postings, ranking
from locus_memory.backends.sqlite.search.filters import register_functions
from locus_memory.backends.sqlite.search.postings import PostedSearch, _varints
from locus_memory.backends.sqlite.search.texts import Matches
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.store.item import Put
from locus_memory.testing.fakes import FakeClock

# Words with a stem, with an accent, of several signs, of another script, and one like a scope.
VOCABULARY = ["boats", "running", "Ärger", "don't", "море", "n1", "keel", "日本", "mast", "x"]
WEIGHTS = [1 / (n + 1) for n in range(len(VOCABULARY))]
CAPACITY = 1_000_000


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Every file is large enough, and many items have every word."""
    monkeypatch.setattr(caches, "_UNCOUNTED", 0)
    monkeypatch.setattr(caches, "_MANY", -1)


def sentence(chance):
    return " ".join(chance.choices(VOCABULARY, WEIGHTS, k=chance.randint(1, 9)))


def put_of(chance, number):
    return Put(
        namespace=("all", chance.choice("abc")),
        key=f"{chance.randint(0, 60)}",
        value=sentence(chance),
        metadata={"kind": number % 3},
        ttl=5 if chance.random() < 0.2 else None,
    )


def searching(store, capacity):
    store._caches.last.posted = PostedSearch(capacity) if capacity else None
    return store


async def hits(store, namespace, query, **how):
    found = await store.search(namespace, query, **how)
    return [(hit.key, hit.score) for hit in found]


async def same(store, namespace, query, **how):
    """Return the hits of a search by postings, which are those of FTS5 with no bound on work."""
    cached = store._caches.last.posted
    found = await hits(store, namespace, query, **how)
    assert cached._words
    expected = await hits(searching(store, 0), namespace, query, **how)
    store._caches.last.posted = cached
    assert [key for key, _ in found] == [key for key, _ in expected]
    assert [score for _, score in found] == pytest.approx([score for _, score in expected])
    return found


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(
    st.randoms(use_true_random=False),
    st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=5, unique=True),
    st.booleans(),
)
def test_the_hits_are_those_of_fts5(chance, words, wide):
    """Whatever the words, the scope and the filter, and with items that are put later."""

    async def run():
        clock = FakeClock()
        with tempfile.TemporaryDirectory() as folder:
            async with SQLiteStore(Path(folder) / "posted.db", clock=clock) as store:
                searching(store, CAPACITY)
                for stage in range(2):
                    await store.put_batch([put_of(chance, n) for n in range(40)])
                    await store.put(("all", "a"), f"silent {stage}", "boats", text="")
                    clock.advance(3)
                    query = " ".join(words)
                    for chosen in (None, {"kind": 1}):
                        for limit, offset in ((3, 0), (5, 4), (200, 0), (201, 0)):
                            how = {"filter": chosen, "limit": limit, "offset": offset}
                            await same(store, ("all",), query, recursive=True, **how)
                            await same(store, ("all", "b"), query, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postings, "_FEW", 0 if wide else 4_096)
        asyncio.run(run())


@pytest.mark.parametrize("wide", [True, False])
async def test_what_is_deleted_is_not_found(tmp_path, monkeypatch, wide):
    monkeypatch.setattr(postings, "_FEW", 0 if wide else 4_096)
    chance = random.Random(5)
    async with SQLiteStore(tmp_path / "posted.db") as store:
        searching(store, CAPACITY)
        await store.put_batch([(("a",), f"{n}", sentence(chance)) for n in range(300)])
        before = await same(store, ("a",), "boats running", limit=200)
        for key, _ in before[:8]:
            await store.delete(("a",), key)
        # The id of the last item is used again, for another text and elsewhere.
        await store.delete(("a",), "299")
        await store.put(("b",), "new", "boats boats")
        after = await hits(store, ("a",), "boats running", limit=10)
        assert len(after) == 10
        gone = {key for key, _ in before[:8]} | {"299", "new"}
        assert not gone & {key for key, _ in after}
        assert store._caches.last.posted._size > 0


@pytest.mark.parametrize("wide", [True, False])
async def test_a_search_after_everything_is_deleted_finds_nothing(tmp_path, wide):
    async with SQLiteStore(tmp_path / "texts.db") as store:
        await store.put_batch([(("a",), f"{n}", "boats running") for n in range(30)])
        # It has no text, and keeps its namespace.
        await store.put(("a",), "none", 1)
        await same(searching(store, CAPACITY), ("a",), "boats running", recursive=wide)
        for n in range(30):
            await store.delete(("a",), f"{n}")
        assert await hits(store, ("a",), "boats running", recursive=wide) == []


async def test_what_other_namespaces_get_counts_for_the_weights(tmp_path):
    async with SQLiteStore(tmp_path / "texts.db") as store:
        searching(store, CAPACITY)
        await store.put_batch([(("a",), f"{n}", f"boats keel{n % 3}") for n in range(30)])
        before = await same(store, ("a",), "boats keel1")
        # In as many namespaces as items: a word that was common is rare, and the other way round.
        await store.put_batch([(("a", f"{n}"), "k", f"keel1 mast{n}") for n in range(300)])
        after = await same(store, ("a",), "boats keel1")
        assert [score for _, score in before] != [score for _, score in after]
        await same(store, ("a",), "boats keel1 mast7", recursive=True, limit=50)


async def test_in_a_large_file_new_items_elsewhere_are_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(postings, "_RECENT", 10)
    read = []
    newer = Matches.newer

    def watched(*args, **how):
        read.append(len(found := newer(*args, **how)))
        return found

    monkeypatch.setattr(Matches, "newer", watched)
    async with SQLiteStore(tmp_path / "texts.db") as store:
        searching(store, CAPACITY)
        await store.put_batch([(("a",), f"{n}", f"boats keel{n % 40}") for n in range(640)])
        await same(store, ("a",), "boats keel1")
        cache = store._caches.last.posted
        await store.put_batch([(("b",), f"{n}", f"keel1 mast{n}") for n in range(15)])
        await store.put_batch([(("a",), f"new{n}", f"keel1 keel1 {n}") for n in range(3)])
        found = await hits(store, ("a",), "keel1")
        assert [key for key, _ in found[:3]] == ["new2", "new1", "new0"]
        assert read == [0, 3]
        async with SQLiteStore(tmp_path / "texts.db") as fresh:
            plain = await hits(fresh, ("a",), "keel1")
        assert [key for key, _ in found] == [key for key, _ in plain]
        # One of 32 at most has changed; the word is in more items now.
        assert [score for _, score in found] == pytest.approx(
            [score for _, score in plain], rel=0.25
        )
        await store.put_batch([(("b",), f"more{n}", "mast") for n in range(9)])
        then = cache._newest
        assert await hits(store, ("a",), "keel1") == await same(store, ("a",), "keel1")
        assert cache._newest > then


async def test_many_changes_make_the_cache_again(tmp_path, monkeypatch):
    monkeypatch.setattr(postings, "_RECENT", 20)
    monkeypatch.setattr(postings, "_FEW", 0)
    chance = random.Random(6)
    async with SQLiteStore(tmp_path / "posted.db") as store:
        searching(store, CAPACITY)
        for stage in range(4):
            puts = [(("a",), f"{stage} {n}", sentence(chance)) for n in range(30)]
            await store.put_batch(puts)
            await same(store, ("a",), "boats running")
            assert store._caches.last.posted._newest == 30 * (stage + 1)


async def test_many_new_items_of_a_large_scope_make_it_again(tmp_path, monkeypatch):
    monkeypatch.setattr(postings, "_RECENT", 4)
    monkeypatch.setattr(postings, "_STEADY", 1)
    async with SQLiteStore(tmp_path / "posted.db") as store:
        searching(store, CAPACITY)
        await store.put_batch([(("a",), f"{n}", f"boats keel{n % 9}") for n in range(60)])
        await same(store, ("a",), "boats keel1")
        await store.put_batch([(("a",), f"new {n}", "boats keel1") for n in range(5)])
        found = await same(store, ("a",), "boats keel1")
        assert {key for key, _ in found[:5]} == {f"new {n}" for n in range(5)}
        assert store._caches.last.posted._newest == 65


async def test_the_cache_is_bounded(tmp_path):
    async with SQLiteStore(tmp_path / "posted.db") as store:
        searching(store, 8_000)
        words = [f"word{n}" for n in range(40)]
        await store.put_batch([(("a",), f"{n}", " ".join(words)) for n in range(200)])
        for word in words:
            await store.search(("a",), word)
            assert store._caches.last.posted._size <= 8_000
        assert 0 < len(store._caches.last.posted._words) < 40


async def test_a_word_that_takes_too_much_is_left_to_fts5(tmp_path):
    async with SQLiteStore(tmp_path / "posted.db") as store:
        searching(store, 1_000)
        await store.put_batch([(("a",), f"{n}", "boats") for n in range(400)])
        assert len(await store.search(("a",), "boats", 50)) == 50
        assert list(store._caches.last.posted._words.values()) == [None]


@pytest.mark.slow
async def test_words_without_items_take_space_too(tmp_path):
    async with SQLiteStore(tmp_path / "posted.db") as store:
        searched = searching(store, 8_000)._caches.last.posted
        await store.put_batch([(("a",), f"{n}", "boats run") for n in range(100)])
        for number in range(1_000):
            assert await store.search(("a",), f"unknown{number}") == []
    assert 1 <= len(searched._words) < 20
    assert 0 < searched._size <= 8_000


async def test_an_older_snapshot_begins_again_if_something_is_replaced_meanwhile(tmp_path):
    """Another search lists the namespace's items in between, without the replaced one."""
    path = tmp_path / "posted.db"
    async with SQLiteStore(path) as store:
        searching(store, CAPACITY)
        puts = [(("a",), f"{n}", "boats run" if n else "keel") for n in range(100)]
        await store.put_batch(puts)
        await store.put(("b",), "0", "keel boats")
        assert len(await store.search(("b",), "keel boats")) == 1
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            register_functions(connection)
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM items").fetchone()
            await store.put(("a",), "0", "keel boats")
            assert [hit.key for hit in await store.search(("a",), "keel")] == ["0"]
            scope = Scope.of(("a",), 0.0, recursive=False)
            every = Selection.of(("a",), None).condition
            find = store._caches.last.matches
            with pytest.raises(OutdatedError):
                find(connection, scope, ["keel"], every, Page(5))
            connection.execute("ROLLBACK")
            assert len(find(connection, scope, ["keel"], every, Page(5))) == 1


def test_varints_of_any_length():
    data = bytes([1, 0x7F, 0x81, 0x00, 0x83, 0xFF, 0x7F, 0])
    assert _varints(np.frombuffer(data, np.uint8)).tolist() == [1, 127, 128, 65_535, 0]


async def test_long_queries_use_postings_as_well(tmp_path):
    """A message of many words finds what FTS5 finds, also where it was put later."""
    chance = random.Random(7)
    async with SQLiteStore(tmp_path / "posted.db") as store:
        searching(store, CAPACITY)
        for _ in range(2):
            await store.put_batch([put_of(chance, n) for n in range(60)])
            assert await same(store, ("all",), " ".join(VOCABULARY), limit=20, recursive=True)


@pytest.mark.parametrize("size", [10, 300])
async def test_items_of_many_blocks_are_ranked_together(tmp_path, monkeypatch, size):
    monkeypatch.setattr(postings, "_FEW", 0)
    monkeypatch.setattr(ranking, "_BLOCK", size)
    chance = random.Random(8)
    async with SQLiteStore(tmp_path / "posted.db") as store:
        searching(store, CAPACITY)
        await store.put_batch([(("a",), f"{n}", sentence(chance)) for n in range(300)])
        for limit in (1, 7, 299):
            await same(store, ("a",), "boats Ärger keel", limit=limit)
            await same(store, ("a",), "mast x", limit=limit, offset=9)


async def test_a_prefix_is_found_in_a_large_file_as_well(tmp_path):
    """Postings are of whole words: FTS5 finds the prefix."""
    async with SQLiteStore(tmp_path / "a.db") as store:
        for n in range(3):
            await store.put(("a",), f"{n}", f"mulled wine {n}")
        assert len(await store.search(("a",), "mulled")) == 3
        await store.put(("a",), "z", "mulberry")
        assert len(await store.search(("a",), "mul*")) == 4
        assert await store.search(("a",), "lled*") == []
