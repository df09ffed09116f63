"""An item of Redis that is damaged is an error, and never another item."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from locus_memory.backends.redis.connection.connection import RedisConnection
from locus_memory.backends.redis.items.spaces import Spaces
from locus_memory.backends.redis.store import RedisStore
from locus_memory.errors import BackendCorruptError
from locus_memory.testing.fakes import FakeClock

HERE = ("users", "ada/b")
SECRET = "the secret of Ada"


@pytest.fixture(params=["redis_server", "valkey_server"])
def server(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
async def store(server, prefix):
    async with RedisStore(server.url, key_prefix=prefix, clock=FakeClock(2e9)) as opened:
        yield opened


@pytest.fixture
def fields(server, raw, prefix):
    """Returns the hash of an item, and sets it to another one."""
    spaces = Spaces(RedisConnection(server.url, key_prefix=prefix))
    client = raw(server)

    def hash_of(key, changed=None):
        name = spaces.item_name(spaces.space(HERE), key.encode())
        if changed is not None:
            client.delete(name)
            client.hset(name, mapping=changed)
        return client.hgetall(name)

    return hash_of


def reads(store, key):
    return (
        store.get(HERE, key),
        store.get_item(HERE, key),
        store.get_batch([(HERE, key)]),
        store.scan(HERE),
        store.search(HERE),
        store.search(HERE, "secret"),
    )


def without_score(items):
    return [replace(item, score=None) for item in items]


@pytest.mark.parametrize("seed", range(12))
async def test_no_altered_field_makes_an_item_another(store, fields, seed):
    await store.put(HERE, "k", {"n": 1, "text": SECRET}, {"step": 7})
    await store.put(HERE, "k", {"n": 2, "text": SECRET}, {"step": 8})
    item = await store.get_item(HERE, "k")
    whole, chance = fields("k"), random.Random(seed)
    for _ in range(25):
        field = chance.choice((b"v", b"v", b"m"))
        damaged = bytearray(whole[field])
        place = chance.randrange(len(damaged))
        damaged[place] ^= chance.randrange(1, 256)
        fields("k", {**whole, field: bytes(damaged)})
        for read in reads(store, "k"):
            if field == b"m" and read.__name__ == "get_batch":
                assert await read == {(HERE, "k"): item.value}
                continue
            with pytest.raises(BackendCorruptError, match=r"the item 'k' of \('users', 'ada/b'\)"):
                await read
    fields("k", whole)
    assert await store.get_item(HERE, "k") == item
    assert without_score(await store.search(HERE, "secret")) == [item]


@pytest.mark.parametrize(
    ("field", "damage"),
    [
        (b"v", None),
        (b"m", None),
        (b"m", b""),
        (b"v", b""),
        (b"v", b"[1"),
        (b"h", b"1 2000000000.0 2000000000.0 0123456789abcdef -"),
        (b"h", b"1 2000000000.0 2000000000.0 x -"),
        (b"h", b"1 2000000000.0 x 0123456789abcdef -"),
        (b"h", b"nothing"),
        (b"h", b"1 2 3 4 5 6 9e99"),
    ],
)
async def test_a_damaged_hash_is_named_and_not_quoted(store, fields, field, damage):
    await store.put(HERE, "k", {"text": SECRET}, {"step": 7})
    whole = fields("k")
    changed = {**whole, field: damage} if damage is not None else {**whole}
    if damage is None:
        del changed[field]
    fields("k", changed)
    for read in reads(store, "k"):
        if field == b"m" and read.__name__ == "get_batch":
            assert await read == {(HERE, "k"): {"text": SECRET}}
            continue
        with pytest.raises(BackendCorruptError, match="the item 'k'") as caught:
            await read
        assert SECRET not in str(caught.value)
    await store.put(HERE, "k", {"text": "whole again"})
    assert await store.get(HERE, "k") == {"text": "whole again"}


async def test_an_item_that_was_moved_is_noticed(store, fields):
    await store.put(HERE, "one", {"text": "secret"})
    await store.put(HERE, "two", {"text": "secret"})
    fields("two", fields("one"))
    with pytest.raises(BackendCorruptError, match="the item 'two'"):
        await store.get(HERE, "two")
    assert await store.get(HERE, "one") == {"text": "secret"}


async def test_an_item_of_before_is_taken_as_it_is(store, fields):
    await store.put_with_embedding(HERE, "k", {"text": "secret"}, [3.0, 4.0], {"m": 1})
    found = fields("k")
    *times, _, expires = found[b"h"].split(b" ")
    fields("k", {**found, b"h": b" ".join((*times, expires)), b"v": b'{"n":2}', b"m": b'{"m":2}'})
    item = await store.get_item(HERE, "k")
    assert (item.value, item.metadata, item.version) == ({"n": 2}, {"m": 2}, 1)
    assert await store.get_batch([(HERE, "k")]) == {(HERE, "k"): {"n": 2}}
    assert await store.get_embedding(HERE, "k") == pytest.approx([0.6, 0.8])
    assert await store.put(HERE, "k", {"n": 3}) == 2
    assert len(fields("k")[b"h"].split(b" ")) == 5


async def test_a_lost_or_damaged_vector_is_noticed(store, server, raw, prefix):
    await store.put_with_embedding(HERE, "k", 1, [3.0, 4.0])
    await store.put(HERE, "plain", 1)
    client = raw(server)
    assert await store.get_embedding(HERE, "plain") is None
    (card,) = client.keys(f"{prefix}store:*:c")
    client.hset(card, "plain", "2 0 ")
    (vectors,) = client.keys(f"{prefix}store:*:v2")
    if client.type(vectors) == b"hash":
        client.hset(vectors, "plain", client.hget(vectors, "k"))
        client.hset(vectors, "k", bytes(8))
    else:
        client.execute_command("VADD", vectors, "VALUES", 2, 1, 1, "plain", "NOQUANT")
        client.hset(card, "k", "0 0 ")
    for key in ("k", "plain"):
        with pytest.raises(BackendCorruptError, match=f"the vector of the item '{key}'"):
            await store.get_embedding(HERE, key)
        assert await store.get(HERE, key) == 1
