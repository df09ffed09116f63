"""Connections that the server ends: while they are idle, and while a statement runs on them."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from locus_memory.backends.postgresql.backend import PostgreSQLBackend
from locus_memory.errors import BackendUnavailableError

pytestmark = pytest.mark.usefixtures("own_tables")

NS = ("lost",)
KILL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1"
LEFT = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1"
WAITING = """
SELECT pid FROM pg_stat_activity
WHERE application_name = $1 AND wait_event_type = 'Lock' AND pid <> ALL($2::int[])
"""
CALLS = {
    "get": lambda backend: backend.store.get(NS, "k"),
    "get_item": lambda backend: backend.store.get_item(NS, "k"),
    "search": lambda backend: backend.store.search(NS, "walrus"),
    "by vector": lambda backend: backend.store.search_by_embedding(NS, [1.0, 0.0]),
    "keys": lambda backend: backend.store.list_keys(NS),
    "load": lambda backend: backend.checkpointer.load("t"),
    "threads": lambda backend: backend.checkpointer.list_threads(),
    "put": lambda backend: backend.store.put(NS, "k", "walrus"),
    "put_batch": lambda backend: backend.store.put_batch([(NS, "a", 1), (NS, "b", 2)]),
    "delete": lambda backend: backend.store.delete(NS, "b"),
    "save": lambda backend: backend.checkpointer.save({"n": 2}, "t"),
    "prune": lambda backend: backend.checkpointer.prune("t", keep_last=1),
}
READS = list(CALLS)[:7]
WRITES = list(CALLS)[7:-1]


@pytest.fixture
async def admin(url):
    connection = await asyncpg.connect(url)
    yield connection
    await connection.close()


@pytest.fixture
async def backend(url, schema):
    where = f"{url}?application_name={schema}"
    options = {"state_type": None}
    async with PostgreSQLBackend(
        where, schema=schema, pool_size=4, checkpointer_options=options
    ) as backend:
        await backend.store.put_with_embedding(NS, "k", "walrus", [1.0, 0.0])
        await backend.checkpointer.save({"n": 1}, "t")
        yield backend


async def warm(backend):
    await asyncio.gather(*(backend.store.get(NS, "k") for _ in range(16)))


@pytest.mark.parametrize("name", CALLS)
async def test_what_the_server_ended_meanwhile_is_replaced(backend, admin, schema, until, name):
    await warm(backend)
    await admin.execute(f"SET application_name = '{schema}_admin'")
    await admin.fetch(KILL, schema)

    async def gone():
        return not await admin.fetchval(LEFT, schema)

    await until(gone)
    await asyncio.gather(*(CALLS[name](backend) for _ in range(6)))


async def hit(backend, admin, schema, until, name, *, times=1):
    """Start a call, end its connection each time it waits for a lock, and return its task."""
    items, checkpoints = map(backend._connection.sql, ("{items}", "{checkpoints}"))
    threads = backend._connection.sql("{threads}")
    async with admin.transaction():
        await admin.execute(f"LOCK TABLE {items}, {checkpoints}, {threads}")
        task = asyncio.create_task(CALLS[name](backend))
        killed = []
        for _ in range(times):

            async def waits():
                # Within a transaction, what is looked at once stays as it was.
                await admin.execute("SELECT pg_stat_clear_snapshot()")
                waiting = await admin.fetch(WAITING, schema, killed)
                killed.extend(row["pid"] for row in waiting)
                return waiting

            await until(waits)
            await admin.fetch(KILL, schema)
    return task


@pytest.mark.parametrize("name", READS)
async def test_a_read_that_is_hit_runs_once_more(backend, admin, schema, until, name):
    before = await CALLS[name](backend)
    task = await hit(backend, admin, schema, until, name)
    assert await task == before


@pytest.mark.parametrize("name", WRITES)
async def test_a_write_that_is_hit_is_told(backend, admin, schema, until, name):
    task = await hit(backend, admin, schema, until, name)
    with pytest.raises(BackendUnavailableError):
        await task
    await CALLS[name](backend)


async def test_a_read_that_is_hit_again_and_again_is_told(backend, admin, schema, until):
    task = await hit(backend, admin, schema, until, "get", times=2)
    with pytest.raises(BackendUnavailableError):
        await task
