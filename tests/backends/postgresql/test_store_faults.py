"""The store where the server, the network or the caller fails."""

from __future__ import annotations

import asyncio

import pytest

from locus_memory.backends.postgresql.store import PostgreSQLStore
from locus_memory.errors import BackendError, BackendUnavailableError
from locus_memory.store.item import Put
from locus_memory.testing.servers import PostgreSQLServer

pytestmark = pytest.mark.usefixtures("own_tables")

NS = ("faults",)


@pytest.fixture
async def store(url, schema):
    async with PostgreSQLStore(url, schema=schema, pool_size=4) as store:
        yield store


@pytest.mark.slow
async def test_every_acknowledged_write_outlives_a_crash():
    with PostgreSQLServer() as server:
        async with PostgreSQLStore(server.url, pool_size=4) as store:
            acknowledged, errors = [], []

            async def write(task):
                for n in range(200):
                    key = f"{task}-{n}"
                    put = Put(namespace=NS, key=key, value=n, embedding=[1.0, n])
                    try:
                        await store.put_batch([put, (NS, f"{key}b", n)])
                    except BackendError as error:
                        errors.append(error)
                        return
                    acknowledged.append(key)

            tasks = [asyncio.ensure_future(write(task)) for task in range(6)]
            while len(acknowledged) < 100:  # noqa: ASYNC110 - any moment will do
                await asyncio.sleep(0)
            server.kill()
            await asyncio.gather(*tasks)
            assert len(errors) == 6
            assert all(isinstance(error, BackendUnavailableError) for error in errors)
            with pytest.raises(BackendUnavailableError):
                await store.get(NS, "0-0")
            server.start()
            for key in acknowledged:
                assert await store.exists(NS, key)
                assert await store.exists(NS, f"{key}b")
                assert await store.get_embedding(NS, key) is not None
            assert await store.put(NS, "after", 1) == 1


async def test_a_connection_that_is_cut_is_unavailable_and_the_next_call_works(proxy, schema):
    async with PostgreSQLStore(proxy.url, schema=schema, pool_size=2) as store:
        await store.put(NS, "k", 1)
        calls = [asyncio.ensure_future(store.put(NS, f"{n}", n)) for n in range(8)]
        await asyncio.sleep(0)
        proxy.cut()
        for result in await asyncio.gather(*calls, return_exceptions=True):
            assert result == 1 or isinstance(result, BackendUnavailableError)
        assert await store.get(NS, "k") == 1


async def test_an_outage_never_looks_like_nothing_there(proxy, schema):
    async with PostgreSQLStore(proxy.url, schema=schema) as store:
        await store.put_with_embedding(NS, "k", "fox", [1.0, 0.0])
        proxy.refusing = True
        proxy.cut()
        for call in (
            store.get(NS, "k"),
            store.exists(NS, "k"),
            store.delete(NS, "k"),
            store.list_keys(NS),
            store.search(NS),
            store.search(NS, "fox"),
            store.list_namespaces(),
            store.get_batch([(NS, "k")]),
            store.search_by_embedding(NS, [1.0, 0.0]),
            store.get_embedding(NS, "k"),
            store.clear_namespace(NS),
        ):
            with pytest.raises(BackendUnavailableError):
                await call
        proxy.refusing = False
        assert await store.get(NS, "k") == "fox"


async def test_loops_of_several_threads_write_one_item(store):
    def work():
        async def write():
            for n in range(20):
                await store.put(NS, "k", n)
                await store.search_by_embedding(NS, [1.0])

        asyncio.run(write())

    await asyncio.gather(*(asyncio.to_thread(work) for _ in range(3)))
    assert (await store.get_item(NS, "k")).version == 60
