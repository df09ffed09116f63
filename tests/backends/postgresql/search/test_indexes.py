"""Indexes of vectors that are built while others write, end in the middle, or meet each other."""

from __future__ import annotations

import asyncio

import asyncpg
import numpy as np
import pytest

from locus_memory.backends.postgresql.schema import Names
from locus_memory.backends.postgresql.search import indexes
from locus_memory.backends.postgresql.store import PostgreSQLStore
from locus_memory.errors import BackendError
from locus_memory.events import subscribe
from locus_memory.store.item import Put

pytestmark = pytest.mark.usefixtures("own_tables")

NS = ("vectors",)
ROWS = np.random.default_rng(5).normal(size=(150, 4))
QUERY = [1.0, 0.5, 0.0, -0.5]
NAME = "locus_vectors_by_halves_4"
STATES = """
SELECT c.relname::text, i.indisvalid FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
WHERE i.indrelid = $1::text::regclass AND (c.relname LIKE '%by_halves%'
  OR c.relname LIKE '%by_direction%' OR c.relname LIKE '%dead%')
"""
WAITS = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE $1 AND wait_event_type = 'Lock'"
END = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE query LIKE $1 AND pid <> pg_backend_pid()
"""


@pytest.fixture
def background(monkeypatch):
    """Every build is in the background, however small the table is."""
    monkeypatch.setattr(indexes, "_SMALL", -1)


@pytest.fixture
async def store(url, schema):
    async with PostgreSQLStore(url, schema=schema, exact_below=0) as store:
        await fill(store)
        yield store


@pytest.fixture
async def admin(url):
    connection = await asyncpg.connect(url)
    yield connection
    await connection.close()


@pytest.fixture
async def reader(url, store):
    """A transaction that has read something: a build waits until it ends."""
    connection = await asyncpg.connect(url)
    await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    await connection.execute("SELECT 1")
    await connection.fetchval(store._connection.sql("SELECT count(*) FROM {vectors}"))
    yield connection
    await connection.close()


async def fill(store):
    puts = [
        Put(namespace=NS, key=f"{n}", value=n, embedding=row.tolist()) for n, row in enumerate(ROWS)
    ]
    await store.put_batch(puts)


class Watch:
    """What the server says of the builds of a schema."""

    def __init__(self, admin, schema, until):
        self.admin, self.schema, self.until = admin, schema, until
        self.pattern = f"%CREATE INDEX CONCURRENTLY%{schema}%"

    async def states(self):
        rows = await self.admin.fetch(STATES, Names(self.schema).fill("{vectors}"))
        return {row[0]: row[1] for row in rows}

    async def waits(self):
        return await self.admin.fetchval(WAITS, self.pattern)

    async def begun(self):
        await self.until(self.waits)

    async def over(self):
        async def is_over():
            return not await self.waits()

        await self.until(is_over)

    async def end(self):
        return await self.admin.fetchval(END, self.pattern)


@pytest.fixture
def watch(admin, schema, until):
    return Watch(admin, schema, until)


async def found(store):
    return {hit.item.key for hit in await store.search_by_embedding(NS, QUERY, 10)}


def nearest():
    return {f"{n}" for n in np.argsort(-(ROWS @ QUERY) / np.linalg.norm(ROWS, axis=1))[:10]}


@pytest.mark.usefixtures("background")
class TestBuild:
    @pytest.mark.slow
    async def test_others_read_and_write_meanwhile(self, store, reader, watch):
        assert await found(store) == nearest()
        await watch.begun()
        assert await store.put_with_embedding(NS, "new", 1, QUERY) == 1
        assert await store.put(NS, "0", "without") == 2
        assert await store.delete(NS, "1")
        assert "new" in await found(store)
        assert await watch.states() == {NAME: False}
        await reader.execute("COMMIT")
        await store.compact()
        assert await watch.states() == {NAME: True}
        assert "new" in await found(store)

    @pytest.mark.slow
    async def test_another_process_neither_waits_nor_builds_a_second(
        self, store, url, reader, watch
    ):
        await found(store)
        await watch.begun()
        async with PostgreSQLStore(url, schema=watch.schema, exact_below=0) as other:
            assert await found(other) == nearest()
            await other._vectors.make_indexes()
            assert await watch.states() == {NAME: False}
            assert await watch.waits() == 1
            await reader.execute("COMMIT")
            await store.compact()
            assert await other._vectors._indexes.kind(4) == "halfvec"
        assert await watch.states() == {NAME: True}

    @pytest.mark.slow
    async def test_a_build_that_was_ended_is_done_again(self, store, url, reader, watch):
        events = []
        stop = subscribe(events.append)
        await found(store)
        await watch.begun()
        assert await watch.end() == 1

        async def is_told():
            return bool(events)

        await watch.until(is_told)
        stop()
        assert [event.name for event in events] == ["postgresql.no_vector_index"]
        assert await watch.states() == {NAME: False}
        await reader.execute("COMMIT")
        async with PostgreSQLStore(url, schema=watch.schema, exact_below=0) as other:
            assert await found(other) == nearest()
            await other.compact()
            assert await watch.states() == {NAME: True}
            assert await found(other) == nearest()

    async def test_the_server_may_still_build_for_a_process_that_ended(
        self, store, url, reader, watch
    ):
        statement = store._connection.sql(
            f'CREATE INDEX CONCURRENTLY "{NAME}" ON {{vectors}} USING hnsw '
            "((embedding::halfvec(4)) halfvec_ip_ops) WHERE dimension = 4"
        )
        orphan = await asyncpg.connect(url)
        building = asyncio.create_task(orphan.execute(statement))
        await watch.begun()
        assert await found(store) == nearest()
        await store._vectors.make_indexes()
        assert await watch.states() == {NAME: False}
        await reader.execute("COMMIT")
        await building
        await orphan.close()
        await store.compact()
        assert await watch.states() == {NAME: True}

    async def test_close_ends_it(self, url, reader, watch):
        async with PostgreSQLStore(url, schema=watch.schema, exact_below=0) as other:
            await found(other)
            await watch.begun()
        await watch.over()
        await reader.execute("COMMIT")
        assert await watch.states() == {NAME: False}

    async def test_a_small_pool_of_the_caller_says_so(self, store, url, schema, until):
        events = []
        stop = subscribe(events.append)
        pool = await asyncpg.create_pool(url, min_size=1, max_size=2)
        async with PostgreSQLStore(pool=pool, schema=schema, exact_below=0) as other:
            assert await found(other) == nearest()

            async def is_told():
                return bool(events)

            await until(is_told)
        stop()
        await pool.close()
        assert [event.name for event in events] == ["postgresql.no_vector_index"]
        assert isinstance(events[0].error, BackendError)

    @pytest.mark.slow
    async def test_a_pool_of_the_caller_lends_two(self, store, url, schema, watch):
        pool = await asyncpg.create_pool(url, min_size=1, max_size=4)
        async with PostgreSQLStore(pool=pool, schema=schema, exact_below=0) as other:
            await found(other)
            await other.compact()
            assert await found(other) == nearest()
        assert pool.get_idle_size() == pool.get_size()
        await pool.close()
        assert await watch.states() == {NAME: True}


@pytest.mark.slow
async def test_dropped_leftovers_of_several_builds(store, admin, watch):
    make = store._connection.sql('CREATE INDEX "locus_dead_index_%d" ON {vectors} (dimension)')
    for number in (1, 2):
        await admin.execute(make % number)
    assert await found(store) == nearest()
    assert await watch.states() == {NAME: True}


async def test_the_index_of_an_earlier_version_goes_on(store, admin, watch):
    await admin.execute(
        store._connection.sql(
            'CREATE INDEX "locus_vectors_by_direction_4" ON {vectors} USING hnsw '
            "((embedding::{vector}.vector(4)) {vector}.vector_ip_ops) WHERE dimension = 4"
        )
    )
    assert await found(store) == nearest()
    assert await watch.states() == {"locus_vectors_by_direction_4": True}
    assert await store._vectors._indexes.kind(4) == "vector"


@pytest.mark.slow
async def test_a_bulk_load_has_its_index_after_compact(url, schema, watch):
    async with PostgreSQLStore(url, schema=schema, exact_below=100) as store:
        await fill(store)
        assert await watch.states() == {}
        await store.compact()
        assert await watch.states() == {NAME: True}


async def test_small_namespaces_need_no_index(url, schema, watch):
    async with PostgreSQLStore(url, schema=schema, exact_below=151) as store:
        await fill(store)
        assert await found(store) == nearest()
        await store.compact()
        assert await watch.states() == {}
