"""Which index holds the texts and the vectors is decided once, for everybody."""

from __future__ import annotations

import pytest
from redis import Redis

from locus_memory.backends.redis.backend import RedisBackend
from locus_memory.backends.redis.checkpoints import RedisCheckpointer
from locus_memory.backends.redis.store import RedisStore
from locus_memory.errors import BackendWriteError, ConfigurationError, StoreCapabilityError
from locus_memory.store.item import Put
from locus_memory.testing.servers import RedisServer, ValkeyServer

NS = ("notes",)
VECTOR = [0.6, 0.8]


@pytest.fixture
def client(raw, redisearch_server):
    return raw(redisearch_server)


@pytest.fixture(scope="module")
def redis_8(redisearch_server):
    """A server with RediSearch and with vector sets."""
    with RedisServer(search=True) as server:
        yield server


def layout(client, prefix):
    found = client.hgetall(f"{prefix}layout")
    return found.get(b"text"), found.get(b"vectors")


async def keys(found):
    return [getattr(each, "item", each).key for each in await found]


async def write(url, prefix, key="k", **options):
    async with RedisStore(url, key_prefix=prefix, **options) as store:
        await store.put(NS, key, "fox")


async def check_all(store, expected):
    assert sorted(await keys(store.search(NS, "fox", 99))) == expected
    assert sorted(await keys(store.search(NS, limit=99))) == expected


async def test_a_server_without_redisearch_has_no_record(valkey_server, raw, prefix):
    await write(valkey_server.url, prefix)
    await write(valkey_server.url, prefix, "other", search_index="own")
    assert not raw(valkey_server).exists(f"{prefix}layout")
    for vain in ("redisearch", "RediSearch", "", None):
        with pytest.raises(ConfigurationError, match="search_index"):
            await write(valkey_server.url, prefix, search_index=vain)


async def test_what_auto_chooses(redisearch_server, redis_8, raw, prefix):
    await write(redisearch_server.url, prefix)
    assert layout(raw(redisearch_server), prefix) == (b"own", b"redisearch")
    await write(redis_8.url, prefix)
    assert layout(raw(redis_8), prefix) == (None, None)
    for server in (redisearch_server, redis_8):
        async with RedisStore(server.url, key_prefix=prefix) as store:
            await store.put_with_embedding(NS, "near", "fox", VECTOR)
            assert await keys(store.search_by_embedding(NS, VECTOR)) == ["near"]
            assert await store.get_embedding(NS, "near") == pytest.approx(VECTOR)
            await store.put(NS, "near", "dog")
            assert await store.search_by_embedding(NS, VECTOR) == []
            assert await store.delete(NS, "near")
            await check_all(store, ["k"])


async def test_what_is_decided_holds_for_later_stores(redisearch_server, client, prefix):
    url = redisearch_server.url
    await write(url, prefix, search_index="redisearch")
    assert layout(client, prefix) == (b"redisearch", b"redisearch")
    with pytest.raises(ConfigurationError, match="existing items have their text in RediSearch"):
        await write(url, prefix, search_index="own")
    await write(url, prefix, "more")
    async with RedisStore(url, key_prefix=prefix, search_index="redisearch") as store:
        await check_all(store, ["k", "more"])
    await write(url, f"{prefix}own", search_index="own")
    assert layout(client, f"{prefix}own") == (b"own", b"none")
    with pytest.raises(ConfigurationError, match=r"the library's own index; copy them to"):
        await write(url, f"{prefix}own", search_index="redisearch")


async def test_items_without_a_record_are_in_our_own_index(redisearch_server, client, prefix):
    """As an earlier version of the library left them."""
    url = redisearch_server.url
    await write(url, prefix, search_index="own")
    client.delete(f"{prefix}layout")
    with pytest.raises(ConfigurationError, match="the library's own index"):
        await write(url, prefix, search_index="redisearch")
    async with RedisStore(url, key_prefix=prefix) as store:
        assert layout(client, prefix) == (b"own", b"redisearch")
        await store.put_batch([Put(namespace=NS, key="near", value="fox", embedding=VECTOR)])
        await check_all(store, ["k", "near"])
        assert await keys(store.search_by_embedding(NS, VECTOR)) == ["near"]
        await store.put(NS, "near", "fox")
        assert await store.search_by_embedding(NS, VECTOR) == []


async def test_what_could_hold_no_vectors_may_hold_them_later(redisearch_server, client, prefix):
    url = redisearch_server.url
    async with RedisStore(url, key_prefix=prefix, search_index="own") as early:
        await early.put(NS, "a", "fox")
        assert not early.capabilities.semantic_search
        async with RedisStore(url, key_prefix=prefix) as late:
            assert layout(client, prefix) == (b"own", b"redisearch")
            await late.put_with_embedding(NS, "b", "fox", VECTOR)
            await check_all(late, ["a", "b"])
        with pytest.raises(ConfigurationError, match="have their vectors in RediSearch"):
            await early.put(NS, "c", "fox")


async def test_a_store_that_knows_another_layout_writes_nothing_there(
    redisearch_server, client, prefix
):
    url = redisearch_server.url
    async with RedisStore(url, key_prefix=prefix, search_index="redisearch") as store:
        await store.put(NS, "before", "fox")
    async with RedisStore(url, key_prefix=prefix) as store:
        await check_all(store, ["before"])
        for name in client.keys(f"{prefix}*"):
            client.delete(name)
        await write(url, prefix, "own", search_index="own")
        await store.put(NS, "after", "fox")
        await check_all(store, ["after", "own"])
        async with RedisStore(url, key_prefix=prefix) as late:
            await check_all(late, ["after", "own"])


def move(source, target):
    """Copy all keys to another server, as a migration does."""
    for name in source.keys("*"):
        target.restore(name, 0, source.dump(name), replace=True)


@pytest.mark.slow
async def test_redisearch_is_not_there_any_more(redisearch_server, events):
    with ValkeyServer(search=True) as source, ValkeyServer() as target:
        await write(source.url, "p:", search_index="redisearch")
        with Redis.from_url(source.url) as old, Redis.from_url(target.url) as new:
            move(old, new)
        async with RedisStore(target.url, key_prefix="p:") as store:
            assert {event.name for event in events} == {"redis.search_unusable"}
            assert not store.capabilities.search
            assert not store.capabilities.semantic_search
            with pytest.raises(StoreCapabilityError, match="RediSearch, which cannot be used"):
                await store.search(NS, "fox")
            with pytest.raises(StoreCapabilityError, match="RediSearch, which cannot be used"):
                await store.search_by_embedding(NS, VECTOR)
            assert await store.get(NS, "k") == "fox"
            await store.put(NS, "meanwhile", "fox")
            assert await keys(store.search(NS)) == ["meanwhile", "k"]
        with pytest.raises(ConfigurationError, match="cannot be used"):
            await write(target.url, "p:", search_index="redisearch")
        with ValkeyServer(search=True) as back:
            with Redis.from_url(target.url) as old, Redis.from_url(back.url) as new:
                move(old, new)
            async with RedisStore(back.url, key_prefix="p:") as store:
                await check_all(store, ["k", "meanwhile"])


@pytest.mark.parametrize("denied", ["-ft._list", "-ft.create", "-ft.search", "-ft.aggregate"])
async def test_a_user_who_must_not(redisearch_server, client, prefix, events, denied):
    user = f"u{prefix[:-1]}"
    client.execute_command("ACL", "SETUSER", user, "on", ">pw", "~*", "+@all", denied)
    url = redisearch_server.url.replace("redis://", f"redis://{user}:pw@")
    async with RedisStore(url, key_prefix=prefix) as store:
        assert not store.capabilities.semantic_search
        await store.put(NS, "k", "fox")
        await check_all(store, ["k"])
    assert [event.name for event in events] == ["redis.search_unusable"] * (denied != "-ft._list")
    client.execute_command("ACL", "DELUSER", user)


async def test_only_the_first_database_is_indexed(redisearch_server, prefix, events):
    url = f"{redisearch_server.url}/1"
    async with RedisStore(url, key_prefix=prefix) as store:
        await store.put(NS, "k", "fox")
        await check_all(store, ["k"])
    assert {event.name for event in events} == {"redis.search_unusable"}
    with pytest.raises(ConfigurationError, match="db != 0"):
        await write(url, f"{prefix}new", search_index="redisearch")


async def test_a_replica_is_read(redisearch_server):
    with ValkeyServer(search=True) as server, Redis.from_url(server.url) as client:
        async with RedisStore(server.url, search_index="redisearch") as store:
            await store.put_with_embedding(NS, "k", "fox", VECTOR)
        client.replicaof("127.0.0.1", 1)
        async with RedisStore(server.url) as store:
            await check_all(store, ["k"])
            assert await keys(store.search_by_embedding(NS, VECTOR)) == ["k"]
        async with RedisStore(server.url, key_prefix="new:") as store:
            assert await store.search(NS, "fox") == []
            with pytest.raises(BackendWriteError):
                await store.put(NS, "k", "fox")
            client.replicaof("NO", "ONE")
            await store.put_with_embedding(NS, "k", "fox", VECTOR)
            assert layout(client, "new:") == (b"own", b"redisearch")
            await check_all(store, ["k"])


async def test_a_checkpointer_makes_no_index(redisearch_server, client, prefix):
    url = redisearch_server.url
    async with RedisCheckpointer(url, key_prefix=prefix, state_type=None) as checkpointer:
        await checkpointer.save({"step": 1}, "thread")
    assert not client.exists(f"{prefix}layout")
    async with RedisBackend(url, key_prefix=prefix) as backend:
        assert backend.store.capabilities.semantic_search
    options = {"search_index": "own"}
    with pytest.raises(ConfigurationError, match="search_index='own'"):
        async with RedisBackend(url, key_prefix=prefix, store_options=options):
            pass


async def test_without_a_text_index(redisearch_server, prefix):
    url = redisearch_server.url
    async with RedisStore(url, key_prefix=prefix, text_index=False) as store:
        await store.put_with_embedding(NS, "k", "fox", VECTOR)
        assert await keys(store.search_by_embedding(NS, VECTOR)) == ["k"]
        with pytest.raises(StoreCapabilityError, match="text_index=True"):
            await store.search(NS, "fox")
    async with RedisStore(url, key_prefix=prefix) as store:
        assert await store.search(NS, "fox") == []


async def test_a_prefix_that_redisearch_cannot_read(redisearch_server, client, prefix):
    strange = f"{prefix}\0:"
    await write(redisearch_server.url, strange)
    assert layout(client, strange) == (None, None)
    with pytest.raises(ConfigurationError, match="NUL"):
        await write(redisearch_server.url, f"{strange}new", search_index="redisearch")
