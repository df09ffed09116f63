"""No script holds the server for long: large work is done in steps, each of a bounded size."""

from __future__ import annotations

import pytest

from locus_memory.backends.redis.items import spaces as spaces_module
from locus_memory.backends.redis.items.spaces import Spaces
from locus_memory.backends.redis.lua import script
from locus_memory.backends.redis.store import RedisStore
from locus_memory.errors import BackendWriteError, InvalidArgumentError
from locus_memory.events import subscribe
from locus_memory.store.item import Delete, Put

NS = ("notes",)
STEMS = 30_000
RECORD = 10


@pytest.fixture
async def store(redis_server, prefix):
    async with RedisStore(redis_server.url, key_prefix=prefix) as opened:
        yield opened


class Index:
    """The text index of the only namespace, as the server has it."""

    def __init__(self, client, prefix):
        (meta,) = client.keys(f"{prefix}store:*:m")
        base = meta[:-1]
        facts = client.hgetall(meta)
        self.number, self.merged = int(facts[b"number"]), int(facts[b"merged"])
        self.postings = sum(map(len, client.hvals(base + b"p"))) // RECORD
        self.dead = client.hlen(base + b"x")


def long_text(n):
    return " ".join(f"w{n * 50 + place}" for place in range(200))


@pytest.mark.slow
async def test_a_large_batch_is_merged_in_steps(store, redis_server, prefix, raw, monkeypatch):
    """The script that writes a batch, which is one, leaves most of its words for others."""
    puts = [Put(namespace=NS, key=f"{n}", value=n, text=long_text(n)) for n in range(600)]
    with monkeypatch.context() as patch:
        patch.setattr(Spaces, "_merge", merge_nothing)
        assert await store.put_batch(puts) == [1] * 600
        index = Index(raw(redis_server), prefix)
        assert index.number == 600
        assert 0 < index.merged < 600
        assert index.postings <= STEMS + 200
        found = await store.search(NS, "w29990 w7", 9)
        assert {item.key for item in found} == {"599", "598", "597", "596", "0"}
    await store.put_batch(puts[:1])
    await store.put(NS, "more", "fox")
    await store.put_batch([Put(namespace=NS, key=f"{n}", value=n, text="fox") for n in range(512)])
    index = Index(raw(redis_server), prefix)
    assert index.number - index.merged < 512
    assert index.dead < 512
    assert len(await store.search(NS, "w29990 w7 fox", 999)) == 517


async def merge_nothing(self, spaces):
    """Leave what a batch left to be merged."""


@pytest.mark.slow
async def test_a_large_delete_is_merged_in_steps(store, redis_server, prefix, raw, monkeypatch):
    await store.put_batch(
        [Put(namespace=NS, key=f"{n}", value=n, text=long_text(n)) for n in range(1200)]
    )
    await store.compact()
    before = Index(raw(redis_server), prefix)
    deletes = [Delete(namespace=NS, key=f"{n}") for n in range(1100)]
    with monkeypatch.context() as patch:
        patch.setattr(Spaces, "_merge", merge_nothing)
        assert await store.write_batch(deletes) == [True] * 1100
        after = Index(raw(redis_server), prefix)
        assert 0 <= before.postings - after.postings <= STEMS + 200
        assert after.dead > 512
        assert await store.search(NS, "w1 w500", 9) == []
    await store.compact()
    assert Index(raw(redis_server), prefix).dead == 0
    assert {item.key for item in await store.search(NS, "w59999")} == {
        "1199",
        "1198",
        "1197",
        "1196",
    }


@pytest.mark.slow
async def test_a_batch_that_cannot_be_merged_is_written(own_server, raw, monkeypatch):
    """What follows a batch is no part of it: it is survived, told, and done later."""
    purge, events = Spaces._purge, []

    async def fail(self, keys, *, merge=False):
        raise BackendWriteError("redis: no")

    puts = [Put(namespace=NS, key=f"{n}", value=n, text=long_text(n)) for n in range(1200)]
    async with RedisStore(own_server.url) as store:
        unsubscribe = subscribe(events.append)
        monkeypatch.setattr(Spaces, "_purge", fail)
        assert await store.put_batch(puts) == [1] * 1200
        unsubscribe()
        assert [event.name for event in events] == ["redis.not_cleaned"]
        monkeypatch.setattr(Spaces, "_purge", purge)
        await store.put(NS, "one more", "fox")
        index = Index(raw(own_server), "locus:")
        assert index.number - index.merged < 512


@pytest.mark.parametrize(
    ("limit", "most", "message"),
    [("_MOST_SPACES", 2, r"2 namespaces, not 3"), ("_MOST_TEXT", 30, r"30 bytes .* not 42")],
)
async def test_what_a_batch_may_have(store, monkeypatch, limit, most, message):
    monkeypatch.setattr(spaces_module, limit, most)
    puts = [((label,), "k", "two words") for label in "abc"]
    with pytest.raises(InvalidArgumentError, match=rf"at most {message}; write several batches"):
        await store.put_batch(puts)
    assert await store.list_namespaces() == []
    assert await store.put_batch(puts[:2]) == [1, 1]
    assert await store.put(NS, "long", "one text may be as long as it is " * 20) == 1


@pytest.mark.slow
async def test_no_search_looks_at_thousands_of_namespaces_at_once(store, calls):
    names = [(("all", f"{n}"), f"{n}") for n in range(450)]
    vector = [1.0, 0.0]
    await store.put_batch(
        [
            Put(namespace=space, key=key, value=f"fox number {key}", embedding=vector)
            for space, key in names
        ]
    )
    found = await store.search(("all",), "fox", 999, recursive=True)
    assert {(item.namespace, item.key) for item in found} == set(names)
    (best,) = await store.search(("all",), "fox 77", 1, recursive=True)
    assert best.key == "77"
    hits = await store.search_by_embedding(("all",), vector, 999, recursive=True)
    assert {(hit.item.namespace, hit.item.key) for hit in hits} == set(names)
    for name, most in (("postings", 100), ("similar", 20)):
        keys = [call.arguments[0] for call in calls if call.script == script(name)]
        assert sum(keys) % len(names) == 0
        assert max(keys) == most


@pytest.mark.slow
async def test_no_script_reads_any_number_of_values(store, calls):
    names = [(("all", f"{n % 7}"), f"{n}") for n in range(12_000)]
    await store.put_batch([(*name, int(name[1])) for name in names])
    found = await store.get_batch([*names, (NS, "absent")])
    assert found == {name: int(name[1]) for name in names}
    sizes = [len(call.arguments) for call in calls if call.script == script("values")]
    assert len(sizes) == 3
    assert max(sizes) <= 2 + 7 + 2 * 5000
