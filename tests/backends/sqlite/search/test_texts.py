"""The two ways to keep a text search within its namespace."""

from __future__ import annotations

import asyncio
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.backends.selection import Page, Selection
from locus_memory.backends.sqlite import queries
from locus_memory.backends.sqlite.items import Scope
from locus_memory.backends.sqlite.search import caches
from locus_memory.backends.sqlite.search.texts import Matches
from locus_memory.backends.sqlite.store import SQLiteStore

WORDS = ["boat", "keel", "sail", "mast", "harbour", "tide", "anchor", "rope"]


FACTS, TALK = ("facts",), ("talk",)

spoken = st.sampled_from(["tea", "red tea boat", "monday", "boat on monday", "red", "tea tea"])
steps = st.one_of(
    st.tuples(
        st.just("put"), st.integers(0, 1), st.sampled_from([FACTS, TALK]), st.integers(0, 5), spoken
    ),
    st.tuples(st.just("delete"), st.integers(0, 1), st.just(FACTS), st.integers(0, 5)),
    st.tuples(st.just("clear"), st.integers(0, 1), st.just(FACTS)),
)


async def take(store, what, namespace, *given):
    if what == "put":
        await store.put(namespace, str(given[0]), given[1])
    elif what == "delete":
        await store.delete(namespace, str(given[0]))
    else:
        await store.clear_namespace(namespace)


async def hits(store):
    found = await store.search(FACTS, "tea boat monday")
    borrowed = await store.candidates(FACTS, 10, words="tea boat monday")
    assert told(borrowed) == [(item.key, item.score) for item in found]
    return [(item.key, item.value, item.score) for item in found]


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
    for large in ("SELECT 1 WHERE ? > 0", "SELECT 1 WHERE ? < 0"):
        monkeypatch.setattr(queries, "IS_LARGE", large)
        found.append([(h.key, h.score) for h in await store.search((name,), query, 50)])
    assert found[0] == found[1]
    assert found[0]


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


def told(found):
    return [(item.key, score) for item, score in found.by_text]


async def test_frequent_words_of_a_small_file_are_ranked_by_postings(tmp_path, monkeypatch):
    monkeypatch.setattr(caches, "_UNCOUNTED", 200)
    monkeypatch.setattr(caches, "_MANY", 100)
    async with SQLiteStore(tmp_path / "texts.db") as store:
        await store.put_batch(
            [(("a",), f"{n}", f"boat keel{n} {'sail' * (n % 2)}") for n in range(300)]
        )
        used = []
        for query in ("keel7 keel8", "sail keel7", "sail keel7"):
            found = await store.search(("a",), query, 20)
            assert [hit.key for hit in found[-1 if query == "keel7 keel8" else 0 :][:1]] == ["7"]
            used.append("posted" in vars(store._caches.last))
        assert used == [False, True, True]
        async with SQLiteStore(tmp_path / "texts.db", vector_cache_bytes=0) as fresh:
            plain = await fresh.search(("a",), "sail keel7", 20)
        assert [(hit.key, hit.score) for hit in found] == [(hit.key, hit.score) for hit in plain]


async def test_a_page_of_nothing_is_empty_in_a_large_file(tmp_path, monkeypatch):
    monkeypatch.setattr(caches, "_UNCOUNTED", 0)
    monkeypatch.setattr(caches, "_MANY", 0)
    async with SQLiteStore(tmp_path / "texts.db") as store:
        await store.put_batch([(("a",), f"{n}", f"boat keel{n % 3}") for n in range(30)])
        for offset in (0, 5):
            assert await store.search(("a",), "keel1 keel2", 0, offset=offset) == []
        assert told(await store.candidates(("a",), 0, words="boat keel1 keel2")) == []


@pytest.mark.slow
@given(st.lists(steps, max_size=12))
@settings(max_examples=40, deadline=None)
def test_the_hits_are_those_of_a_store_that_remembers_nothing(taken):
    async def check(folder):
        path = folder / "store.db"
        async with SQLiteStore(path) as one, SQLiteStore(path) as other:
            for what, writer, *given_ in taken:
                await take((one, other)[writer], what, *given_)
                async with SQLiteStore(path) as fresh:
                    wanted = await hits(fresh)
                assert [await hits(one) for _ in range(3)] == [wanted] * 3

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(check(Path(folder)))


COMMON, RARE = ["the", "море", "don't"], ["heron", "日本", "keel", "running"]


async def pages(store, path, words, limit, offset, *, recursive, chosen=None):
    """Return a page of a search that ranks what has a rare word first, and as it is ranked at once.

    With them whether the first way was taken.
    """

    def read(connection):
        condition = Selection.of(path, chosen).condition
        matches = Matches.of(connection, Scope.of(path, 0.0, recursive=recursive), condition)
        if matches is None:
            return [], [], False
        quoted, page = [f'"{word}"' for word in words], Page(limit=limit, offset=offset)
        counts = {each: matches._count(each) for each in quoted}
        few = matches._of_rare(sorted(counts, key=counts.get), counts, "", limit + offset)
        found = [matches.page(quoted, page, is_many=is_many) for is_many in (True, False)]
        return *found, few is not None

    return await store._connection.read(read)


def speech(chance, few):
    """Return many items with common words, few of which have a rare one as well."""
    for number in range(240):
        said = chance.choices(COMMON, (9, 5, 2), k=chance.randint(1, 9))
        if chance.random() < few:
            said += chance.choices(RARE, k=chance.randint(1, 3))
        chance.shuffle(said)
        space = ("all", chance.choice(["a", "b", "b", "b"]))
        yield space, f"{number}", {"text": " ".join(said)}, {"kind": number % 3}


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(
    st.randoms(use_true_random=False),
    st.lists(st.sampled_from([*COMMON, *RARE, "nowhere"]), min_size=1, unique=True),
    st.sampled_from([0.0, 0.02, 0.1, 0.3]),
    st.integers(1, 30),
    st.integers(0, 12),
)
def test_the_best_items_are_the_same_if_those_with_a_rare_word_come_first(
    chance, words, few, limit, offset
):
    async def run():
        with tempfile.TemporaryDirectory() as folder:
            async with SQLiteStore(Path(folder) / "few.db") as store:
                await store.put_batch([*speech(chance, few)])
                for path, recursive in ((("all",), True), (("all", "a"), False), (("b",), True)):
                    for chosen in (None, {"kind": 1}):
                        how = {"recursive": recursive, "chosen": chosen}
                        found, expected, _ = await pages(store, path, words, limit, offset, **how)
                        assert [hit[:2] for hit in found] == [hit[:2] for hit in expected]
                        scores = [hit[2] for hit in expected]
                        assert [hit[2] for hit in found] == pytest.approx(scores)

    asyncio.run(run())


async def test_items_without_a_rare_word_are_not_ranked_if_none_can_be_on_the_page(tmp_path):
    async with SQLiteStore(tmp_path / "few.db") as store:
        await store.put_batch([*speech(random.Random(3), 0.1)])
        for limit, is_few in ((5, True), (30, False)):
            how = {"recursive": True}
            found = await pages(store, ("all",), ["the", "heron", "keel"], limit, 0, **how)
            assert [hit[:2] for hit in found[0]] == [hit[:2] for hit in found[1]]
            assert found[2] is is_few


async def test_equal_items_are_in_one_order_whichever_way_ranks_them(tmp_path):
    """The last digit of a score depends on the order of its words."""
    chance = random.Random(1)
    names = [f"rare{letter}x" for letter in "abcdefgh"]
    words = ["of", "rarebx", "raregx", "and"]
    rows = []
    for number in range(300):
        said = chance.choices(["the", "of", "and"], k=chance.randint(1, 3))
        said += chance.sample(names, 3) if number % 8 == 0 else []
        chance.shuffle(said)
        rows.append((("a",), f"{number}", " ".join(said)))
    async with SQLiteStore(tmp_path / "equal.db") as store:
        await store.put_batch(rows)
        whole = (await pages(store, ("a",), words, 60, 0, recursive=True))[0]
        for limit in range(1, 20):
            assert (await pages(store, ("a",), words, limit, 0, recursive=True))[0] == whole[:limit]


async def test_a_search_below_a_namespace_without_items_reads_no_index(tmp_path):
    async with SQLiteStore(tmp_path / "none.db") as store:
        await store.put(("all", "a"), "1", "the tide")
        await store.put(("all", "c", "d"), "1", "the tide")
        await store.delete(("all", "c", "d"), "1")

        def read(connection):
            every = Selection.of(("all",), None).condition
            scopes = (Scope.of(("all", each), 0.0, recursive=True) for each in "abcd")
            return [Matches.of(connection, each, every) is not None for each in scopes]

        assert await store._connection.read(read) == [True, False, False, False]
