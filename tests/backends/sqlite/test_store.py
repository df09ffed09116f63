"""What the SQLite store does inside its file."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.backends.sqlite import queries
from locus_memory.backends.sqlite.connection.connection import SQLiteDatabase
from locus_memory.backends.sqlite.search import texts
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.errors import ConfigurationError, VersionConflictError
from locus_memory.store.item import Put
from locus_memory.testing.fakes import FakeClock

NS = ("store",)
BELOW = ("store", "below")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
async def store(path, clock):
    async with SQLiteStore(path, clock=clock) as store:
        yield store


@pytest.fixture
async def other(path, clock, store):
    """The same file, opened as another process would."""
    async with SQLiteStore(path, clock=clock) as other:
        yield other


async def ask(store, statement, values=()):
    return await store._connection.read(lambda c: c.execute(statement, values).fetchall())


async def count(store, table):
    return (await ask(store, f"SELECT count(*) FROM {table}"))[0][0]


async def check_text_index(store):
    check = "INSERT INTO texts (texts, rank) VALUES ('integrity-check', 1)"
    await store._connection.write(lambda c: c.execute(check))


def keys(found):
    return [hit.item.key if hasattr(hit, "distance") else hit.key for hit in found]


class TestOwnership:
    async def test_a_database_passed_in_is_not_closed(self, path):
        database = SQLiteDatabase(path)
        async with SQLiteStore(database=database) as store:
            await store.put(NS, "k", 1)
        async with SQLiteStore(database=database) as store:
            assert await store.get(NS, "k") == 1
        await database.close()

    async def test_it_works_without_a_file(self):
        async with SQLiteStore(":memory:") as store:
            await store.put_with_embedding(NS, "k", "some words", [1.0, 0.0])
            assert keys(await store.search(NS, "word")) == ["k"]
            assert keys(await store.search_by_embedding(NS, [1.0, 0.0])) == ["k"]

    @pytest.mark.parametrize("options", [{"vector_cache_bytes": -1}, {"embedding_dimension": 0}])
    def test_an_option_that_cannot_work_is_refused(self, options):
        with pytest.raises(ConfigurationError):
            SQLiteStore(**options)

    @pytest.mark.slow
    def test_importing_it_loads_no_numpy(self):
        script = "import sys, locus_memory.backends.sqlite.store; sys.exit('numpy' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0

    def test_the_repr_names_the_file(self):
        assert repr(SQLiteStore("agent.db")) == "SQLiteStore('agent.db')"


class TestTidiness:
    async def test_nothing_is_left_of_what_was_deleted(self, store):
        await store.put_with_embedding(NS, "a", "some words", [1.0, 0.0])
        await store.put_with_embedding(NS, "b", "more words", [1.0, 0.0], ttl=5)
        await store.put_with_embedding(BELOW, "c", "last words", [1.0, 0.0])
        await store.delete(NS, "a")
        await store.clear_namespace(NS, recursive=True)
        tables = ("items", "namespaces", "vectors", "codes", "texts_docsize")
        assert [await count(store, table) for table in tables] == [0] * 5
        await check_text_index(store)

    async def test_writes_purge_what_has_expired(self, store, clock):
        for n in range(20):
            await store.put_with_embedding(("old", f"{n}"), "k", "old words", [1.0, 0.0], ttl=5)
        clock.advance(5)
        await store.put(NS, "first", 1)
        assert await count(store, "items") == 21
        await store.put(NS, "a", 1)
        assert 1 < await count(store, "items") < 20
        await store.put(NS, "b", 1)
        assert await count(store, "items") == 3
        assert await count(store, "namespaces") == 1
        assert await count(store, "vectors") == 0
        await check_text_index(store)

    async def test_a_clock_that_is_ahead_for_one_write_deletes_nothing(self, store, clock):
        await store.put(NS, "a", 1, ttl=3600)
        await store.put(NS, "b", 1)
        clock.advance(7200)
        await store.put(NS, "b", 2)
        clock.advance(-7200)
        assert await store.get(NS, "a") == 1
        await store.put(NS, "b", 3)
        assert await store.get(NS, "a") == 1

    async def test_the_text_index_follows_every_change(self, store):
        await store.put(NS, "a", "apples")
        await store.put(NS, "b", "apples and pears")
        await store.put(NS, "a", "plums")
        await store.put(NS, "a", "plums", {"changed": "not the text"})
        await store.put(NS, "b", "apples", text="")
        await store.put_batch([(NS, "c", "apples"), (NS, "c", "cherries")])
        assert await store.search(NS, "apples") == []
        assert keys(await store.search(NS, "plums cherries")) == ["c", "a"]
        await check_text_index(store)

    async def test_a_conflict_does_not_disturb_who_writes_at_the_same_time(self, store):
        calls = [
            *(store.put(NS, f"{n}", n) for n in range(10)),
            store.put(NS, "lost", 1, if_version=9),
            store.write_batch(
                [
                    Put(namespace=NS, key="half", value=1),
                    Put(namespace=NS, key="lost", value=1, if_version=9),
                ]
            ),
            *(store.put(NS, f"{n}", n) for n in range(10)),
        ]
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert results[:10] + results[12:] == [1] * 10 + [2] * 10
        assert all(isinstance(each, VersionConflictError) for each in results[10:12])
        assert await store.list_keys(NS) == [f"{n}" for n in range(10)]


class TestTextSearch:
    async def test_a_small_namespace_beside_a_large_one_misses_nothing(self, store):
        large = [(("large",), f"{n}", f"common word number {n}") for n in range(3000)]
        await store.put_batch([*large, *((NS, f"{n}", "one common word") for n in range(7))])
        assert len(await store.search(NS, "common", 10)) == 7
        assert len(await store.search(NS, "common", 3, offset=5)) == 2
        assert len(await store.search(("large",), "common", 10**6)) == 3000

    async def test_words_the_engine_splits_still_match(self, store):
        await store.put(NS, "k", "a\u0300 la carte, e\u0301te\u0301, x\u00b2, \u01c6, \u1e9e")
        for query in ("à", "été", "x²", "ǆ"):
            await store.search(NS, query)
        assert keys(await store.search(NS, "ete")) == ["k"]


class TestVectors:
    async def test_writes_of_another_process_are_seen(self, store, other):
        await store.put_with_embedding(NS, "a", 1, [1.0, 0.0])
        assert keys(await store.search_by_embedding(NS, [1.0, 0.0])) == ["a"]
        await other.put_with_embedding(NS, "b", 1, [1.0, 0.1])
        assert keys(await store.search_by_embedding(NS, [1.0, 0.0])) == ["a", "b"]
        await other.put_with_embedding(NS, "a", 2, [0.0, 1.0])
        assert keys(await store.search_by_embedding(NS, [1.0, 0.0])) == ["b", "a"]
        await other.delete(NS, "b")
        assert keys(await store.search_by_embedding(NS, [1.0, 0.0])) == ["a"]
        await other.put(NS, "a", 3)
        assert keys(await store.search_by_embedding(NS, [1.0, 0.0])) == []
        await other.clear_namespace(NS)
        await other.put_with_embedding(NS, "c", 1, [1.0, 0.0])
        assert keys(await store.search_by_embedding(NS, [1.0, 0.0])) == ["c"]

    async def test_equal_vectors_come_newest_first_on_every_page(self, store):
        for n in range(9):
            await store.put_with_embedding(NS, f"{n}", n, [0.3, 0.1, 0.7])
        pages = [
            await store.search_by_embedding(NS, [0.3, 0.1, 0.7], 2, offset=n) for n in (0, 2, 4)
        ]
        assert [keys(page) for page in pages] == [["8", "7"], ["6", "5"], ["4", "3"]]
        assert pages[0][0].score == 1.0

    @pytest.mark.parametrize("cache_bytes", [0, 3000, 2**20])
    async def test_whatever_the_cache_holds_the_result_is_exact(self, path, cache_bytes):
        random = np.random.default_rng(7)
        vectors = random.standard_normal((300, 8))
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        async with SQLiteStore(path, vector_cache_bytes=cache_bytes) as store:
            await store.put_batch(
                Put(
                    namespace=("store", f"{n % 5}"),
                    key=f"{n}",
                    value={"even": n % 2 == 0},
                    embedding=vector,
                )
                for n, vector in enumerate(vectors.tolist())
            )
            for query in random.standard_normal((10, 8)):
                best = np.argsort(-(unit @ query))
                found = await store.search_by_embedding(NS, query.tolist(), 20, recursive=True)
                assert keys(found) == [f"{n}" for n in best[:20]]
                even = await store.search_by_embedding(
                    NS, query.tolist(), 20, metadata_filter={"even": True}, recursive=True
                )
                assert keys(even) == [f"{n}" for n in best if n % 2 == 0][:20]
                one = await store.search_by_embedding(("store", "3"), query.tolist(), 7, offset=2)
                assert keys(one) == [f"{n}" for n in best if n % 5 == 3][2:9]
            assert (
                sum(rows.size for rows in store._caches.last.vectors._held.all().values())
                <= cache_bytes
            )

    async def test_the_cache_lets_go_of_what_was_used_longest_ago(self, path):
        async with SQLiteStore(path, vector_cache_bytes=2 * (1_000 + 4 * (4 * 4 + 9))) as store:
            for label in "abc":
                for n in range(4):
                    await store.put_with_embedding((label,), f"{n}", n, [1.0, n, 0.0, 0.0])
            for label in "abac":
                await store.search_by_embedding((label,), [1.0, 0.0, 0.0, 0.0])
            held = {name.split(" ", 2)[2] for name in store._caches.last.vectors._held.all()}
            assert held == {"a\x01", "c\x01"}


class TestCommonWords:
    """Words that most items have are looked for last."""

    @pytest.fixture(params=[0, 3000], ids=["alone", "beside others"])
    async def searched(self, store, request):
        """A store of 300 items that share a word, in which it was searched for before."""
        neighbours = [(("other",), f"{number}", "a neighbour") for number in range(request.param)]
        await store.put_batch(neighbours)
        for number in range(300):
            text = "ada said" + " parrot" * (number % 3 == 0) + " cage" * (number % 9 == 0)
            text += " ada" * (20 if number == 1 else 0)
            await store.put(NS, f"{number:03}", number, {"odd": number % 2}, text=text)
        for _ in range(4):
            await store.search(NS, "ada said parrot cage", 1)
        return store

    @pytest.mark.slow
    @pytest.mark.parametrize("recursive", [False, True])
    @pytest.mark.parametrize("condition", [None, {"odd": 1}])
    async def test_pages_fit_together_and_lose_nothing(self, searched, recursive, condition):
        options = {"filter": condition, "recursive": recursive}
        whole = await searched.search(NS, "ada parrot cage", 1000, **options)
        assert len(whole) == len({item.key for item in whole}) == (150 if condition else 300)
        scores = [item.score for item in whole]
        assert scores == sorted(scores, reverse=True)
        third = [item.value for item in whole if item.value % 3 == 0]
        assert [item.value for item in whole[: len(third)]] == third
        for size in (7, 50, 100, 149):
            pages = [
                await searched.search(NS, "ada parrot cage", size, offset=start, **options)
                for start in range(0, 300 + size, size)
            ]
            assert [item.key for page in pages for item in page] == [item.key for item in whole]

    @pytest.mark.slow
    async def test_a_word_is_common_no_more_once_most_items_lack_it(self, searched):
        await searched.put_batch([(NS, f"other {n}", n) for n in range(700)])
        await searched.put(NS, "new", 1, text="parrot parrot parrot")
        for _ in range(300):
            found = await searched.search(NS, "ada parrot", 400)
        assert len(found) == 301


class TestPlans:
    """What is asked often must never read or sort more than it returns."""

    async def plan(self, store, statement, **values):
        scope = {"path": "p", "bound": "q", "now": 0.0, "limit": 1, "offset": 0, "key": "k"}
        scope |= {"low": "k", "high": None, "weight": 1.0}
        rows = await ask(store, f"EXPLAIN QUERY PLAN {statement}", scope | values)
        return [row[3] for row in rows]

    @pytest.mark.parametrize(
        ("statement", "index"),
        [
            (queries.GET, "items_by_key (namespace=? AND key=?)"),
            (queries.EXISTS, "items_by_key (namespace=? AND key=?)"),
            (
                queries.scan_items(whole=True, descending=False),
                "items_by_key (namespace=? AND key>? AND key<?)",
            ),
            (
                queries.scan_items(whole=True, descending=True),
                "items_by_key (namespace=? AND key>? AND key<?)",
            ),
            (queries.newest_items("1"), "items_by_revision (namespace=?)"),
            (queries.LIST_NAMESPACES, "sqlite_autoindex_namespaces_1 (path>? AND path<?)"),
        ],
    )
    async def test_an_index_serves_it_in_order(self, store, statement, index):
        plan = await self.plan(store, statement)
        assert any(step.endswith(index) for step in plan), plan
        assert not any("SCAN" in step or "TEMP B-TREE" in step for step in plan), plan

    async def test_expired_items_are_found_by_their_index(self, store):
        statement = queries.EXPIRED.replace("?", ":now")
        assert "items_by_expiry" in (await self.plan(store, statement))[0]

    async def test_text_search_starts_from_the_words(self, store):
        statement = queries.search_items("1", recursive=False)
        plan = await self.plan(store, statement, match="a", namespace=1)
        assert any("SCAN texts VIRTUAL TABLE" in step for step in plan)
        assert not any(step.startswith("SCAN i") for step in plan), plan
        assert sum("i USING INTEGER PRIMARY KEY" in step for step in plan) == 1, plan

    @pytest.mark.parametrize("recursive", [False, True])
    async def test_vector_queries_start_from_the_namespaces(self, store, recursive):
        for statement in (
            queries.rows_after(recursive=recursive, is_coded=False),
            queries.rows_after(recursive=recursive, is_coded=True),
            queries.count_vectors(recursive=recursive),
            queries.other_dimension(recursive=recursive),
        ):
            plan = await self.plan(store, statement, dimension=2, after=0)
            assert not any(step.startswith("SCAN") for step in plan), plan


@pytest.mark.slow
@settings(
    max_examples=30,
    deadline=None,
)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5)), max_size=25),
    st.integers(0, 8),
    st.integers(0, 4),
)
def test_the_newest_of_a_tree_are_those_of_a_list(writes, limit, offset):
    """With a filter and without one, in however many parts the revisions are read."""

    async def run():
        model = {}
        async with SQLiteStore(":memory:") as store:
            for number, (label, key) in enumerate(writes):
                model.pop((label, key), None)
                model[label, key] = number
                await store.put(("tree", label), f"{key}", {"n": number, "even": number % 2 == 0})
            for condition, kept in ((None, lambda _: True), ({"even": True}, lambda n: n % 2 == 0)):
                found = await store.search(
                    ("tree",), None, limit, filter=condition, offset=offset, recursive=True
                )
                expected = [n for n in reversed(model.values()) if kept(n)]
                assert [each.value["n"] for each in found] == expected[offset : offset + limit]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "_FIRST", 2)
        patch.setattr(texts, "_GROWTH", 2)
        asyncio.run(run())
