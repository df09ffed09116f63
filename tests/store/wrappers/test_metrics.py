from __future__ import annotations

import asyncio

import pytest

from locus_memory.backends.inmemory import InMemoryStore
from locus_memory.errors import InvalidKeyError
from locus_memory.store.wrappers import MetricsStore, StoreWrapper, VerbMetrics
from locus_memory.testing import FakeClock

NS = ("metrics",)


class SlowStore(StoreWrapper):
    """Takes `seconds` for a read, by a clock that is moved."""

    def __init__(self, store, timer):
        super().__init__(store)
        self.timer = timer
        self.seconds = 0.0

    async def get(self, namespace, key):
        self.timer.advance(self.seconds)
        return await super().get(namespace, key)


async def test_calls_are_counted_and_timed():
    timer = FakeClock(0.0)
    slow = SlowStore(InMemoryStore(), timer)
    store = MetricsStore(slow, timer=timer)
    assert store.metrics == {}
    await store.put(NS, "k", 1)
    for slow.seconds in (1.0, 3.0):
        assert await store.get(NS, "k") == 1
    assert store.metrics == {
        "put": VerbMetrics(calls=1),
        "get": VerbMetrics(calls=2, failures=0, seconds=4.0, longest=3.0),
    }
    assert store.metrics["get"].mean == 2.0
    assert VerbMetrics().mean == 0.0


async def test_failures_are_counted():
    store = MetricsStore(InMemoryStore())
    with pytest.raises(InvalidKeyError):
        await store.get(NS, "")
    assert (store.metrics["get"].calls, store.metrics["get"].failures) == (1, 1)


async def test_a_cancelled_call_is_a_failure():
    class Endless(StoreWrapper):
        async def get(self, namespace, key):
            await asyncio.Event().wait()

    store = MetricsStore(Endless(InMemoryStore()))
    call = asyncio.create_task(store.get(NS, "k"))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert store.metrics["get"].failures == 1


async def test_a_copy_of_the_counts_is_returned():
    store = MetricsStore(InMemoryStore())
    before = store.metrics
    await store.exists(NS, "k")
    assert before == {}
    assert store.metrics["exists"].calls == 1
