"""Vector indexes of single namespaces, beside the one of all vectors."""

from __future__ import annotations

import asyncpg
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.backends.postgresql.items.naming import scope_of
from locus_memory.backends.postgresql.schema import Names
from locus_memory.backends.postgresql.search import indexes
from locus_memory.backends.postgresql.search import vector_queries as queries
from locus_memory.backends.postgresql.store import PostgreSQLStore
from locus_memory.backends.selection import path_of
from locus_memory.errors import ConfigurationError
from locus_memory.store.item import Put

pytestmark = pytest.mark.usefixtures("own_tables")

ALL = "locus_vectors_by_halves_4"
QUERY = [1.0, 0.5, 0.0, -0.5]
STATES = """
SELECT c.relname::text, i.indisvalid FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
WHERE i.indrelid = $1::text::regclass AND i.indpred IS NOT NULL
"""


def name_of(label):
    return queries.own_index_name("locus_", 4, scope_of(path_of((label,))))


A, B = name_of("a"), name_of("b")


@pytest.fixture
async def admin(url):
    connection = await asyncpg.connect(url)
    yield connection
    await connection.close()


class Vectors:
    """Vectors of several namespaces in a store, each numbered, and the truth about them."""

    def __init__(self, store, admin, schema):
        self.store, self.admin, self.names = store, admin, Names(schema)
        self.rows = {}

    async def put(self, label, count):
        rows = np.random.default_rng(len(label) + count).normal(size=(count, 4))
        puts = [
            Put(namespace=(label,), key=f"{n}", value={"third": n % 3 == 0}, embedding=row.tolist())
            for n, row in enumerate(rows)
        ]
        await self.store.put_batch(puts)
        self.rows[label] = rows
        await self.admin.execute(self.names.fill("ANALYZE {vectors}"))

    async def search(self, label, **options):
        hits = await self.store.search_by_embedding((label,), QUERY, 10, **options)
        return [hit.item.key for hit in hits]

    def nearest(self, label, step=1):
        rows = self.rows[label]
        order = np.argsort(-(rows @ QUERY) / np.linalg.norm(rows, axis=1))
        return [f"{n}" for n in order if n % step == 0][:10]

    async def indexes(self):
        rows = await self.admin.fetch(STATES, self.names.fill("{vectors}"))
        assert all(valid for _, valid in rows)
        return {name for name, _ in rows}


@pytest.fixture
async def vectors(url, schema, admin):
    async with PostgreSQLStore(url, schema=schema, exact_below=20) as store:
        yield Vectors(store, admin, schema)


async def test_a_namespace_that_the_index_of_all_serves_badly_gets_one(vectors):
    await vectors.put("a", 40)
    await vectors.put("many", 100)
    assert await vectors.search("a") == vectors.nearest("a")
    assert await vectors.indexes() == {ALL, A}
    assert await vectors.search("a") == vectors.nearest("a")
    assert await vectors.search("a", metadata_filter={"third": True}) == vectors.nearest("a", 3)


async def test_the_index_of_the_namespace_is_used(vectors, monkeypatch):
    await vectors.put("a", 400)
    await vectors.put("many", 800)
    await vectors.store.compact()
    plans, transact = [], vectors.store._connection.transact

    async def explained(work):
        class Explained:
            def __init__(self, connection):
                self.execute = connection.execute
                self.connection = connection

            async def fetch(self, statement, *arguments):
                rows = await self.connection.fetch(f"EXPLAIN {statement}", *arguments)
                plans.append("\n".join(row[0] for row in rows))
                return await self.connection.fetch(statement, *arguments)

        return await transact(lambda connection: work(Explained(connection)))

    monkeypatch.setattr(vectors.store._connection, "transact", explained)
    assert await vectors.search("a") == vectors.nearest("a")
    assert await vectors.search("many") == vectors.nearest("many")
    of_a, of_many = plans
    assert A in of_a
    assert ALL in of_many


@pytest.mark.parametrize(
    ("mine", "others"),
    [pytest.param(29, 100, id="small"), pytest.param(60, 50, id="most of the table")],
)
async def test_others_get_none(vectors, mine, others):
    await vectors.put("a", mine)
    await vectors.put("b", others // 2)
    await vectors.put("c", others - others // 2)
    assert await vectors.search("a") == vectors.nearest("a")
    await vectors.store.compact()
    assert A not in await vectors.indexes()


async def test_a_tree_has_none(vectors):
    await vectors.put("a", 40)
    await vectors.put("many", 100)
    assert await vectors.search("a", recursive=True) == vectors.nearest("a")
    assert await vectors.indexes() == {ALL}


async def test_a_refused_namespace_is_looked_at_again(vectors, monkeypatch):
    monkeypatch.setattr(indexes, "_USES", 3)
    await vectors.put("a", 60)
    await vectors.search("a")
    assert await vectors.indexes() == {ALL}
    await vectors.put("many", 100)
    for _ in range(300):
        assert await vectors.search("a") == vectors.nearest("a")
        if A in await vectors.indexes():
            return
    pytest.fail("no index was built")


async def test_there_are_only_so_many(url, schema, admin):
    async with PostgreSQLStore(url, schema=schema, exact_below=20, namespace_indexes=1) as store:
        vectors = Vectors(store, admin, schema)
        await vectors.put("a", 50)
        await vectors.put("b", 40)
        await vectors.put("many", 100)
        await store.compact()
        assert await vectors.search("b") == vectors.nearest("b")
        assert await vectors.indexes() == {ALL, A}


async def test_no_index_where_none_is_wanted(url, schema, admin):
    async with PostgreSQLStore(url, schema=schema, exact_below=20, namespace_indexes=0) as store:
        vectors = Vectors(store, admin, schema)
        await vectors.put("a", 50)
        await vectors.put("many", 100)
        assert await vectors.search("a") == vectors.nearest("a")
        await store.compact()
        assert await vectors.indexes() == {ALL}
    with pytest.raises(ConfigurationError, match="namespace_indexes at least 0"):
        PostgreSQLStore(url, namespace_indexes=-1)


async def test_compact_builds_them_and_drops_those_of_small_namespaces(vectors):
    await vectors.put("a", 40)
    await vectors.put("b", 35)
    await vectors.put("many", 100)
    await vectors.store.compact()
    assert {A, B} <= await vectors.indexes()
    await vectors.store.clear_namespace(("b",))
    await vectors.store.compact()
    assert A in await vectors.indexes()
    assert B not in await vectors.indexes()
    assert await vectors.search("a") == vectors.nearest("a")


async def test_the_place_of_a_cleared_namespace_is_free(url, schema, admin):
    async with PostgreSQLStore(url, schema=schema, exact_below=20, namespace_indexes=1) as store:
        vectors = Vectors(store, admin, schema)
        await vectors.put("a", 50)
        await vectors.put("many", 120)
        await vectors.search("a")
        assert await vectors.indexes() == {ALL, A}
        await store.clear_namespace(("a",))
        await vectors.put("b", 40)
        assert await vectors.search("b") == vectors.nearest("b")
        assert await vectors.indexes() == {ALL, B}


async def test_what_changes_afterwards_is_found(vectors):
    await vectors.put("a", 40)
    await vectors.put("many", 100)
    await vectors.search("a")
    store, best = vectors.store, vectors.nearest("a")
    await store.put_with_embedding(("a",), "new", {}, QUERY)
    await store.delete(("a",), best[0])
    await store.put(("a",), best[1], "without a vector")
    found = await vectors.search("a")
    assert found[0] == "new"
    assert found[1:9] == best[2:10]


@given(st.uuids(), st.integers(1, 4_000), st.from_regex(r"[a-z_][a-z0-9_]{0,29}", fullmatch=True))
def test_a_name_tells_the_namespace(scope, dimension, prefix):
    name = queries.own_index_name(prefix, dimension, scope.hex)
    assert len(name) <= 63
    assert queries.scope_of_index(prefix, name) == (str(scope), dimension)


@pytest.mark.parametrize(
    "name",
    ["locus_own_", "locus_own_x_4", f"{A}x", f"x{A}", ALL, "locus_own_" + "é" * 22 + "_4",
     "locus_own_" + "a" * 22 + "_", "other_own_" + "a" * 22 + "_4"],
)  # fmt: skip
def test_another_index_is_of_no_namespace(name):
    assert queries.scope_of_index("locus_", name) is None
