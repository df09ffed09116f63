"""The Redis store beyond the contract: options, servers, pages, expiry, large batches."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from redis.asyncio import Redis

from locus_memory.backends.redis.backend import RedisBackend
from locus_memory.backends.redis.connection.connection import RedisConnection, tag
from locus_memory.backends.redis.items import spaces as spaces_module
from locus_memory.backends.redis.items.spaces import Spaces
from locus_memory.backends.redis.store import RedisStore
from locus_memory.errors import (
    ConfigurationError,
    InvalidArgumentError,
    StoreCapabilityError,
)
from locus_memory.store.item import Delete, Put, StoreCapabilities
from locus_memory.testing.fakes import FakeClock

NS = ("notes",)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
async def store(redis_server, prefix, clock):
    async with RedisStore(redis_server.url, key_prefix=prefix, clock=clock) as opened:
        yield opened


def item_name(prefix, namespace, key):
    path = "".join(f"{label}\x01" for label in namespace).encode()
    return f"{prefix}store:".encode() + tag(path) + b":i:" + key.encode().replace(b"\0", b"\xff")


async def test_before_it_is_open_it_claims_what_every_server_can(redis_server, prefix):
    everywhere = StoreCapabilities(
        search=True,
        semantic_search=True,
        embedding_dimension=3,
        ttl=True,
        list_namespaces=True,
    )
    async with RedisConnection(redis_server.url, key_prefix=prefix) as connection:
        store = RedisStore(client=connection)
        assert store.capabilities.semantic_search
    store = RedisStore(redis_server.url, key_prefix=prefix, embedding_dimension=3)
    assert store.capabilities == everywhere
    async with store:
        able = store.capabilities
        assert (able.semantic_search, able.embedding_dimension) == (True, 3)
        assert able.batch_operations
        assert able.transactions


@pytest.mark.parametrize("dimension", [0, -1])
def test_a_dimension_that_cannot_be_is_refused(dimension):
    with pytest.raises(ConfigurationError, match="embedding_dimension >= 1"):
        RedisStore(embedding_dimension=dimension)


async def test_without_a_text_index_nothing_of_a_text_is_stored(redis_server, prefix, raw):
    async with RedisStore(redis_server.url, key_prefix=prefix, text_index=False) as store:
        assert not store.capabilities.search
        await store.put(NS, "k", "a fox")
        with pytest.raises(StoreCapabilityError) as caught:
            await store.search(NS, "fox")
        assert caught.value.capability == "search"
        assert [item.key for item in await store.search(NS)] == ["k"]
        with pytest.raises(InvalidArgumentError):
            await store.put(NS, "k", 1, text=b"no text")
    parts = {key.rsplit(b":", 1)[1] for key in raw(redis_server).keys(f"{prefix}store:*")}
    assert parts == {b"k", b"r", b"m"}


async def test_a_text_that_was_indexed_goes_with_a_put_that_does_not_index(redis_server, prefix):
    async with RedisStore(redis_server.url, key_prefix=prefix) as indexing:
        await indexing.put(NS, "k", "a fox")
        async with RedisStore(redis_server.url, key_prefix=prefix, text_index=False) as other:
            await other.put(NS, "k", "a fox")
        assert await indexing.search(NS, "fox") == []


async def test_a_client_or_a_connection_passed_in_is_left_open(redis_server, prefix):
    client = Redis.from_url(redis_server.url)
    async with RedisStore(client=client, key_prefix=prefix) as store:
        await store.put(NS, "k", 1)
    assert await client.ping()
    await client.aclose()
    async with RedisConnection(redis_server.url, key_prefix=prefix) as connection:
        async with RedisStore(client=connection) as store:
            assert await store.get(NS, "k") == 1
        async with RedisStore(client=connection) as store:
            assert await store.get(NS, "k") == 1


async def test_two_prefixes_never_meet(redis_server, prefix):
    async with (
        RedisStore(redis_server.url, key_prefix=prefix) as one,
        RedisStore(redis_server.url, key_prefix=f"{prefix}store:") as other,
    ):
        await one.put(NS, "k", "one")
        assert await other.list_namespaces() == []
        await other.put(NS, "k", "other")
        await other.clear_namespace(NS)
        assert await one.list_namespaces() == [NS]
        assert await one.get(NS, "k") == "one"


async def test_an_item_is_a_hash_that_anybody_can_read(store, redis_server, prefix, raw, clock):
    await store.put(NS, "a\x00b", {"n": 1}, {"m": 2}, ttl=10)
    name = item_name(prefix, NS, "a\x00b")
    found = raw(redis_server).hgetall(name)
    *times, checksum, expires = found.pop(b"h").decode().split(" ")
    assert (*times, expires) == ("1", f"{clock()}", f"{clock()}", f"{clock() + 10}")
    assert len(checksum) == 16
    assert found == {b"v": b'{"n":1}', b"m": b'{"m":2}'}
    assert 60_000 < raw(redis_server).pttl(name) <= 70_001


@pytest.mark.parametrize("whole", [False, True])
async def test_a_page_is_full_whatever_the_server_expired(store, redis_server, prefix, raw, whole):
    names = [f"{n:03}" for n in range(60)]
    await store.put_batch(
        [Put(namespace=NS, key=key, value="fox", ttl=None if int(key) % 6 else 50) for key in names]
    )
    left = [key for key in names if int(key) % 6]
    for key in set(names) - set(left):
        assert raw(redis_server).pexpire(item_name(prefix, NS, key), 0)
    if whole:
        assert [item.key for item in await store.scan(NS, 30)] == left[:30]
        assert [item.key for item in await store.search(NS, limit=30)] == left[:-31:-1]
        assert len(await store.search(NS, "fox", 50)) == len(left)
    else:
        assert await store.list_keys(NS, 30) == left[:30]
    assert await store.search(NS, limit=30, offset=40) == (await store.search(NS, limit=60))[40:]


async def test_a_namespace_that_the_server_expired_is_not_listed(store, redis_server, prefix, raw):
    await store.put_batch([Put(namespace=NS, key=key, value=1, ttl=50) for key in "ab"])
    await store.put(("kept",), "k", 1)
    for key in "ab":
        raw(redis_server).pexpire(item_name(prefix, NS, key), 0)
    assert await store.list_namespaces() == [("kept",)]
    assert await store.put(NS, "a", 1) == 1
    assert await store.list_namespaces() == [("kept",), NS]


async def test_what_expires_altogether_has_a_ttl_altogether(store, redis_server, prefix, raw):
    await store.put(NS, "a", "fox", ttl=10)
    await store.put_with_embedding(NS, "b", "fox", [1.0], ttl=1000)
    names = raw(redis_server).keys(f"{prefix}store:*")
    assert len(names) == 9
    assert all(raw(redis_server).pttl(name) > 60_000 for name in names)
    assert sum(raw(redis_server).pttl(name) > 1_050_000 for name in names) == 8
    await store.put(NS, "c", "fox")
    timed = {name for name in names if raw(redis_server).pttl(name) > 0}
    assert timed == {item_name(prefix, NS, key) for key in "ab"}


async def test_an_unused_namespace_is_cleaned_by_compact(store, redis_server, prefix, raw, clock):
    await store.put_batch(
        [Put(namespace=(f"{n}",), key=f"{m}", value="fox", ttl=5) for n in range(3) for m in "abc"]
    )
    clock.advance(5)
    await store.compact()
    assert raw(redis_server).keys(f"{prefix}*") == []


async def test_compact_leaves_no_word_of_what_is_gone(store, redis_server, prefix, raw):
    await store.put_batch([(NS, f"{n}", f"secret{n} fox") for n in range(600)])
    await store.delete_batch([(NS, f"{n}") for n in range(70)])
    dump = b"".join(words(raw(redis_server), prefix))
    assert b"secret7 " in dump
    await store.compact()
    dump = b"".join(words(raw(redis_server), prefix))
    assert b"secret7 " not in dump
    assert b"secret69 " not in dump
    assert b"secret70 " in dump
    assert len(await store.search(NS, "fox", 1000)) == 530


def words(client, prefix):
    (postings,) = client.keys(f"{prefix}store:*:p")
    yield from client.hkeys(postings)
    for name in client.keys(f"{prefix}store:*:x"):
        yield from client.hvals(name)


@pytest.mark.slow
async def test_updates_and_deletes_keep_the_ranking_exact(store):
    """An index after many changes ranks as one that never saw them."""
    for n in range(1300):
        await store.put_batch([(NS, f"{n % 400}", f"fox {'word ' * (n % 7)} n{n % 5}")])
        if n % 3 == 0:
            await store.delete(NS, f"{(n * 7) % 400}")
    await store.put_batch(
        [(("fresh",), item.key, item.value) for item in reversed(await store.search(NS, limit=999))]
    )
    for query in ("fox", "word", "n3 word", "n1 n2 n4"):
        found, fresh = [await store.search(ns, query, 999) for ns in (NS, ("fresh",))]
        assert {i.key: i.score for i in found} == pytest.approx({i.key: i.score for i in fresh})
        assert [i.score for i in found] == sorted((i.score for i in found), reverse=True)


@pytest.mark.slow
async def test_large_values_come_in_pages(store):
    text = "x" * 3_000_000
    await store.put_batch([Put(namespace=NS, key=f"{n}", value=text, text="fox") for n in range(5)])
    assert [item.key for item in await store.scan(NS)] == list("01234")
    assert [item.key for item in await store.search(NS)] == list("43210")
    assert [item.key for item in await store.search(NS, limit=2, offset=2)] == list("21")
    assert sorted(item.key for item in await store.search(NS, "fox")) == list("01234")


@pytest.mark.slow
async def test_ten_thousand_at_once(store):
    puts = [Put(namespace=NS, key=f"{n:05}", value=f"fox {n}") for n in range(10_000)]
    assert set(await store.write_batch(puts)) == {1}
    assert len(await store.search(NS, "fox 77", 20_000)) == 10_000
    with pytest.raises(InvalidArgumentError, match=r"at most 20,000 .* several batches"):
        await store.put_batch(puts * 3)
    deletes = [Delete(namespace=NS, key=f"{n:05}") for n in range(10_000)]
    assert await store.write_batch(deletes) == [True] * 10_000
    assert await store.list_namespaces() == []


@pytest.mark.slow
async def test_how_many_vectors_a_batch_may_have(store):
    def puts(count, dimension):
        vector = [1.0] * dimension
        return [Put(namespace=NS, key=f"{n}", value=n, embedding=vector) for n in range(count)]

    with pytest.raises(InvalidArgumentError, match=r"2,000 embeddings, not 2,001; .* batches"):
        await store.put_batch(puts(2001, 2))
    with pytest.raises(InvalidArgumentError, match=r"200,000 numbers .* several batches"):
        await store.put_batch(puts(521, 384))
    assert await store.list_keys(NS) == []
    assert len(await store.put_batch(puts(520, 384))) == 520


async def test_clearing_takes_several_steps(store, redis_server, prefix, raw, monkeypatch):
    monkeypatch.setattr(spaces_module, "_CLEARED", 100)
    puts = [
        Put(namespace=NS, key=f"{n}", value="fox", ttl=5 if n % 2 else None) for n in range(950)
    ]
    await store.put_batch(puts)
    await store.put_with_embedding(NS, "vector", 1, [1.0])
    assert await store.clear_namespace(NS) == 951
    assert raw(redis_server).keys(f"{prefix}*") == []


@pytest.mark.slow
async def test_processes_that_register_and_forget_at_once(three_masters, prefix):
    """On a cluster the registry is elsewhere, and still no item is ever unlisted."""
    store = RedisStore(three_masters.url, key_prefix=prefix)
    async with store:
        assert not store.capabilities.batch_operations

        async def live(label):
            for _ in range(15):
                await store.put((label,), "k", 1)
                assert (label,) in await store.list_namespaces()
                await store.delete((label,), "k")

        async def watch():
            for _ in range(40):
                await store.list_namespaces()

        await asyncio.gather(*map(live, "abcd"), watch())
        assert await store.list_namespaces() == []


async def test_a_cluster_of_three_finds_everything(three_masters, prefix):
    async with RedisStore(three_masters.url, key_prefix=prefix) as store:
        names = [(("all", f"{n % 9}"), f"{n}") for n in range(90)]
        versions = await store.put_batch([(*name, f"fox {name[1]}") for name in names])
        assert versions == [1] * 90
        assert len(await store.get_batch(names)) == 90
        found = await store.search(("all",), "fox 17", 200, recursive=True)
        assert found[0].key == "17"
        assert len(found) == 90
        newest = await store.search(("all",), limit=25, offset=10, recursive=True)
        assert len({item.key for item in newest}) == 25
        assert len(await store.list_namespaces(("all",))) == 9
        with pytest.raises(StoreCapabilityError, match="transactions"):
            await store.write_batch([Delete(namespace=names[0][0], key="0")])
        assert await store.delete_batch(names[:10]) == 10
        assert await store.clear_namespace(("all",), recursive=True) == 80


@pytest.fixture
def before_each_question(monkeypatch):
    """Takes what is done before each question that a search asks of the server."""
    ask = Spaces.run_each

    def interfere(change):
        busy = False

        async def run_each(self, calls, spaces, **options):
            nonlocal busy
            if not busy:
                busy = True
                await change()
                busy = False
            return await ask(self, calls, spaces, **options)

        monkeypatch.setattr(Spaces, "run_each", run_each)

    return interfere


@pytest.mark.slow
async def test_a_text_that_changes_during_the_search_is_found(store, before_each_question):
    times = itertools.count()
    keys = [f"{n:04}" for n in range(1500)]

    async def rewrite():
        time = next(times)
        await store.put_batch([(NS, key, f"apple {key} at {time}") for key in keys])

    await rewrite()
    before_each_question(rewrite)
    for limit in (1, 20, 2000):
        found = [item.key for item in await store.search(NS, "apple", limit)]
        assert len(set(found)) == len(found) == min(limit, len(keys))
    rest = await store.search(NS, "apple", 1000, offset=1000)
    assert len(rest) == 500


async def test_a_text_that_lost_the_word_is_not_found(store, before_each_question):
    await store.put_batch([(NS, key, "apple") for key in ("same", "other", "gone")])
    times = itertools.count()

    async def rewrite():
        time = next(times)
        await store.put(NS, "same", f"apple {time}")
        if time == 3:
            await store.put(NS, "other", "pear")
            await store.delete(NS, "gone")
        elif time < 3:
            await store.put_batch([(NS, key, f"apple {time}") for key in ("other", "gone")])

    before_each_question(rewrite)
    assert [item.key for item in await store.search(NS, "apple", 10)] == ["same"]
    assert next(times) > 3


@pytest.mark.parametrize("long", ["w" * 5000, "é" * 3000])
async def test_a_long_word(store, long):
    await store.put(NS, "long", f"a {long} b")
    assert [item.key for item in await store.search(NS, long)] == ["long"]
    assert await store.search(NS, long[:-1]) == []


@pytest.mark.parametrize("server", ["redis_server", "valkey_server"])
@pytest.mark.parametrize("protocol", [2, 3])
async def test_a_client_of_the_callers_may_speak_either_protocol(server, protocol, request, prefix):
    url = request.getfixturevalue(server).url
    async with (
        Redis.from_url(url, protocol=protocol) as client,
        RedisBackend(client=client, key_prefix=prefix) as backend,
    ):
        store, vector = backend.store, [0.6, 0.8]
        await store.put_with_embedding(NS, "k", "fox", vector, ttl=500)
        assert await store.get(NS, "k") == "fox"
        for found in (await store.search(NS), await store.search(NS, "fox"), await store.scan(NS)):
            assert [item.key for item in found] == ["k"]
        assert [hit.item.key for hit in await store.search_by_embedding(NS, vector)] == ["k"]
        assert await store.list_namespaces() == [NS]
        await backend.checkpointer.save({"n": 1}, "thread")
        assert await backend.checkpointer.load("thread") == {"n": 1}
        assert await backend.outdated() == []
        await backend.advice()
        await store.compact()
