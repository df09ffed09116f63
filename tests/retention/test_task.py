"""Retention in the background: when it runs, and in one process at a time."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from locus_memory._internal.running.lease import Lease
from locus_memory.errors import BackendUnavailableError, ConfigurationError, InvalidArgumentError
from locus_memory.events import subscribe
from locus_memory.registry import open_backend
from locus_memory.retention import ItemRule, RetentionTask
from locus_memory.testing import FakeClock

RULES = [ItemRule(namespace=("log",), keep_last=1)]
DAY = 86_400.0


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
async def backend(clock):
    async with open_backend("memory", clock=clock) as opened:
        yield opened


async def fill(backend):
    for number in range(5):
        await backend.store.put(("log",), str(number), number)


async def test_it_runs_once_in_its_interval(backend, clock):
    await fill(backend)
    tasks = [RetentionTask(backend, RULES, clock=clock) for _ in range(4)]
    reports = await asyncio.gather(*(task.run_due() for task in tasks))
    assert [each.items for each in reports if each] == [4]
    await fill(backend)
    clock.advance(DAY - 1)
    assert await tasks[0].run_due() is None
    clock.advance(1)
    assert (await tasks[1].run_due()).items == 4


async def test_no_other_process_works_under_a_lease(backend, clock):
    await fill(backend)
    with Lease(clock() + 3600) as lease:
        value = {"ran_at": None, "lease": {**lease.to_value(), "host": "elsewhere"}}
        await backend.store.put(("locus_memory", "retention"), "pass", value)
    task = RetentionTask(backend, RULES, clock=clock)
    assert await task.run_due() is None
    clock.advance(3600)
    assert (await task.run_due()).items == 4


async def test_a_long_pass_renews_its_lease(backend, clock, monkeypatch):
    for name in "abc":
        for number in range(3):
            await backend.store.put(("log", name), str(number), number)
    task = RetentionTask(backend, RULES, clock=clock)
    other = RetentionTask(backend, RULES, clock=clock)
    write_batch = backend.store.write_batch

    async def slow(operations):
        clock.advance(2000)
        assert await other.run_due() is None
        return await write_batch(operations)

    monkeypatch.setattr(backend.store, "write_batch", slow)
    assert (await task.run_due()).items == 6


async def test_a_failed_pass_gives_the_lease_back(backend, clock, monkeypatch):
    await fill(backend)
    task = RetentionTask(backend, RULES, clock=clock)

    async def broken(operations):
        raise BackendUnavailableError("down")

    with monkeypatch.context() as patch:
        patch.setattr(backend.store, "write_batch", broken)
        with pytest.raises(BackendUnavailableError):
            await task.run_due()
    assert (await task.run_due()).items == 4


async def test_it_runs_in_the_background_and_reports_a_failure(backend, clock, monkeypatch):
    await fill(backend)
    events = []
    unsubscribe = subscribe(events.append)

    async def broken(operations):
        raise BackendUnavailableError("down")

    try:
        async with RetentionTask(backend, RULES, clock=clock) as task:
            with monkeypatch.context() as patch:
                patch.setattr(backend.store, "write_batch", broken)
                clock.advance(61)
                await task.open()
                await task.wait()
            clock.advance(3601)
            await task.open()
            await task.wait()
    finally:
        unsubscribe()
    names = [event.name for event in events]
    assert names.index("retention.failed") < names.index("retention.applied")
    assert await backend.store.list_keys(("log",)) == ["4"]


async def test_what_is_refused(backend, tmp_path):
    with pytest.raises(InvalidArgumentError, match="at least a minute"):
        RetentionTask(backend, RULES, every=timedelta(seconds=59))
    with pytest.raises(ConfigurationError, match="has no store"):
        RetentionTask(open_backend(f"file:{tmp_path}"), RULES)
