"""A server that somebody's script keeps busy, and one that evicts."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, contextmanager, suppress

import pytest
from redis import ResponseError
from redis.asyncio import Redis

from locus_memory.backends.redis.backend import RedisBackend
from locus_memory.backends.redis.connection import connection as connection_module
from locus_memory.backends.redis.connection.features import probe
from locus_memory.backends.redis.lua import Script
from locus_memory.backends.redis.store import RedisStore
from locus_memory.errors import BackendUnavailableError
from locus_memory.events import subscribe

NS = ("notes",)
COUNT = Script("return redis.call('INCR', KEYS[1])")


@contextmanager
def heard(handler):
    unsubscribe = subscribe(handler)
    try:
        yield
    finally:
        unsubscribe()


@asynccontextmanager
async def endless_script(server, client):
    """Let the server run a script that does not end; `client` is there to kill it."""
    client.config_set("busy-reply-threshold", 1)
    other = Redis.from_url(server.url)
    running = asyncio.ensure_future(other.eval("while true do end", 0))
    try:
        await asyncio.to_thread(wait_until_busy, client)
        yield
    finally:
        kill_script(client)
        await asyncio.gather(running, return_exceptions=True)
        await other.aclose()


def is_busy(client):
    try:
        return not client.ping()
    except ResponseError as error:
        return str(error).startswith("BUSY")


def wait_until_busy(client):
    while not is_busy(client):
        time.sleep(0.001)


def kill_script(client):
    with suppress(ResponseError):
        client.script_kill()
    while is_busy(client):
        time.sleep(0.001)


async def count_twice(store):
    connection = store._connection
    key = connection.key("count")
    calls = [COUNT.call([key]), ("INCR", key), COUNT.call([key])]
    return sorted(await connection.execute_many(calls))


CALLS = [
    (lambda store: store.get(NS, "k"), 1),
    (lambda store: store.put(NS, "k", 2), 2),
    (lambda store: store.list_keys(NS), ["k"]),
    (lambda store: store.list_namespaces(), [NS]),
    (lambda store: store.delete(NS, "k"), True),
    (count_twice, [1, 2, 3]),
]


@pytest.mark.parametrize(("call", "answer"), CALLS)
async def test_what_a_busy_server_refused_is_done_once_it_can(own_server, raw, call, answer):
    client, events = raw(own_server), []

    def let_go(event):
        events.append(event)
        kill_script(client)

    async with RedisStore(own_server.url) as store:
        await store.put(NS, "k", 1)
        async with endless_script(own_server, client):
            with heard(let_go):
                assert await call(store) == answer
    assert {event.name for event in events} == {"redis.busy"}


async def test_who_connects_to_a_busy_server_learns_the_truth(own_server, raw):
    client = raw(own_server)
    async with endless_script(own_server, client):
        with heard(lambda _: kill_script(client)):
            async with RedisStore(own_server.url) as store:
                assert store.capabilities.semantic_search
                assert store.capabilities.transactions


async def test_a_server_that_stays_busy_is_not_available(own_server, raw, monkeypatch):
    monkeypatch.setattr(connection_module, "_PAUSES", (0, 0, 0))
    client, events = raw(own_server), []
    async with RedisStore(own_server.url) as store:
        await store.put(NS, "k", 1)
        async with endless_script(own_server, client):
            with heard(events.append):
                for call in (store.get(NS, "k"), store.put(NS, "k", 2), store.list_namespaces()):
                    with pytest.raises(BackendUnavailableError, match="BUSY"):
                        await call
                with pytest.raises(BackendUnavailableError, match="BUSY"):
                    await RedisStore(own_server.url).open()
        assert [event.name for event in events] == ["redis.busy"] * 12
        assert await store.get(NS, "k") == 1


@pytest.mark.parametrize(
    ("policy", "told"),
    [("allkeys-lru", 1), ("allkeys-random", 1), ("volatile-lru", 0), ("noeviction", 0)],
)
async def test_a_server_that_evicts_is_told_once(own_server, raw, policy, told):
    raw(own_server).config_set("maxmemory-policy", policy)
    events = []
    with heard(events.append):
        async with RedisBackend(own_server.url) as backend:
            await backend.store.put(NS, "k", 1)
            await backend.checkpointer.list_threads()
            assert await asyncio.to_thread(asyncio.run, backend.store.get(NS, "k")) == 1
    assert [event.name for event in events] == ["redis.evicts"] * told
    assert all(event.attributes["maxmemory_policy"] == policy for event in events)


async def test_a_server_that_tells_nothing_of_its_memory():
    async def ask(*command):
        raise ResponseError("NOPERM this user has no permissions to run the command")

    features = await probe(ask, b"probe")
    assert features.maxmemory_policy == ""
    assert not features.evicts
