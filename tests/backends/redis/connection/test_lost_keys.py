"""Keys that the server lost: what is left never reads as if nothing had been there."""

from __future__ import annotations

import asyncio
from itertools import product

import pytest

from locus_memory.backends.redis.checkpoints import RedisCheckpointer
from locus_memory.backends.redis.store import RedisStore
from locus_memory.errors import BackendCorruptError, CheckpointCorruptError
from locus_memory.store.item import Put

NS = ("lost", "and found")
QUICKLY = 10.0


@pytest.fixture
async def store(redis_server, prefix):
    async with RedisStore(redis_server.url, key_prefix=prefix) as opened:
        await opened.put_batch(
            [
                Put(namespace=NS, key=f"{n:02}", value=f"fox {n}", embedding=[1.0, float(n), 0.5])
                for n in range(20)
            ]
        )
        # A neighbour that lost nothing.
        await opened.put_with_embedding(("whole",), "k", "fox", [1.0, 0.0, 0.0])
        yield opened


@pytest.fixture
def client(raw, redis_server):
    return raw(redis_server)


def key_of(store, part):
    return store._spaces.space(NS).base + f":{part}".encode()


async def nearest(store, **options):
    async with asyncio.timeout(QUICKLY):
        return await store.search_by_embedding(NS, [1.0, 1.0, 1.0], 20, **options)


@pytest.mark.parametrize(
    "options", [{}, {"offset": 5}, {"threshold": 0.1}, {"recursive": True}], ids=str
)
async def test_a_vector_that_is_missing_ends_the_search(store, client, options):
    client.execute_command("VREM", key_of(store, "v3"), "07")
    with pytest.raises(BackendCorruptError, match="'lost', 'and found'") as raised:
        await nearest(store, **options)
    assert "vectors of 3 dimensions" in str(raised.value)
    assert "clear_namespace()" in str(raised.value)
    with pytest.raises(BackendCorruptError):
        await store.get_embedding(NS, "07")
    # To put the item again is a remedy too.
    await store.put_with_embedding(NS, "07", "fox", [1.0, 7.0, 0.5])
    assert len(await nearest(store)) == 20


@pytest.mark.parametrize("part", ["v3", "m"])
async def test_vectors_of_a_hash_that_are_missing(valkey_server, raw, prefix, part):
    async with RedisStore(valkey_server.url, key_prefix=prefix) as store:
        await store.put_with_embedding(NS, "k", "fox", [1.0, 0.0, 0.0])
        raw(valkey_server).delete(key_of(store, part))
        with pytest.raises(BackendCorruptError, match="noeviction"):
            await nearest(store)
        if part == "v3":
            with pytest.raises(BackendCorruptError, match="vectors of 3 dimensions"):
                await store.get_embedding(NS, "k")


@pytest.mark.parametrize("part", ["v3", "m"])
async def test_a_vector_set_or_its_count_that_is_missing(store, client, part):
    client.delete(key_of(store, part))
    with pytest.raises(BackendCorruptError, match="noeviction"):
        await nearest(store)


async def list_recursively(store):
    return await store.search(NS[:1], recursive=True)


READS = {
    "list_keys": lambda store: store.list_keys(NS),
    "scan": lambda store: store.scan(NS),
    "backwards": lambda store: store.scan(NS, descending=True),
    "newest": lambda store: store.search(NS),
    "recursive": list_recursively,
    "words": lambda store: store.search(NS, "fox"),
    "vectors": nearest,
    "get_embedding": lambda store: store.get_embedding(NS, "07"),
    "list_namespaces": lambda store: store.list_namespaces(),
    "compact": lambda store: store.compact(),
}
WRITES = {
    "put": lambda store: store.put(NS, "new", 1),
    "put_batch": lambda store: store.put_batch([(("whole",), "k", 1), (NS, "07", 2)]),
    "delete": lambda store: store.delete(NS, "07"),
}
NOTICED = {
    "k": {"list_keys", "scan", "backwards", "words", "list_namespaces", "compact", *WRITES},
    "r": {"newest", "recursive", "words", "compact", *WRITES},
    "c": {"words", "get_embedding", "compact", *WRITES},
    "d": {"words", "compact", *WRITES},
    "m": {"words", "vectors", "compact", *WRITES},
    "p": {"words", "compact", *WRITES},
    "v3": {"vectors", "get_embedding"},
}


@pytest.mark.parametrize("part", NOTICED)
async def test_a_lost_key_of_a_namespace_is_an_error_or_no_matter(store, client, part):
    if part == "p":
        # Enough for postings to be merged.
        await store.put_batch([(NS, f"more {n}", f"fox {n}") for n in range(600)])
    before = {name: await read(store) for name, read in READS.items()}
    assert client.delete(key_of(store, part)) == 1
    for name, call in (READS | WRITES).items():
        if name in NOTICED[part]:
            with pytest.raises(BackendCorruptError, match="'lost', 'and found'"):
                await call(store)
        elif name in READS:
            assert await call(store) == before[name], name
    assert await store.get(NS, "07") == "fox 7"
    assert await store.search(("whole",), "fox")
    assert await store.get(("whole",), "k") == "fox"


@pytest.mark.parametrize("part", NOTICED)
async def test_the_remedy_works(store, client, part):
    client.delete(key_of(store, part))
    items = [await store.get_item(NS, f"{n:02}") for n in range(20)]
    assert await store.clear_namespace(NS) == 20
    assert client.keys(store._spaces.space(NS).base + b"*") == []
    await store.put_batch(
        [
            Put(namespace=NS, key=item.key, value=item.value, embedding=[1.0, 2.0, 3.0])
            for item in items
        ]
    )
    for read in READS.values():
        await read(store)
    assert len(await store.search(NS, "fox", 99)) == len(await nearest(store)) == 20


async def test_a_namespace_that_cannot_be_cleared_says_so(store, client):
    client.delete(key_of(store, "k"), key_of(store, "r"))
    with pytest.raises(BackendCorruptError, match="the list of its keys"):
        await store.clear_namespace(NS)
    assert await store.get(NS, "07") == "fox 7"


@pytest.fixture
async def checkpointer(redis_server, prefix):
    async with RedisCheckpointer(redis_server.url, key_prefix=prefix, state_type=None) as opened:
        for n in range(3):
            await opened.save({"n": n}, "t", f"c{n}", {"n": n})
        await opened.save({"n": 7}, "whole", "c")
        yield opened


THREAD_CALLS = {
    "load": lambda c: c.load("t"),
    "load one": lambda c: c.load("t", "c1"),
    "exists": lambda c: c.exists("t"),
    "exists one": lambda c: c.exists("t", "c1"),
    "list": lambda c: c.list_checkpoints("t"),
    "metadata": lambda c: c.get_metadata("t"),
    "query": lambda c: c.query_by_metadata({}, 10),
    "save": lambda c: c.save({"n": 4}, "t"),
    "copy": lambda c: c.copy_thread("t", "u"),
    "copy onto": lambda c: c.copy_thread("whole", "t"),
    "prune": lambda c: c.prune("t", keep_last=1),
}
READ_ANYWAY = {
    "names": {"load", "exists", "list", "metadata", "query"},
    "payloads": {"exists", "exists one", "list", "metadata", "query"},
}
"""What another key tells, and a record without its payload."""


@pytest.mark.parametrize(
    "case", list(product(["heads", "names", "payloads"], THREAD_CALLS)), ids=" ".join
)
async def test_a_lost_key_of_a_thread_never_reads_as_not_found(
    redis_server, prefix, checkpointer, client, case
):
    part, name = case
    keys = checkpointer.storage._keys("t").all[:3]
    assert client.delete(*(key for key in keys if key.endswith(part.encode()))) == 1
    async with RedisCheckpointer(redis_server.url, key_prefix=prefix, state_type=None) as fresh:
        if name in READ_ANYWAY.get(part, ()):
            assert await THREAD_CALLS[name](fresh)
        else:
            with pytest.raises((BackendCorruptError, CheckpointCorruptError), match="'t'"):
                await THREAD_CALLS[name](fresh)
        assert await fresh.list_threads() == ["t", "whole"]
        assert await fresh.load("whole") == {"n": 7}
        assert await fresh.delete("t")
        assert client.exists(*keys) == 0
        assert await fresh.list_threads() == ["whole"]
        await fresh.save({"n": 5}, "t")
        assert await fresh.load("t") == {"n": 5}
