"""A cancelled call is told to whoever cancelled it, and to nobody else."""

from __future__ import annotations

import asyncio
import gc
import random

import pytest

from locus_memory.backends.postgresql.backend import PostgreSQLBackend

pytestmark = pytest.mark.usefixtures("own_tables")

NS = ("cancelled",)


@pytest.fixture
async def heard():
    """What the event loop's own handler of exceptions was told."""
    told = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: told.append(context))
    yield told
    loop.set_exception_handler(None)


def calls(backend, chance):
    """Yield one call of each kind, in no order."""
    store, checkpointer = backend.store, backend.checkpointer
    kinds = [
        lambda: store.put(NS, "k", 1),
        lambda: store.get(NS, "k"),
        lambda: store.put_batch([(NS, "b", 1), (NS, "c", 1)]),
        lambda: store.clear_namespace(NS),
        lambda: checkpointer.save({"a": 1}, "t"),
        lambda: checkpointer.save({"a": 2}, f"t{chance.random()}"),
        lambda: checkpointer.load("t"),
        lambda: checkpointer.prune("t", keep_last=2),
        lambda: checkpointer.copy_thread("t", "copy"),
    ]
    for _ in range(40):
        yield chance.choice(kinds)()


async def storm(backend, chance):
    """Make calls at once, and cancel most of them at some moment, some of them twice."""
    loop = asyncio.get_running_loop()
    tasks = [asyncio.create_task(call) for call in calls(backend, chance)]
    for task in tasks:
        for _ in range(chance.randrange(3)):
            loop.call_later(chance.uniform(0, 0.1), task.cancel)
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 16])
async def test_the_event_loop_hears_nothing_of_cancelled_calls(url, schema, heard, size):
    chance = random.Random(size)
    for _ in range(8):
        # Some are cancelled while they connect.
        async with PostgreSQLBackend(url, schema=schema, pool_size=size) as backend:
            await storm(backend, chance)
            await backend.store.put(NS, "k", 1)
            assert await backend.store.get(NS, "k") == 1
    gc.collect()
    await asyncio.sleep(0)
    gc.collect()
    assert heard == []


async def test_a_connection_that_nobody_waits_for_any_more_is_used_by_the_next(url, schema):
    async with PostgreSQLBackend(url, schema=schema, pool_size=1) as backend:
        for _ in range(30):
            first = asyncio.create_task(backend.store.put(NS, "k", 1))
            await asyncio.sleep(0)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            assert await asyncio.wait_for(backend.store.put(NS, "k", 2), 30) > 0
