"""The two ways to keep a text search within its namespace."""

from __future__ import annotations

import asyncio
import random
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.backends.sqlite.items import Scope
from locus_memory.backends.sqlite.search import pruning, texts
from locus_memory.backends.sqlite.search.texts import TextSearch
from locus_memory.backends.sqlite.store import SQLiteStore

WORDS = ["boat", "keel", "sail", "mast", "harbour", "tide", "anchor", "rope"]


@pytest.fixture
async def store(tmp_path):
    generator = random.Random(3)
    async with SQLiteStore(tmp_path / "texts.db") as made:
        await made.put_batch(
            [
                ((name,), f"{n}", " ".join(generator.choices(WORDS, k=6)))
                for name, size in (("large", 300), ("small", 9))
                for n in range(size)
            ]
        )
        yield made


@pytest.mark.parametrize("name", ["large", "small"])
@pytest.mark.parametrize("query", ["boat", "keel or mast", "harbour tide rope"])
async def test_both_ways_find_the_same(store, monkeypatch, name, query):
    found = []
    for large in (True, False):
        monkeypatch.setattr(TextSearch, "_is_large", lambda *_, answer=large: answer)
        found.append([(h.key, h.score) for h in await store.search((name,), query, 50)])
    assert found[0] == found[1]
    assert found[0]


async def test_a_namespace_is_large_beside_the_others(store):
    search = store._caches.last.texts

    def large(name):
        def read(connection):
            path = f"{name}\x01"
            sql = "SELECT id FROM namespaces WHERE path = ?"
            (found,) = connection.execute(sql, (path,)).fetchone()
            return search._is_large(connection, found)

        return store._connection.read(read)

    assert await large("large")
    assert not await large("small")
    await store.clear_namespace(("large",))
    await store.put(("new",), "k", "boat")
    assert not await large("new")


async def test_what_is_remembered_of_namespaces_is_bounded(store):
    for n in range(1_100):
        store._caches.last.texts._large[-n] = (False, 5)
    await store.search(("small",), "boat")
    assert len(store._caches.last.texts._large) == 1
    assert [hit.key for hit in await store.search(("none",), "boat")] == []


async def test_what_has_no_text_is_not_indexed(tmp_path):
    def indexed():
        return store._connection.read(
            lambda c: c.execute("SELECT count(*) FROM texts_docsize").fetchone()[0]
        )

    async with SQLiteStore(tmp_path / "silent.db") as store:
        await store.put(("jobs",), "a", {"words": "many"}, text="")
        await store.put(("jobs",), "b", [1, 2.5, None])
        assert await indexed() == 0
        await store.put(("jobs",), "a", "found")
        assert await indexed() == 1
        await store.put(("jobs",), "a", "hidden", text="")
        assert await indexed() == 0
        assert await store.search(("jobs",), "found hidden words") == []
        await store.put(("jobs",), "c", "word")
        assert await store.clear_namespace(("jobs",)) == 3
        assert await indexed() == 0


vocabulary = [f"w{number}" for number in range(12)]


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(
    st.randoms(use_true_random=False),
    st.lists(st.sampled_from(vocabulary), min_size=2, max_size=6, unique=True),
)
def test_bounded_work_finds_the_best(chance, words):
    """With the bound of the formula, whatever the words and however they are spread."""
    weights = [1 / (n + 1) for n in range(12)]
    sizes = [chance.randint(1, 9) for _ in range(60)]
    items = [" ".join(chance.choices(vocabulary, weights, k=size)) for size in sizes]

    async def run():
        async with SQLiteStore(":memory:") as store:
            await store.put_batch([(("n",), f"{n}", text) for n, text in enumerate(items)])
            found = []
            for limit, offset in ((5, 0), (3, 2)):
                for most in (12, 0):
                    with pytest.MonkeyPatch.context() as patch:
                        patch.setattr(texts, "_MOST_WORDS", most)
                        patch.setattr(texts, "_CHEAP", 0)
                        patch.setattr(texts, "_FEW", 0)
                        patch.setattr(texts, "_UNCOUNTED", 0)
                        patch.setattr(texts, "_MANY", -1)
                        patch.setattr(pruning, "_IMPACT", 2.2)
                        patch.setattr(pruning, "_HEAVY_IMPACT", 2.2)
                        store._caches.last.texts._common.clear()
                        hits = await store.search(("n",), " ".join(words), limit, offset=offset)
                        found.append([hit.score for hit in hits])
            assert found[0] == pytest.approx(found[1])
            assert found[2] == pytest.approx(found[3])

    asyncio.run(run())


async def test_the_mean_length_is_that_of_fts5(tmp_path):
    async with SQLiteStore(tmp_path / "texts.db") as store:
        await store.put_batch([(("n",), f"{n}", "word " * n) for n in range(1, 300)])
        found = await store._connection.read(
            lambda c: texts._Search(
                c, "1", Scope.of(("n",), 0, recursive=True), {}, ""
            ).mean_length()
        )
        # A word more each: that of the namespace.
        assert found == pytest.approx(151)


def told(found):
    return [(item.key, score) for item, score in found.by_text]


async def test_frequent_words_of_a_small_file_are_ranked_by_postings(tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "_UNCOUNTED", 200)
    monkeypatch.setattr(texts, "_MANY", 100)
    async with SQLiteStore(tmp_path / "texts.db") as store:
        await store.put_batch(
            [(("a",), f"{n}", f"boat keel{n} {'sail' * (n % 2)}") for n in range(300)]
        )
        used = []
        for _ in range(8):
            used.append(store._caches.last.texts._posted is not None)
            found = await store.search(("a",), "sail keel7", 20)
            assert [hit.key for hit in found[:1]] == ["7"]
        assert used == [False] + [True] * 7
        async with SQLiteStore(tmp_path / "texts.db") as fresh:
            plain = await fresh.search(("a",), "sail keel7", 20)
        assert [(hit.key, hit.score) for hit in found] == [(hit.key, hit.score) for hit in plain]


async def test_a_page_of_nothing_is_empty_in_a_large_file(tmp_path, monkeypatch):
    for name in ("_FEW", "_UNCOUNTED", "_MANY", "_CHEAP"):
        monkeypatch.setattr(texts, name, 0)
    async with SQLiteStore(tmp_path / "texts.db") as store:
        await store.put_batch([(("a",), f"{n}", f"boat keel{n % 3}") for n in range(30)])
        for offset in (0, 5):
            assert await store.search(("a",), "keel1 keel2", 0, offset=offset) == []
        assert told(await store.candidates(("a",), 0, words="boat keel1 keel2")) == []


async def test_few_matches_of_a_large_file_are_ranked_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "_FEW", 100)
    monkeypatch.setattr(texts, "_UNCOUNTED", 100)
    monkeypatch.setattr(texts, "_MANY", 10)
    async with SQLiteStore(tmp_path / "texts.db") as store:
        await store.put_batch([(("a",), f"{n}", f"boat keel{n}") for n in range(300)])
        await store.put_batch([(("b",), f"{n}", f"monday {n}") for n in range(300)])
        for _ in range(5):
            assert [hit.key for hit in await store.search(("a",), "keel7 keel9")] == ["9", "7"]
        assert store._caches.last.texts._posted is None
        # Once it is known that nobody there says this word, it costs nothing.
        for _ in range(5):
            assert [hit.key for hit in await store.search(("a",), "keel7 on monday")] == ["7"]
        posted = store._caches.last.texts._posted.cache._spent
        await store.search(("a",), "keel7 on monday")
        assert store._caches.last.texts._posted.cache._spent == posted


async def test_a_search_that_turns_out_long_holds_up_no_write(tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "_FEW", 100)
    monkeypatch.setattr(texts, "_UNCOUNTED", 100)
    monkeypatch.setattr(texts, "_MANY", 10)
    threads = []
    find = TextSearch.find

    def watched(*args, **how):
        threads.append(threading.current_thread().name.rpartition("-")[2])
        return find(*args, **how)

    monkeypatch.setattr(TextSearch, "find", watched)
    async with SQLiteStore(tmp_path / "texts.db") as store:
        await store.put_batch([(("a",), f"{n}", f"boat {n} keel{n % 7}") for n in range(300)])

        async def search(words):
            threads.clear()
            found = await store.candidates(("a",), 20, words=words)
            return told(found), list(threads)

        rare, first = await search("7 9")
        assert (len(rare), first) == (2, ["reader"])
        assert await search("7 9") == (rare, ["writer"])
        many, threads_of_many = await search("keel2")
        assert (len(many), threads_of_many) == (20, ["writer", "reader"])
        assert await search("keel2") == (many, ["reader"])
        assert await search("7 9") == (rare, ["reader"])
        assert await search("7 9") == (rare, ["writer"])
        # Vectors are read by the readers alone.
        threads.clear()
        await store.candidates(("a",), 5, words="7 9", embedding=[1.0, 0.0])
        assert threads == ["reader"]
