"""A database that changed since it was opened last."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from locus_memory.backends.postgresql.checkpoints import PostgreSQLCheckpointer
from locus_memory.backends.postgresql.store import PostgreSQLStore
from locus_memory.errors import BackendError, StoreCapabilityError
from locus_memory.events import subscribe
from locus_memory.store.item import Delete, Put

pytestmark = pytest.mark.usefixtures("own_tables")

NS = ("opening",)


@pytest.fixture
async def database(url, schema):
    """The URL of a database of the test's own."""
    owner = await asyncpg.connect(url)
    await owner.execute(f"CREATE DATABASE {schema}")
    yield url.replace("/postgres", f"/{schema}")
    await owner.execute(f"DROP DATABASE {schema} WITH (FORCE)")
    await owner.close()


@pytest.fixture
def events():
    """The names of what happens."""
    names = []
    stop = subscribe(lambda event: names.append(event.name))
    yield names
    stop()


async def run(url, *statements):
    connection = await asyncpg.connect(url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def use(store, key):
    """Write, read and search a vector in each way there is."""
    await store.put_with_embedding(NS, key, 1, [3.0, 4.0])
    put = Put(namespace=NS, key=f"{key} 2", value=2, embedding=[4.0, 3.0], if_version=0)
    await store.write_batch([put, Delete(namespace=NS, key="nothing")])
    assert await store.get_embedding(NS, f"{key} 2") == pytest.approx([0.8, 0.6])
    hits = await store.search_by_embedding(NS, [4.0, 3.0], 1)
    assert [hit.item.value for hit in hits] == [2]


async def fill(database):
    async with PostgreSQLStore(database) as store:
        await use(store, "old")


@pytest.mark.slow
async def test_an_extension_that_was_dropped_and_made_again(database, events):
    await fill(database)
    await run(database, "DROP EXTENSION vector CASCADE", "CREATE EXTENSION vector")
    async with PostgreSQLStore(database) as store:
        assert store.capabilities.semantic_search
        assert await store.get_embedding(NS, "old") is None
        await use(store, "new")
        assert await store.get(NS, "old") == 1
    assert events == ["postgresql.vectors_lost"]


@pytest.mark.slow
async def test_it_is_mended_once_by_many(database, events):
    await fill(database)
    await run(database, "DROP EXTENSION vector CASCADE")
    stores = [PostgreSQLStore(database, pool_size=2) for _ in range(6)]
    await asyncio.gather(*(use(store, f"{n}") for n, store in enumerate(stores)))
    assert events == ["postgresql.vectors_lost"]
    for store in stores:
        await store.close()


@pytest.mark.slow
async def test_a_role_that_may_not_mend_it_does_without_vectors(database, schema, events):
    await fill(database)
    await run(
        database,
        *("DROP EXTENSION vector CASCADE", "CREATE EXTENSION vector"),
        f"CREATE ROLE {schema} LOGIN",
        f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {schema}",
        f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {schema}",
    )
    async with PostgreSQLStore(database.replace("locus@", f"{schema}@")) as store:
        assert not store.capabilities.semantic_search
        assert await store.get(NS, "old") == 1
        assert await store.put(NS, "new", 1, if_version=0) == 1
        with pytest.raises(StoreCapabilityError):
            await store.get_embedding(NS, "old")
    assert events == ["postgresql.no_vectors"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE SCHEMA there", "ALTER EXTENSION vector SET SCHEMA there"],
        [
            "CREATE SCHEMA here",
            "ALTER EXTENSION vector SET SCHEMA here",
            'ALTER SCHEMA here RENAME TO "over ""there"',
        ],
    ],
)
async def test_the_extension_may_move(database, statements, events):
    await fill(database)
    await run(database, *statements)
    async with PostgreSQLStore(database) as store:
        assert await store.get_embedding(NS, "old") == pytest.approx([0.6, 0.8])
        await use(store, "new")
    assert events == []


@pytest.mark.slow
async def test_the_schema_of_the_tables_may_be_renamed(database, events):
    async with PostgreSQLStore(database, schema="before") as store:
        await use(store, "old")
        await PostgreSQLCheckpointer(pool=store._connection, state_type=None).save(
            {"n": 1}, "thread"
        )
    await run(database, "ALTER SCHEMA before RENAME TO after")
    async with PostgreSQLStore(database, schema="after") as store:
        assert await store.get_embedding(NS, "old") == pytest.approx([0.6, 0.8])
        await use(store, "new")
        checkpointer = PostgreSQLCheckpointer(pool=store._connection, state_type=None)
        assert await checkpointer.load("thread") == {"n": 1}
        await checkpointer.save({"n": 2}, "thread")
    assert events == []


@pytest.mark.slow
async def test_a_role_that_may_not_follow_a_renamed_schema_is_told(database, schema):
    async with PostgreSQLStore(database, schema="before") as store:
        await use(store, "old")
    await run(
        database,
        "ALTER SCHEMA before RENAME TO after",
        f"CREATE ROLE {schema} LOGIN",
        f"GRANT USAGE ON SCHEMA after TO {schema}",
        f"GRANT ALL ON ALL TABLES IN SCHEMA after TO {schema}",
    )
    guest = PostgreSQLStore(database.replace("locus@", f"{schema}@"), schema="after")
    with pytest.raises(BackendError, match="permission denied"):
        await guest.get(NS, "old")
