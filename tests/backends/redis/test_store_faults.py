"""What can happen to a server under a store."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import time

import pytest
from redis import Redis
from redis.exceptions import ConnectionError as DriverConnectionError

from locus_memory.backends.redis.store import RedisStore
from locus_memory.errors import BackendError, BackendUnavailableError, BackendWriteError
from locus_memory.events import subscribe
from locus_memory.store.item import Delete, Put
from locus_memory.testing.fakes import FakeClock
from locus_memory.testing.servers import RedisServer

NS = ("notes",)


def rich(n):
    """A put that touches every index."""
    text = f"fox number {n} {'filler ' * 30}"
    vector = [1.0, float(n), 0.5]
    return Put(namespace=NS, key=f"{n:05}", value=text, ttl=500, embedding=vector)


async def check_whole(store, versions):
    """Every acknowledged item is there, and in every index; there is no half of one."""
    items = await store.scan(NS, 100_000)
    found = {item.key: item.version for item in items}
    assert all(found.get(key, 0) >= version for key, version in versions.items())
    everything = set(found)
    assert {item.key for item in await store.search(NS, limit=100_000)} == everything
    assert {item.key for item in await store.search(NS, "fox", 100_000)} == everything
    hits = await store.search_by_embedding(NS, [1.0, 1.0, 1.0], 100_000)
    assert {hit.item.key for hit in hits} == everything


@pytest.mark.slow
async def test_a_full_server_refuses_whole_writes(own_server, raw):
    client = raw(own_server)
    async with RedisStore(own_server.url) as store:
        versions = {}
        for n in range(100):
            await store.put_batch([rich(n)])
            versions[f"{n:05}"] = 1
        client.config_set("maxmemory", client.info("memory")["used_memory"] + 200_000)

        async def fill():
            for n in range(100, 5000):
                await store.put_batch([rich(n), rich(n % 100)])
                versions[f"{n:05}"] = 1

        with pytest.raises(BackendWriteError):
            await fill()
        await check_whole(store, versions)
        count = len(await store.list_keys(NS, 10_000))
        assert count == len(versions)
        # What makes room is allowed, and then there is room again.
        await store.write_batch([Delete(namespace=NS, key=f"{n:05}") for n in range(60)])
        assert len(await store.list_keys(NS, 10_000)) == count - 60
        client.config_set("maxmemory", 0)
        await store.put_batch([rich(0)])
        await check_whole(store, {"00000": 1})
        assert await store.clear_namespace(NS) == count - 59
        assert client.keys("*") == []


@pytest.mark.slow
async def test_a_full_server_lets_go(own_server, raw):
    clock = FakeClock()
    async with RedisStore(own_server.url, clock=clock) as store:
        await store.put_batch([rich(n) for n in range(600)])
        await store.put_batch([(NS, f"plain {n}", "fox") for n in range(3)])
        raw(own_server).config_set("maxmemory", 1)
        await store.compact()
        assert await store.delete_batch([(NS, "absent")]) == 0
        assert not await store.delete(NS, "absent")
        assert await store.delete_batch([(NS, "plain 0"), (NS, "00000")]) == 2
        await store.compact()
        clock.advance(500)
        await store.compact()
        assert [item.key for item in await store.search(NS, "fox", 9)] == ["plain 2", "plain 1"]
        with pytest.raises(BackendWriteError):
            await store.put(NS, "more", 1)
    async with RedisStore(own_server.url, clock=FakeClock(), key_prefix="other:") as store:
        raw(own_server).config_set("maxmemory", 0)
        await store.put_batch([rich(n) for n in range(3)])
        raw(own_server).config_set("maxmemory", 1)
        await store.compact()
        assert await store.delete_batch([(NS, "absent")]) == 0


async def test_a_server_that_cannot_be_written_is_still_read(own_server, raw):
    clock, events = FakeClock(), []
    async with RedisStore(own_server.url, clock=clock) as store:
        await store.put_batch([Put(namespace=NS, key="gone", value=1, ttl=5), (NS, "kept", "fox")])
        clock.advance(5)
        raw(own_server).replicaof("127.0.0.1", 1)
        unsubscribe = subscribe(events.append)
        try:
            assert await store.list_keys(NS) == ["kept"]
            assert [item.key for item in await store.scan(NS)] == ["kept"]
            assert [item.key for item in await store.search(NS)] == ["kept"]
            assert await store.list_namespaces() == [NS]
            assert {event.name for event in events} == {"redis.not_cleaned"}
            with pytest.raises(BackendWriteError):
                await store.put(NS, "kept", 2)
        finally:
            unsubscribe()
        raw(own_server).replicaof("NO", "ONE")
        assert await store.put(NS, "kept", 2) == 2


async def test_text_search_on_a_server_that_cannot_be_written(own_server, raw):
    clock = FakeClock()
    async with RedisStore(own_server.url, clock=clock) as store:
        await store.put_batch(
            [Put(namespace=NS, key="gone", value="fox", ttl=5), (NS, "kept", "fox")]
        )
        await store.put_with_embedding(NS, "vector", 1, [1.0])
        clock.advance(5)
        raw(own_server).replicaof("127.0.0.1", 1)
        assert [item.key for item in await store.search(NS, "fox")] == ["kept"]
        assert len(await store.search_by_embedding(NS, [1.0])) == 1
        with pytest.raises(BackendWriteError):
            await store.compact()


@pytest.mark.slow
async def test_what_was_acknowledged_outlives_a_crash(own_server):
    versions, enough = {}, asyncio.Event()
    async with RedisStore(own_server.url) as store:

        async def write(worker):
            for n in range(worker, 10_000, 8):
                try:
                    (version,) = await store.put_batch([rich(n % 500)])
                except BackendUnavailableError:
                    return
                key = f"{n % 500:05}"
                versions[key] = max(version, versions.get(key, 0))
                if len(versions) == 300:
                    enough.set()

        writers = [asyncio.create_task(write(worker)) for worker in range(8)]
        await enough.wait()
        own_server.kill()
        await asyncio.gather(*writers)
        with pytest.raises(BackendUnavailableError):
            await store.get(NS, "00000")
        with pytest.raises(BackendUnavailableError):
            await store.list_namespaces()
        own_server.start()
        await check_whole(store, versions)
        assert await store.list_namespaces() == [NS]


async def test_a_cancelled_batch_is_done_or_not_done(own_server):
    async with RedisStore(own_server.url) as store:
        for pauses in range(12):
            puts = [Put(namespace=NS, key=f"{n}", value=f"fox {pauses}") for n in range(50)]
            task = asyncio.ensure_future(store.put_batch(puts))
            for _ in range(pauses):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            found = await store.get_batch([(NS, f"{n}") for n in range(50)])
            assert len(found) in {0, 50}
            assert len(set(found.values())) <= 1


async def test_keys_of_another_kind_are_an_error_and_no_loss(own_server, raw):
    async with RedisStore(own_server.url) as store:
        await store.put(NS, "k", 1)
        (item,) = raw(own_server).keys("locus:store:*:i:k")
        raw(own_server).set(item, "not ours")
        with pytest.raises(BackendError, match="WRONGTYPE"):
            await store.get(NS, "k")


@pytest.fixture
def old_redis(tmp_path):
    """A Redis of the system, which is older than the one of the other tests."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("needs a redis-server of the system")
    with RedisServer() as free:
        port = free.port
    command = (program, "--port", str(port), "--save", "", "--dir", str(tmp_path))
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        with Redis(port=port) as client:
            while True:
                try:
                    client.ping()
                except DriverConnectionError:
                    time.sleep(0.01)
                else:
                    break
        yield f"redis://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


async def test_an_old_redis_does_all_but_vectors(old_redis):
    clock = FakeClock()
    async with RedisStore(old_redis, clock=clock) as store:
        await store.put_batch(
            [Put(namespace=NS, key=f"{n}", value=f"fox {n}", ttl=n + 1) for n in range(600)]
        )
        assert [item.key for item in await store.search(NS, "fox 17", 1)] == ["17"]
        clock.advance(300)
        assert len(await store.search(NS, "fox", 1000)) == 300
        assert len(await store.list_keys(NS, 1000)) == 300
        assert await store.list_namespaces() == [NS]
        assert not store.capabilities.semantic_search
        assert await store.clear_namespace(NS) == 300
