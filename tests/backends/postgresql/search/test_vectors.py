"""Vector search by the index and without it."""

from __future__ import annotations

import asyncio

import asyncpg
import numpy as np
import pytest
from pgvector import Vector

from locus_memory.backends.postgresql.search import indexes as indexes_module
from locus_memory.backends.postgresql.search.vectors import VectorSearch, vector_text
from locus_memory.backends.postgresql.store import PostgreSQLStore
from locus_memory.errors import BackendWriteError, InvalidEmbeddingError
from locus_memory.events import subscribe
from locus_memory.store.item import Put, check_embedding
from locus_memory.testing.fakes import FakeClock

pytestmark = pytest.mark.usefixtures("own_tables")

NS = ("vectors",)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
async def store(url, schema, clock):
    async with PostgreSQLStore(url, schema=schema, clock=clock, exact_below=0) as store:
        yield store


@pytest.fixture
def compared(monkeypatch):
    """What was asked of the search that compares all vectors: the ids that come first."""
    calls = []
    compare = VectorSearch._compare_all

    async def spy(search, scope, query, page, first):
        calls.append(len(first))
        return await compare(search, scope, query, page, first)

    monkeypatch.setattr(VectorSearch, "_compare_all", spy)
    return calls


def keys(hits):
    return [hit.item.key for hit in hits]


async def fill(store, namespace, rows, **metadata):
    puts = [
        Put(
            namespace=namespace,
            key=f"{n}",
            value={"n": n},
            metadata={"tenth": n % 10 == 0, **metadata},
            embedding=row.tolist(),
        )
        for n, row in enumerate(rows)
    ]
    for start in range(0, len(puts), 500):
        await store.put_batch(puts[start : start + 500])


def nearest(rows, query):
    """Return the keys in order of the cosine."""
    return [f"{n}" for n in np.argsort(-(rows @ query) / np.linalg.norm(rows, axis=1))]


async def indexes(store, schema):
    sql = "SELECT indexdef FROM pg_indexes WHERE schemaname = $1 AND indexdef LIKE '%hnsw%'"
    return [row[0] for row in await store._connection.fetch(sql, schema)]


class TestText:
    @pytest.mark.parametrize(
        "vector", [[3.0, 4.0], [1.0, 1e-42, -1e-30], [1.0] * 1536, np.eye(1, 16_000)[0]]
    )
    async def test_a_vector_comes_back(self, url, vector):
        connection = await asyncpg.connect(url)
        await connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        sent = await connection.fetchval(
            "SELECT vector_send($1::text::vector)", vector_text(check_embedding(vector))
        )
        await connection.close()
        unit = (np.array(vector) / np.linalg.norm(vector)).astype(np.float32)
        assert Vector.from_binary(sent).to_list() == unit.tolist()

    def test_one_that_is_too_long_is_refused(self):
        with pytest.raises(InvalidEmbeddingError, match="16,000"):
            vector_text(check_embedding([1.0] * 16_001))


class TestIndexes:
    @pytest.mark.slow
    async def test_each_length_has_one_as_far_as_that_goes(self, store, schema):
        for dimension in (3, 2000, 2001, 4000, 4001):
            await store.put_with_embedding(NS, f"{dimension}", 1, [1.0] * dimension)
        assert await indexes(store, schema) == []
        for dimension in (3, 2000, 2001, 4000, 4001):
            [hit] = await store.search_by_embedding(NS, [1.0] * dimension)
            assert (hit.item.key, hit.score) == (f"{dimension}", 1.0)
        made = " ".join(await indexes(store, schema))
        for dimension in (3, 2000, 2001, 4000):
            assert f"halfvec({dimension}))" in made
        assert "_4001 " not in made

    @pytest.mark.slow
    async def test_many_who_meet_a_length_make_one(self, url, schema):
        options = {"schema": schema, "pool_size": 3, "exact_below": 0}
        stores = [PostgreSQLStore(url, **options) for _ in range(4)]
        calls = [
            store.put_with_embedding(NS, f"{n} {i}", 1, [1.0, n])
            for i, store in enumerate(stores)
            for n in range(3)
        ]
        assert await asyncio.gather(*calls) == [1] * 12
        searches = [store.search_by_embedding(NS, [1.0, 0.0]) for store in stores * 3]
        assert [len(found) for found in await asyncio.gather(*searches)] == [10] * 12
        assert len(await indexes(stores[0], schema)) == 1
        for store in stores:
            await store.close()

    async def test_there_may_be_none(self, url, schema, compared):
        async with PostgreSQLStore(url, schema=schema, vector_index=None, exact_below=0) as store:
            await store.put_with_embedding(NS, "k", 1, [1.0, 0.0])
            assert keys(await store.search_by_embedding(NS, [1.0, 0.0])) == ["k"]
            assert await indexes(store, schema) == []
        assert compared == [0]

    async def test_an_older_pgvector_has_none(self, store, schema, compared, monkeypatch):
        monkeypatch.setattr(indexes_module, "_ITERATIVE_SCAN", (99,))
        await store.put_with_embedding(NS, "k", 1, [1.0, 0.0])
        assert keys(await store.search_by_embedding(NS, [1.0, 0.0])) == ["k"]
        assert await indexes(store, schema) == []

    async def test_where_it_cannot_be_made_all_works_without(self, store, monkeypatch):
        def refuse(_):
            raise BackendWriteError("must be owner of the table")

        for key in ("a", "b"):
            await store.put_with_embedding(NS, key, 1, [1.0, 0.0])
        monkeypatch.setattr(type(store._connection), "outside", refuse)
        events = []
        stop = subscribe(events.append)
        try:
            for _ in "ab":
                assert keys(await store.search_by_embedding(NS, [1.0, 0.0])) == ["b", "a"]
        finally:
            stop()
        monkeypatch.undo()
        assert [(e.name, e.attributes) for e in events] == [
            ("postgresql.no_vector_index", {"dimension": 2})
        ]
        assert keys(await store.search_by_embedding(NS, [1.0, 0.0])) == ["b", "a"]

    @pytest.mark.slow
    async def test_the_extension_may_be_in_any_schema(self, url, schema, clock):
        admin = await asyncpg.connect(url)
        await admin.execute(f"CREATE DATABASE {schema}")
        inside = url.replace("/postgres", f"/{schema}")
        owner = await asyncpg.connect(inside)
        await owner.execute('CREATE SCHEMA "some where"')
        await owner.execute('CREATE EXTENSION vector SCHEMA "some where"')
        await owner.close()
        async with PostgreSQLStore(inside, schema="mine", exact_below=0) as store:
            await fill(store, NS, np.random.default_rng(1).normal(size=(150, 4)))
            await store.write_batch(
                [Put(namespace=NS, key="new", value=1, embedding=[1.0] * 4, if_version=0)]
            )
            hits = await store.search_by_embedding(NS, [1.0] * 4)
            assert len(hits) == 10
            assert hits[0].item.key == "new"
            assert await store.get_embedding(NS, "new") == [0.5] * 4
            long = [1.0] * 3000
            await store.put_with_embedding(NS, "long", 1, long)
            assert keys(await store.search_by_embedding(NS, long)) == ["long"]
        await admin.execute(f"DROP DATABASE {schema}")
        await admin.close()


ROWS = np.random.default_rng(7).normal(size=(600, 16))


async def fill_all(store):
    await fill(store, NS, ROWS)
    await fill(store, (*NS, "below"), ROWS[:50])
    await fill(store, ("neighbour",), np.random.default_rng(8).normal(size=(1400, 16)))


@pytest.fixture(scope="module")
def shared_schema(postgresql_server):
    """A schema of many vectors for the tests that only read: it takes seconds to index them."""
    schema = "t_vectors_to_read"

    async def make():
        url, clock = postgresql_server.url, FakeClock()
        async with PostgreSQLStore(url, schema=schema, clock=clock, exact_below=0) as store:
            await fill_all(store)

    asyncio.run(make())
    return schema


class TestSearch:
    @pytest.fixture
    def rows(self):
        return ROWS

    @pytest.fixture
    async def filled(self, url, shared_schema, clock):
        options = {"schema": shared_schema, "clock": clock, "exact_below": 0}
        async with PostgreSQLStore(url, **options) as store:
            yield store

    @pytest.fixture
    async def own(self, store):
        await fill_all(store)
        return store

    @pytest.mark.slow
    async def test_the_index_answers_where_hits_are_frequent(self, filled, rows, compared):
        found = 0
        for query in np.random.default_rng(9).normal(size=(20, 16)):
            hits = await filled.search_by_embedding(NS, query.tolist())
            assert [hit.score for hit in hits] == sorted((h.score for h in hits), reverse=True)
            found += len(set(keys(hits)) & set(nearest(rows, query)[:10]))
        assert found / 200 >= 0.95
        assert compared == []

    @pytest.mark.slow
    async def test_the_index_is_used(self, store):
        await fill(store, NS, ROWS)
        sql = "SELECT idx_scan FROM pg_stat_all_indexes WHERE indexrelid = $1::text::regclass"
        name = store._connection.sql("{vectors_by_halves}")[:-1] + '_16"'
        await store.search_by_embedding(NS, [1.0] * 16)
        async with asyncio.timeout(30):
            while not await store._connection.fetchval(sql, name):  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.05)

    @pytest.mark.slow
    async def test_a_page_continues_the_one_before_it(self, filled, rows, compared):
        query = np.random.default_rng(10).normal(size=16).tolist()
        pages = [
            await filled.search_by_embedding(NS, query, 40, offset=start)
            for start in range(0, 640, 40)
        ]
        assert [len(page) for page in pages] == [40] * 15 + [0]
        seen = [key for page in pages for key in keys(page)]
        assert len(set(seen)) == 600
        # The first two pages are the index's; the others begin where it ends.
        assert compared == [100] * 14
        assert len(set(seen[:100]) & set(nearest(rows, query)[:100])) >= 90
        for page in pages:
            assert [hit.score for hit in page] == sorted((h.score for h in page), reverse=True)

    async def test_rare_hits_are_all_found(self, filled, rows, compared):
        query = np.random.default_rng(11).normal(size=16)
        for condition, wanted in (
            ({"tenth": True}, [k for k in nearest(rows, query) if int(k) % 10 == 0]),
            ({"n": 599}, ["599"]),
            ({"n": {"$in": [3, 5, 600]}}, [k for k in nearest(rows, query) if k in ("3", "5")]),
            ({"n": -1}, []),
        ):
            for limit in (10, 100, 1000):
                hits = await filled.search_by_embedding(
                    NS, query.tolist(), limit, metadata_filter=condition
                )
                assert keys(hits) == wanted[:limit]
        assert compared == [0] * 12

    @pytest.mark.slow
    async def test_expired_and_replaced_vectors_do_not_take_a_place(self, own, rows, clock):
        query = np.random.default_rng(12).normal(size=16)
        best = nearest(rows, query)
        put = [Put(namespace=NS, key=key, value=1, ttl=5) for key in best[:50]]
        await own.put_batch(put)
        for key in best[50:60]:
            vector = rows[int(key)].tolist()
            await own.put_with_embedding(NS, key, 1, vector, ttl=5)
        clock.advance(5)
        hits = await own.search_by_embedding(NS, query.tolist(), 20)
        assert len(hits) == 20
        assert set(keys(hits)) <= set(best[60:90])

    async def test_a_tree_is_searched_as_one(self, filled, rows):
        query = np.random.default_rng(13).normal(size=16).tolist()
        hits = await filled.search_by_embedding(NS, query, 30, recursive=True)
        assert len(hits) == 30
        assert {hit.item.namespace for hit in hits} <= {NS, (*NS, "below")}
        wide = await filled.search_by_embedding(NS, query, 1000, recursive=True)
        assert len(wide) == 650

    async def test_equal_vectors_come_newest_first_on_every_page(self, store):
        same = np.tile(np.random.default_rng(14).normal(size=8), (120, 1))
        await fill(store, NS, same)
        query = same[0].tolist()
        for below in (0, 10**9):
            store._vectors._exact_below = below
            store._vectors._sizes.discard("8 False vectors\x01")
            hits = await store.search_by_embedding(NS, query, 5)
            assert all(hit.score == 1.0 for hit in hits)
        pages = [await store.search_by_embedding(NS, query, 4, offset=n) for n in (0, 4, 8)]
        assert [keys(page) for page in pages] == [
            [f"{n}" for n in range(start, start - 4, -1)] for start in (119, 115, 111)
        ]

    async def test_a_query_of_another_dimension_names_both(self, store):
        await store.put_with_embedding(NS, "a", 1, [1.0, 0.0])
        with pytest.raises(InvalidEmbeddingError, match=r"3 dimensions.* 2"):
            await store.search_by_embedding(NS, [1.0, 0.0, 0.0])
        assert await store.search_by_embedding(("none",), [1.0, 0.0, 0.0]) == []
        await store.delete(NS, "a")
        assert await store.search_by_embedding(NS, [1.0, 0.0, 0.0]) == []

    @pytest.mark.slow
    async def test_lengths_beyond_those_of_vectors_are_indexed_more_coarsely(self, store, compared):
        rows = np.random.default_rng(15).normal(size=(130, 2100))
        await fill(store, NS, rows)
        query = np.random.default_rng(16).normal(size=2100)
        hits = await store.search_by_embedding(NS, query.tolist())
        assert len(set(keys(hits)) & set(nearest(rows, query)[:10])) >= 9
        cosine = rows[int(hits[0].item.key)] @ query / np.linalg.norm(query)
        cosine /= np.linalg.norm(rows[int(hits[0].item.key)])
        assert hits[0].score == pytest.approx(cosine, abs=1e-5)
        assert compared == []

    async def test_a_small_scope_is_always_compared(self, url, schema, compared):
        async with PostgreSQLStore(url, schema=schema, exact_below=5) as store:
            for n in range(4):
                await store.put_with_embedding(NS, f"{n}", n, [1.0, n])
            assert len(await store.search_by_embedding(NS, [1.0, 0.0])) == 4
            assert compared == [0]
            assert store._vectors._sizes.get("2 False vectors\x01") == (4, 255)
