"""The Lua of the store."""

from __future__ import annotations

import re
from random import Random

import pytest

from locus_memory.backends.redis.lua import SCRIPTS, read_part, script
from locus_memory.backends.redis.store import RedisStore
from locus_memory.store.item import Delete, Put
from locus_memory.testing.fakes import FakeClock

PARTS = sorted({*SCRIPTS, "space", "read", "thread", "thread_changes"})


@pytest.mark.parametrize("server", ["redis_server", "valkey_server"])
def test_every_server_takes_every_script(server, request, raw):
    client = raw(request.getfixturevalue(server))
    for name in SCRIPTS:
        assert client.script_load(script(name).text) == script(name).sha


@pytest.mark.parametrize("name", PARTS)
def test_what_a_script_never_does(name):
    """JSON passes through as it is, no key is looked for by a pattern, numbers keep all digits."""
    text = re.sub(r"--.*", "", read_part(name))
    assert "cjson" not in text
    assert not re.search(r"'(KEYS|SCAN|FLUSH\w*|EVAL\w*)'", text)
    assert "tostring" not in text


def test_only_what_changes_nothing_is_sent_twice():
    assert {name for name in SCRIPTS if not script(name).idempotent} == {
        *("write", "clear", "copy", "delete")
    }
    writes = re.compile(r"'(HSET|HDEL|ZADD|ZREM|DEL|UNLINK|VADD|VREM|PEXPIRE|HINCRBY)'")
    changing = {"write", "clear", "purge", "register", "forget", "adopt"}
    # That leaves out what has expired from the registry, where it can.
    changing |= {"save", "copy", "delete", "list_threads"}
    reading = set(SCRIPTS) - changing
    assert not [name for name in {*reading, "read"} if writes.search(read_part(name))]


async def test_numbers_keep_all_their_digits(redis_server, prefix, raw):
    """Revisions have 16 digits, of which Lua prints 14 unless it is told otherwise."""
    async with RedisStore(redis_server.url, key_prefix=prefix) as store:
        await store.put_batch([(("n",), f"{n}", n) for n in range(50)])
        (name,) = raw(redis_server).keys(f"{prefix}store:*:r")
        revisions = [
            int(score) for _, score in raw(redis_server).zrange(name, 0, -1, withscores=True)
        ]
        assert len(set(revisions)) == 50
        assert revisions[-1] - revisions[0] == 49
        (meta,) = raw(redis_server).keys(f"{prefix}store:*:m")
        assert int(raw(redis_server).hget(meta, "revision")) == revisions[-1]


async def test_the_clock_of_the_server_may_step_back(redis_server, prefix, raw):
    async with RedisStore(redis_server.url, key_prefix=prefix) as store:
        await store.put(("n",), "first", 1)
        (meta,) = raw(redis_server).keys(f"{prefix}store:*:m")
        raw(redis_server).hincrby(meta, "revision", 3_600_000_000)
        for key in ("second", "third"):
            await store.put(("n",), key, 1)
        keys = [item.key for item in await store.search(("n",))]
        assert keys == ["third", "second", "first"]


@pytest.mark.slow
async def test_more_words_than_lua_unpacks(redis_server, prefix):
    async with RedisStore(redis_server.url, key_prefix=prefix) as store:
        text = " ".join(f"w{n}" for n in range(9_000))
        await store.put(("n",), "long", text)
        await store.put_batch([(("n",), f"{n}", f"w{n}") for n in range(600)])
        found = await store.search(("n",), "w8999 w7", 10)
        assert {item.key for item in found} == {"7", "long"}
        query = " ".join(f"w{n}" for n in range(8_500))
        assert len(await store.search(("n",), query, 1000)) == 601
        await store.delete(("n",), "long")
        await store.compact()
        assert await store.search(("n",), "w8999") == []


async def test_a_word_that_looks_like_a_count(redis_server, prefix):
    async with RedisStore(redis_server.url, key_prefix=prefix) as store:
        await store.put_batch([(("n",), "a", "2 2 fox"), (("n",), "b", "fox fox")])
        assert [item.key for item in await store.search(("n",), "2")] == ["a"]


def whatever(random):
    """Return a put or a delete of one of a few items."""
    space, key = (random.choice("ab"),), random.choice("1234")
    if random.random() < 0.3:
        return Delete(namespace=space, key=key)
    return Put(
        namespace=space,
        key=key,
        value=" ".join(random.choices(["fox", "dog", "cat"], k=random.randrange(4))),
        metadata=random.choice([None, {"n": random.randrange(9)}]),
        ttl=random.choice([None, None, 50, 500]),
    )


async def everything(store):
    """Return all that the store tells of its items, the newest write first."""
    return [
        await store.search((space,), query, 99) for space in "ab" for query in (None, "fox", "dog")
    ]


@pytest.mark.parametrize("seed", range(20))
async def test_a_batch_does_what_its_operations_do(redis_server, prefix, seed):
    """A batch writes runs of puts together, and leaves what they leave one by one."""
    random, clock = Random(seed), FakeClock()
    async with (
        RedisStore(redis_server.url, key_prefix=f"{prefix}1", clock=clock) as together,
        RedisStore(redis_server.url, key_prefix=f"{prefix}2", clock=clock) as alone,
    ):
        for _ in range(8):
            batch = [whatever(random) for _ in range(random.randrange(1, 12))]
            results = await together.write_batch(batch)
            assert results == [(await alone.write_batch([each]))[0] for each in batch]
            assert await everything(together) == await everything(alone)
            clock.advance(random.choice([0, 20, 100]))


@pytest.mark.slow
async def test_a_batch_of_several_runs_keeps_its_order(redis_server, prefix):
    async with RedisStore(redis_server.url, key_prefix=prefix) as store:
        keys = [f"{n % 4500}" for n in range(5000)]
        versions = await store.put_batch([(("n",), key, f"w{key}") for key in keys])
        assert versions == [1] * 4500 + [2] * 500
        newest = [item.key for item in await store.search(("n",), limit=5000)]
        assert newest == list(dict.fromkeys(reversed(keys)))
        for n in (0, 499, 500, 999, 1000, 4499):
            assert [item.key for item in await store.search(("n",), f"w{n}")] == [f"{n}"]


async def test_a_batch_that_lost_leaves_no_trace(redis_server, prefix, raw):
    async with RedisStore(redis_server.url, key_prefix=prefix) as store:
        await store.put_with_embedding(("n",), "k", "fox", [1.0])
        client = raw(redis_server)
        before = {key: client.dump(key) for key in client.keys(f"{prefix}*")}
        puts = [
            Put(namespace=("n",), key="k", value="dog", ttl=5),
            Put(namespace=("new",), key="k", value="dog"),
            Put(namespace=("n",), key="k", value="dog", if_version=7),
        ]
        with pytest.raises(Exception, match="expected version 7, found 2"):
            await store.put_batch(puts)
        assert {key: client.dump(key) for key in client.keys(f"{prefix}*")} == before
