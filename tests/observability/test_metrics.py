"""The metrics that are read from live objects or counted from events."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys

import pytest

from locus_memory import LLMMemoryManager, get_checkpointer, get_store
from locus_memory._internal.running.cache_counts import CACHES
from locus_memory.backends.inmemory import InMemoryStore
from locus_memory.errors import BackendUnavailableError, ConfigurationError
from locus_memory.events import emit
from locus_memory.observability import METRICS, instrument
from locus_memory.retrieval.embedders.wrappers.caching import CachingEmbedder
from locus_memory.store.wrappers import CachingStore
from locus_memory.testing import FakeEmbedder

NS = ("metrics",)


def counts(recorded, cache):
    return [
        recorded.value("locus_memory.cache.requests", cache=cache, result=result)
        for result in ("hit", "miss")
    ]


async def test_caches_are_counted(instrumented):
    before = counts(instrumented, "store")
    cache = CachingStore(InMemoryStore())
    for _ in range(3):
        await cache.get(NS, "k")
    after = counts(instrumented, "store")
    assert [new - old for old, new in zip(before, after, strict=True)] == [2, 1]


async def test_the_cache_of_checkpoints_is_counted(instrumented, tmp_path):
    before = counts(instrumented, "checkpoint")
    async with get_checkpointer(f"sqlite:{tmp_path}/a.db") as checkpointer:
        for step in range(4):
            await checkpointer.save({"step": step}, "t")
    after = counts(instrumented, "checkpoint")
    assert [new - old for old, new in zip(before, after, strict=True)] == [3, 1]


async def test_the_cache_of_vectors_is_counted(instrumented):
    before = counts(instrumented, "embedder")
    embedder = CachingEmbedder(FakeEmbedder())
    await embedder.embed(["a", "b", "a"])
    await embedder.embed(["a"])
    after = counts(instrumented, "embedder")
    assert [new - old for old, new in zip(before, after, strict=True)] == [1, 2]
    assert set(CACHES) >= {"store", "checkpoint", "embedder"}


async def test_the_connections_of_a_file_are_measured(instrumented, tmp_path):
    path = f"{tmp_path}/a.db"
    name = {"name": f"sqlite {path}"}
    async with get_store(f"sqlite:{path}") as store:
        await asyncio.gather(*(store.get(NS, str(n)) for n in range(8)))
        assert instrumented.value("db.client.connection.max", **name) == 2
        assert instrumented.value("db.client.connection.count", state="used", **name) == 0
        assert 1 <= instrumented.value("db.client.connection.count", state="idle", **name) <= 2
        assert instrumented.value("db.client.connection.pending_requests", **name) == 0


def connections(recorded, state):
    """Return the numbers of connections of a state, by the names of their pools."""
    return {
        dict(key)["db.client.connection.pool.name"]: point.value
        for key, point in recorded.points("db.client.connection.count").items()
        if dict(key)["db.client.connection.state"] == state
    }


def most(recorded):
    """Return the most connections, by the names of their pools; those of one server share it."""
    points = recorded.points("db.client.connection.max").items()
    return {dict(key)["db.client.connection.pool.name"]: point.value for key, point in points}


async def test_the_connections_of_postgresql_are_measured(
    instrumented, postgresql_server, schema_of, tmp_path
):
    schema = schema_of(tmp_path)
    # Another test may have left pools of the same server behind.
    gc.collect()
    before = most(instrumented)
    async with get_store(postgresql_server.url, pool_size=2, schema=schema) as store:
        await asyncio.gather(*(store.get(NS, str(n)) for n in range(8)))
        [(name, idle)] = [
            each for each in connections(instrumented, "idle").items() if each[0].startswith("post")
        ]
        assert idle == 2
        assert most(instrumented)[name] - before.get(name, 0) == 2
        assert "@" not in name


async def test_the_connections_of_redis_are_measured(instrumented, redis_server):
    gc.collect()
    before = most(instrumented)
    async with get_store(f"redis:{redis_server.url}", pool_size=3) as store:
        await asyncio.gather(*(store.get(NS, str(n)) for n in range(8)))
        [(name, idle)] = [
            each
            for each in connections(instrumented, "idle").items()
            if each[0].startswith("redis")
        ]
        assert 1 <= idle <= 3
        assert most(instrumented)[name] - before.get(name, 0) == 3
        assert "@" not in name


async def test_the_queue_is_measured(instrumented):
    gate = asyncio.Event()

    async def extract(messages):
        await gate.wait()
        return []

    before = instrumented.value("locus_memory.queue.length", queue="extraction")
    async with LLMMemoryManager(
        InMemoryStore(), extract_fn=extract, extract_mode="background"
    ) as manager:
        await manager.add("I live in Oslo.", user_id="ada")
        during = instrumented.value("locus_memory.queue.length", queue="extraction")
        gate.set()
        await manager.drain()
    after = instrumented.value("locus_memory.queue.length", queue="extraction")
    assert (during - before, after - before) == (1, 0)


def test_events_are_counted(instrumented):
    emit("memory.extract_failed", error=BackendUnavailableError("x"), thread="t", attempts=1)
    emit("memory.injected", retrieved=1, characters=2)
    emit("memory.extracted", messages=2, changes=4, memories=3)
    points = instrumented.points("locus_memory.events")
    assert {key: point.value for key, point in points.items()} == {
        (
            ("error.type", "BackendUnavailableError"),
            ("locus_memory.event", "memory.extract_failed"),
        ): 1,
        (("locus_memory.event", "memory.injected"),): 1,
        (("locus_memory.event", "memory.extracted"),): 1,
    }
    assert instrumented.value("locus_memory.extractions", outcome="failed") == 1
    assert instrumented.value("locus_memory.extraction.memories") == 3


async def test_every_metric_is_recorded_with_its_unit_and_attributes(instrumented, tmp_path):
    async with get_store(f"sqlite:{tmp_path}/a.db") as store:
        manager = LLMMemoryManager(store)
        await manager.retrieve("tea")
        await CachingStore(store).get(NS, "k")
        emit("memory.extracted", messages=2, changes=4, memories=3)
        data = instrumented._reader.get_metrics_data()
    [scope] = data.resource_metrics[0].scope_metrics
    found = {each.name: each for each in scope.metrics}
    assert set(found) == {each.name for each in METRICS}
    for metric in METRICS:
        each = found[metric.name]
        assert (each.unit, each.description) == (metric.unit, metric.description)
        for point in each.data.data_points:
            assert set(point.attributes) <= set(metric.attributes), metric.name


def test_nothing_is_read_once_it_is_undone(recorded):
    undo = recorded.instrument()
    assert recorded.points("locus_memory.cache.requests")
    undo()
    emit("memory.extracted", messages=2, changes=4, memories=3)
    assert recorded.points("locus_memory.cache.requests") == {}
    assert recorded.points("locus_memory.events") == {}


def test_it_is_done_once(instrumented):
    with pytest.raises(ConfigurationError, match="instrumented already"):
        instrument()


@pytest.mark.slow
def test_without_an_sdk_nothing_is_recorded():
    code = """
import asyncio, sys
from locus_memory import get_store
from locus_memory.observability import instrument

async def main():
    instrument()
    async with get_store("memory") as store:
        await store.put(("a",), "k", 1)
        print(await store.get(("a",), "k"), "opentelemetry.sdk" in sys.modules)

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("1 False\n", "")


@pytest.mark.slow
def test_the_missing_package_is_named():
    code = """
import sys
sys.modules["opentelemetry"] = None
sys.modules["opentelemetry.trace"] = None
from locus_memory import get_store
from locus_memory.observability import instrument, log_events
log_events()
instrument()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "MissingDriverError: instrument: needs the 'opentelemetry' extra" in done.stderr


@pytest.mark.slow
def test_using_the_package_never_loads_opentelemetry():
    code = """
import asyncio, sys
from locus_memory import get_store
import locus_memory.observability

async def main():
    async with get_store("memory") as store:
        await store.put(("a",), "k", 1)

asyncio.run(main())
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
