"""What is cancelled on its way never lands after a later write that was acknowledged."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from random import Random

import pytest
from redis.asyncio import Redis

from locus_memory.backends.redis.backend import RedisBackend
from locus_memory.backends.redis.checkpoints import RedisCheckpointer
from locus_memory.backends.redis.connection.connection import RedisConnection
from locus_memory.backends.redis.store import RedisStore
from locus_memory.errors import BackendUnavailableError

NS = ("notes",)
ROUNDS = 20
LATE = 0.02
"""Seconds that a packet is late; nothing depends on how long it is."""

BESIDE = []
"""Calls that run next to the one that is cancelled."""


@pytest.fixture
async def relay(redis_server, proxy_to):
    async with proxy_to(redis_server) as started:
        yield started


@asynccontextmanager
async def through_the_pool(relay, prefix, pool_size):
    async with RedisStore(relay.url, key_prefix=prefix, pool_size=pool_size) as store:
        yield store


@asynccontextmanager
async def through_a_client(relay, prefix, pool_size):
    async with (
        Redis.from_url(relay.url, max_connections=pool_size) as client,
        RedisStore(client=client, key_prefix=prefix) as store,
    ):
        yield store


async def put(store, value):
    await store.put(NS, "k", value)


async def put_batch(store, value):
    await store.put_batch([(NS, "k", value), (NS, "other", value)])


async def put_much(store, value):
    await store.put(NS, "k", value, {"filler": "x" * 3_000_000})


async def put_among_others(store, value):
    """Put when all that there is to send waits for a connection that is free."""
    BESIDE.extend(asyncio.create_task(store.put(NS, f"{n}", "beside")) for n in range(3))
    await asyncio.sleep(0)
    await store.put(NS, "k", value)


async def cancel_late(relay, call):
    """Cancel a call once its packet is on its way, but has not arrived."""
    relay.hold(b"early")
    task = asyncio.create_task(call)
    await relay.holds.wait()
    task.cancel()
    asyncio.get_running_loop().call_later(LATE, relay.release)
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.slow
@pytest.mark.parametrize("through", [through_the_pool, through_a_client])
@pytest.mark.parametrize("call", [put, put_batch, put_much, put_among_others])
async def test_a_later_put_stays(relay, prefix, through, call):
    async with through(relay, prefix, 8) as store:
        # The server knows the script by then.
        await store.put(NS, "first", 1)
        for n in range(ROUNDS):
            await cancel_late(relay, call(store, "early"))
            assert await store.put(NS, "k", f"later {n}") == 2 * n + 2
            await relay.delivered.wait()
            assert await store.get(NS, "k") == f"later {n}"
            await asyncio.gather(*BESIDE)
            BESIDE.clear()


@pytest.mark.slow
async def test_a_later_delete_stays(relay, prefix):
    async with RedisStore(relay.url, key_prefix=prefix) as store:
        for _ in range(ROUNDS):
            await store.put(NS, "k", 1)
            await cancel_late(relay, store.put(NS, "k", "early"))
            assert await store.delete(NS, "k")
            assert not await store.exists(NS, "k")


@pytest.mark.slow
async def test_a_clear_that_was_cancelled_clears_nothing_later(relay, prefix):
    async with RedisStore(relay.url, key_prefix=f"{prefix}early:") as store:
        for n in range(ROUNDS):
            await store.put(NS, "k", n)
            await cancel_late(relay, store.clear_namespace(NS))
            delivered, relay.mark = relay.delivered, None
            await store.put(NS, "k", n)
            await delivered.wait()
            assert await store.get(NS, "k") == n


@pytest.mark.slow
async def test_a_later_save_stays(relay, prefix):
    async with RedisCheckpointer(relay.url, key_prefix=prefix, state_type=None) as checkpointer:
        await checkpointer.save({}, "t")
        for n in range(ROUNDS):
            await cancel_late(relay, checkpointer.save({"early": n}, "t", f"early {n}"))
            await checkpointer.save({"later": n}, "t", f"later {n}")
            assert await checkpointer.list_checkpoints("t", 2) == [f"later {n}", f"early {n}"]
            assert await checkpointer.load("t") == {"later": n}


async def test_what_is_not_sent_yet_is_dropped(relay, prefix):
    async with RedisStore(relay.url, key_prefix=prefix, pool_size=1) as store:
        await store.put(NS, "k", "before")
        relay.hold(b"early")
        sent = asyncio.create_task(store.put(NS, "sent", "early"))
        await relay.holds.wait()
        waiting = asyncio.create_task(store.put(NS, "k", "waiting"))
        await asyncio.sleep(0)
        waiting.cancel()
        # Before the packet that it would have come after.
        with pytest.raises(asyncio.CancelledError):
            await waiting
        relay.release()
        await sent
        assert await store.get(NS, "k") == "before"


async def test_a_read_that_is_cancelled_ends_at_once(relay, prefix):
    async with RedisStore(relay.url, key_prefix=prefix) as store:
        await store.put(NS, "early", 1)
        relay.hold(b"early")
        for read in (store.get(NS, "early"), store.scan(NS, prefix="early")):
            task = asyncio.create_task(read)
            await relay.holds.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        relay.release()
        assert await store.get(NS, "early") == 1


@pytest.mark.slow
async def test_a_cancelled_write_waits_no_longer_than_the_server_may_take(relay, prefix):
    async with RedisStore(relay.url, key_prefix=prefix, command_timeout=1.0) as store:
        await store.put(NS, "k", 1)
        relay.hold(b"early")
        for _ in range(3):
            task = asyncio.create_task(store.put(NS, "k", "early"))
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises((asyncio.CancelledError, BackendUnavailableError)):
                async with asyncio.timeout(10):
                    await task
        relay.release()
        await store.get(NS, "k")


async def test_closing_waits_for_what_was_cancelled_twice(relay, prefix, redis_server):
    store = RedisStore(relay.url, key_prefix=prefix)
    await store.put(NS, "k", 1)
    relay.hold(b"early")
    task = asyncio.create_task(store.put(NS, "k", "early"))
    await relay.holds.wait()
    task.cancel()
    closing = asyncio.create_task(store.close())
    await asyncio.sleep(LATE)
    assert not closing.done()
    relay.release()
    await closing
    with pytest.raises(asyncio.CancelledError):
        await task
    async with RedisStore(redis_server.url, key_prefix=prefix) as other:
        assert await other.get(NS, "k") == "early"


async def assert_all_are_back(link, size):
    """Every turn and every connection is back, none too many."""
    async with asyncio.timeout(30):
        for _ in range(size):
            await link._turns.acquire()
    assert (link._busy, link._turns.waiting) == (0, 0)
    assert len(link._pool._available_connections) == len(link.connections) <= size
    for _ in range(size):
        link._turns.release()


@pytest.mark.slow
async def test_five_hundred_cancels_leave_the_pool_whole(redis_server, prefix):
    random, size = Random(7), 4
    async with RedisBackend(redis_server.url, key_prefix=prefix, pool_size=size) as backend:
        store, checkpointer = backend.store, backend.checkpointer
        acknowledged = {}

        async def load(worker):
            for n in range(10_000):
                await store.put(NS, f"load {worker}", n)
                acknowledged[f"load {worker}"] = n

        loads = [asyncio.create_task(load(worker)) for worker in range(6)]
        for n in range(500):
            calls = (
                store.put(NS, "k", n),
                store.put_batch([(NS, "k", n), (NS, "other", "x" * 50_000)]),
                checkpointer.save({"n": n}, "t"),
                store.get(NS, "k"),
                store.search(NS, limit=3),
            )
            tasks = [asyncio.create_task(call) for call in calls]
            for _ in range(random.randrange(12)):
                await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            async with asyncio.timeout(30):
                await asyncio.gather(*tasks, return_exceptions=True)
            if n % 50 == 0:
                assert await store.put(NS, "k", f"kept {n}")
                assert await store.get(NS, "k") == f"kept {n}"
        for task in loads:
            task.cancel()
        await asyncio.gather(*loads, return_exceptions=True)
        for key, value in acknowledged.items():
            assert await store.get(NS, key) in (value, value + 1)
        await assert_all_are_back(store._connection._clients.here(), size)
        # All of them at once, so that each connection is asked.
        found = await asyncio.gather(*(store.get(NS, "k") for _ in range(200)))
        assert len(set(map(str, found))) == 1


async def test_cancels_on_a_cluster_leave_no_turn_taken(three_masters, prefix):
    async with RedisConnection(three_masters.url, key_prefix=prefix, pool_size=2) as connection:
        key = connection.key("count")
        for n in range(200):
            task = asyncio.create_task(connection.execute("INCR", key))
            for _ in range(n % 9):
                await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        async with asyncio.timeout(10):
            counted = await asyncio.gather(*(connection.execute("INCR", key) for _ in range(20)))
        assert sorted(counted) == list(range(min(counted), min(counted) + 20))
