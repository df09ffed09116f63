"""Work in the background: its owner waits for all of it, in each event loop."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest

from locus_memory._internal.running.background import BackgroundTasks
from locus_memory.events import collect, emit


async def test_it_waits_for_tasks_and_for_those_that_they_start():
    tasks, done = BackgroundTasks(), []

    async def work(depth):
        await asyncio.sleep(0)
        done.append(depth)
        if depth:
            tasks.start(work(depth - 1))

    task = tasks.start(work(3))
    assert tasks.pending == 1
    await tasks.wait()
    assert (done, tasks.pending, task.done()) == ([3, 2, 1, 0], 0, True)
    await tasks.wait()


async def test_no_caller_collects_the_events_of_a_task():
    tasks = BackgroundTasks()

    async def work():
        emit("memory.planned")

    with collect() as events:
        tasks.start(work())
        await tasks.wait()
    assert events == []


async def test_a_task_that_fails_or_hangs_holds_nobody():
    tasks = BackgroundTasks()

    async def fail():
        raise ValueError("no")

    failed, hanging = tasks.start(fail()), tasks.start(asyncio.Event().wait())
    with pytest.raises(TimeoutError):
        await tasks.wait(0.01)
    assert isinstance(failed.exception(), ValueError)
    assert tasks.cancel() == [hanging]
    await tasks.wait()
    assert hanging.cancelled()


def test_tasks_of_an_event_loop_that_ended_are_forgotten():
    tasks = BackgroundTasks()

    async def hang():
        tasks.start(asyncio.Event().wait())
        assert tasks.pending == 1

    for _ in range(2):
        asyncio.run(hang())
        assert tasks.pending == 0
    asyncio.run(asyncio.wait_for(tasks.wait(), 5))


def test_event_loops_in_threads_share_the_tasks():
    tasks, failed = BackgroundTasks(), []

    async def start_and_wait():
        for _ in range(30):
            for _ in range(1_000):
                tasks.start(asyncio.sleep(0))
            assert tasks.pending >= 1_000
            await tasks.wait()

    def work():
        try:
            asyncio.run(start_and_wait())
        except RuntimeError as error:
            failed.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(3)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    finally:
        sys.setswitchinterval(interval)
    assert (failed, tasks.pending) == ([], 0)
