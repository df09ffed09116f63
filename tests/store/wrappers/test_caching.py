from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.backends.inmemory import InMemoryStore
from locus_memory.errors import (
    BackendUnavailableError,
    InvalidArgumentError,
    InvalidNamespaceError,
    VersionConflictError,
)
from locus_memory.store.item import Delete, Put
from locus_memory.store.wrappers import CachingStore, StoreWrapper
from locus_memory.testing import FakeClock

NS = ("cache",)
BELOW = (*NS, "below")
MAX_AGE = 30.0


class CountingStore(StoreWrapper):
    """Notes what is read from it; reads wait for `gate`, and fail with `error`."""

    def __init__(self, store):
        super().__init__(store)
        self.reads = []
        self.begun = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()
        self.error = None

    async def get_item(self, namespace, key):
        self.reads.append(key)
        self.begun.set()
        item = await super().get_item(namespace, key)
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return item

    async def get_batch(self, keys):
        self.reads.append([key for _, key in keys])
        return await super().get_batch(keys)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def timer():
    return FakeClock(0.0)


@pytest.fixture
def database(clock):
    """The store that other processes write to."""
    return InMemoryStore(clock=clock)


@pytest.fixture
def inner(database):
    return CountingStore(database)


@pytest.fixture
def cache(inner, clock, timer):
    return CachingStore(inner, max_items=3, max_age=MAX_AGE, clock=clock, timer=timer)


async def test_an_item_is_read_once(cache, inner):
    await inner.put(NS, "k", {"n": 1}, {"m": 2})
    assert await cache.get(NS, "k") == {"n": 1}
    item = await cache.get_item(NS, "k")
    assert (item.version, item.metadata) == (1, {"m": 2})
    assert await cache.exists(NS, "k")
    assert await cache.get_batch([(NS, "k")]) == {(NS, "k"): {"n": 1}}
    assert inner.reads == ["k"]


async def test_that_there_is_no_item_is_kept_as_well(cache, inner):
    for _ in range(2):
        assert await cache.get(NS, "k") is None
        assert not await cache.exists(NS, "k")
        assert await cache.get_batch(iter([(NS, "k")])) == {}
    assert inner.reads == ["k"]


async def test_a_read_is_never_older_than_the_bound(cache, database, timer):
    await database.put(NS, "k", "old")
    assert await cache.get(NS, "k") == "old"
    await database.put(NS, "k", "new")
    timer.advance(MAX_AGE - 0.001)
    assert await cache.get(NS, "k") == "old"
    timer.advance(0.001)
    assert await cache.get(NS, "k") == "new"


async def test_the_bound_counts_from_before_the_read(cache, inner, database, timer):
    await database.put(NS, "k", "old")
    inner.gate.clear()
    reading = asyncio.create_task(cache.get(NS, "k"))
    await inner.begun.wait()
    await database.put(NS, "k", "new")
    timer.advance(MAX_AGE)
    inner.gate.set()
    assert await reading == "old"
    assert await cache.get(NS, "k") == "new"


async def test_an_expired_item_is_not_returned(cache, clock):
    await cache.put(NS, "k", 1, ttl=10)
    assert await cache.get(NS, "k") == 1
    clock.advance(10)
    assert await cache.get(NS, "k") is None
    assert await cache.get_batch([(NS, "k")]) == {}


WRITES = {
    "put": lambda store: store.put(NS, "k", "new"),
    "put by name": lambda store: store.put(namespace=NS, key="k", value="new"),
    "put_if": lambda store: store.put(NS, "k", "new", if_version=1),
    "put_with_embedding": lambda store: store.put_with_embedding(NS, "k", "new", [1.0, 0.0]),
    "put_batch": lambda store: store.put_batch(iter([(NS, "k", "new")])),
    "write_batch": lambda store: store.write_batch(iter([Put(namespace=NS, key="k", value="new")])),
    "delete": lambda store: store.delete(NS, "k"),
    "delete_if": lambda store: store.delete(NS, "k", if_version=1),
    "delete_batch": lambda store: store.delete_batch(iter([(NS, "k")])),
    "write_batch of a delete": lambda store: store.write_batch([Delete(namespace=NS, key="k")]),
    "clear_namespace": lambda store: store.clear_namespace(NS),
    "clear_namespace above": lambda store: store.clear_namespace(NS[:1], recursive=True),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
async def test_own_writes_are_seen_at_once(cache, write):
    await cache.put(NS, "k", "old")
    assert await cache.get(NS, "k") == "old"
    await write(cache)
    assert await cache.get(NS, "k") in {"new", None}
    assert await cache.get_batch([(NS, "k")]) in ({(NS, "k"): "new"}, {})


async def test_clearing_drops_the_descendants(cache, inner):
    await cache.put(BELOW, "k", 1)
    assert await cache.get(BELOW, "k") == 1
    await cache.clear_namespace(NS, recursive=True)
    assert await cache.get(BELOW, "k") is None


async def test_a_conditional_write_that_lost_drops_the_item(cache, database):
    await cache.put(NS, "k", "old")
    assert (await cache.get_item(NS, "k")).version == 1
    await database.put(NS, "k", "theirs")
    with pytest.raises(VersionConflictError):
        await cache.put(NS, "k", "ours", if_version=1)
    assert (await cache.get_item(NS, "k")).version == 2
    await database.put(NS, "k", "theirs again")
    with pytest.raises(VersionConflictError):
        await cache.write_batch([Delete(namespace=NS, key="k", if_version=2)])
    assert await cache.get(NS, "k") == "theirs again"


async def test_a_read_that_a_write_overtakes_is_not_kept(cache, inner):
    await inner.put(NS, "k", "old")
    inner.gate.clear()
    reading = asyncio.create_task(cache.get(NS, "k"))
    await inner.begun.wait()
    await cache.put(NS, "k", "new")
    # It does not join the read that began before the write.
    second = asyncio.create_task(cache.get(NS, "k"))
    await asyncio.sleep(0)
    inner.gate.set()
    assert (await reading, await second) == ("old", "new")
    assert await cache.get(NS, "k") == "new"


async def test_concurrent_reads_share_one(cache, inner):
    await inner.put(NS, "k", 1)
    inner.gate.clear()
    reads = [asyncio.create_task(cache.get(NS, "k")) for _ in range(10)]
    await asyncio.sleep(0)
    inner.gate.set()
    assert await asyncio.gather(*reads) == [1] * 10
    assert inner.reads == ["k"]


async def test_an_error_goes_to_all_who_wait_and_is_not_kept(cache, inner):
    await inner.put(NS, "k", 1)
    inner.error = BackendUnavailableError("gone")
    inner.gate.clear()
    reads = [asyncio.create_task(cache.get(NS, "k")) for _ in range(3)]
    await asyncio.sleep(0)
    inner.gate.set()
    found = await asyncio.gather(*reads, return_exceptions=True)
    assert [type(each) for each in found] == [BackendUnavailableError] * 3
    inner.error = None
    assert await cache.get(NS, "k") == 1
    assert inner.reads == ["k", "k"]


async def test_a_cancelled_read_harms_nobody(cache, inner):
    await inner.put(NS, "k", 1)
    inner.gate.clear()
    first, second, third = (asyncio.create_task(cache.get(NS, "k")) for _ in range(3))
    await inner.begun.wait()
    first.cancel()
    third.cancel()
    await asyncio.sleep(0)
    inner.gate.set()
    found = await asyncio.gather(first, second, third, return_exceptions=True)
    assert isinstance(found[0], asyncio.CancelledError)
    assert found[1] == 1
    assert isinstance(found[2], asyncio.CancelledError)
    assert inner.reads == ["k"]
    assert await cache.get(NS, "k") == 1
    assert cache._loads == {}


async def test_a_caller_cannot_change_the_cache(cache, inner):
    await inner.put(NS, "k", {"list": [1]}, {"tags": ["a"]})
    item = await cache.get_item(NS, "k")
    item.value["list"].append(2)
    item.metadata["tags"].append("b")
    (await cache.get(NS, "k"))["list"].append(3)
    (await cache.get_batch([(NS, "k")]))[NS, "k"]["list"].append(4)
    again = await cache.get_item(NS, "k")
    assert (again.value, again.metadata) == ({"list": [1]}, {"tags": ["a"]})
    assert inner.reads == ["k"]


async def test_it_is_bounded_and_drops_the_least_recently_used(cache, inner):
    for key in ("a", "b", "c", "a", "d"):
        await cache.get(NS, key)
    assert len(cache) == 3
    await cache.get(NS, "a")
    assert inner.reads == ["a", "b", "c", "d"]
    await cache.get(NS, "b")
    assert inner.reads[-1] == "b"


async def test_a_batch_reads_what_is_missing_in_one_call(cache, inner):
    await inner.put_batch([(NS, key, key) for key in "abc"])
    await cache.get(NS, "b")
    found = await cache.get_batch([(NS, key) for key in "abcd"])
    assert found == {(NS, key): key for key in "abc"}
    assert inner.reads == ["b", ["a", "c", "d"]]


async def test_bad_names_are_refused_as_ever(cache):
    for call in (
        cache.get(["cache"], "k"),
        cache.put(["cache"], "k", 1),
        cache.put(({},), "k", 1),
        cache.put_batch([(["cache"], "k", 1)]),
        cache.clear_namespace(["cache"]),
        cache.get_batch([("cache", "k")]),
    ):
        with pytest.raises(InvalidNamespaceError):
            await call
    assert len(cache) == 0


@pytest.mark.parametrize("options", [{"max_items": 0}, {"max_age": 0}, {"max_age": float("nan")}])
def test_bad_options_are_refused(database, options):
    with pytest.raises(InvalidArgumentError, match=next(iter(options))):
        CachingStore(database, **options)


async def test_closing_empties_it(cache):
    await cache.get(NS, "k")
    await cache.close()
    assert len(cache) == 0


def test_event_loops_share_it(cache, inner):
    asyncio.run(cache.put(NS, "k", 1))
    assert [asyncio.run(cache.get(NS, "k")) for _ in range(2)] == [1, 1]
    assert inner.reads == ["k"]


KEYS = st.sampled_from("ab")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("get"), KEYS),
        st.tuples(st.sampled_from(["ours", "theirs"]), KEYS),
        st.tuples(st.just("wait"), st.sampled_from([1.0, 10.0, 29.0, 30.0])),
        st.tuples(st.just("delete"), KEYS),
    ),
    max_size=40,
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_every_read_was_true_within_the_bound(steps):
    """Whatever is written, a read has a value that the item had within `max_age`."""
    asyncio.run(_play(steps))


async def _play(steps):
    timer = FakeClock(0.0)
    database = InMemoryStore()
    cache = CachingStore(database, max_items=2, max_age=MAX_AGE, timer=timer)
    past = {key: [(float("-inf"), None)] for key in "ab"}
    for number, (step, what) in enumerate(steps):
        if step == "wait":
            timer.advance(what)
        elif step == "delete":
            await cache.delete(NS, what)
            past[what] = [(timer(), None)]
        elif step in {"ours", "theirs"}:
            await (cache if step == "ours" else database).put(NS, what, number)
            # After a write of our own, nothing older may be read.
            past[what] = [*(past[what] if step == "theirs" else []), (timer(), number)]
        else:
            found = await cache.get(NS, what)
            ends = [*(moment for moment, _ in past[what][1:]), float("inf")]
            allowed = [
                value
                for (_, value), end in zip(past[what], ends, strict=True)
                if end > timer() - MAX_AGE
            ]
            assert found in allowed
