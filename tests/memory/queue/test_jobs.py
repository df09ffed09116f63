"""Jobs in the store: who may have them, and what becomes of those that nobody finishes."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from locus_memory._internal.running.lease import Lease
from locus_memory.memory.manager import LLMMemoryManager
from tests.memory.queue.test_queue import QUEUE, Gate, conversation, run_of, waiting


async def test_a_thread_whose_name_begins_other_scopes_is_alone(make, store, scripted):
    """The messages of the users are not those of a thread that is called as their namespace."""
    extractor = scripted()
    manager = make(extract_fn=extractor, extract_mode="manual")
    await manager.on_session_end(run_of(conversation("one", "two"), "users"))
    await manager.on_session_end(run_of(conversation("three", "four"), "t", user_id="ana"))
    assert await manager.scoped(("locus_memory",)).sync_now() == 0
    assert extractor.texts == [["one", "two"]]
    assert await waiting(store) == 1


async def test_a_lease_of_a_machine_that_is_gone_ends(make, store, clock, scripted):
    gate = Gate()
    manager = make(extract_fn=gate, extract_mode="background", extract_timeout=60)
    await manager.on_session_end(run_of(conversation("one", "two")))
    await gate.entered.wait()
    (item,) = await store.scan(QUEUE)
    lease = item.value["lease"] | {"host": "elsewhere"}
    await store.put(QUEUE, item.key, item.value | {"lease": lease})
    other = make(extract_fn=scripted())
    assert await other.drain() == 1
    clock.advance(120)
    assert await other.drain() == 0
    gate.open.set()
    await manager.drain()


def test_a_lease_of_a_process_that_is_gone_is_over_at_once():
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    with Lease(100.0) as lease:
        mine = lease.to_value()
        assert Lease.holds(mine, 99.0)
        assert not Lease.holds(mine, 100.0)
        assert not Lease.holds(mine | {"pid": gone.pid}, 0.0)
        assert Lease.holds(mine | {"pid": gone.pid, "host": "elsewhere"}, 0.0)
        assert Lease.holds(mine | {"pid": os.getppid(), "started": None}, 0.0)
        if mine["started"] is not None:
            assert not Lease.holds(mine | {"pid": os.getppid(), "started": "1"}, 0.0)
    assert not Lease.holds(mine, 0.0)
    assert not Lease.holds(None, 0.0)


async def test_a_job_that_takes_its_process_down_waits_until_somebody_insists(
    make, store, scripted, events
):
    """The thread goes on without it, and it is not lost."""
    manager = make(extract_fn=scripted(RuntimeError("no model")))
    await manager.on_session_end(run_of(conversation("one", "two")))
    (item,) = await store.scan(QUEUE)
    dead = {**Lease(0).to_value(), "pid": 2**22 + 1}
    await store.put(QUEUE, item.key, item.value | {"attempts": 5, "lease": dead})
    extractor = scripted()
    manager = make(extract_fn=extractor)
    assert await manager.drain() == 1
    await manager.on_session_end(run_of(conversation("one", "two", "three", "four")))
    (parked,) = events.of("memory.extract_parked")
    assert parked.attributes == {"thread": "t", "attempts": 5}
    assert extractor.texts == [["three", "four"]]
    assert await waiting(store) == 1
    assert await manager.sync_now() == 0
    assert extractor.texts == [["three", "four"], ["one", "two"]]
    assert await waiting(store) == 0


async def test_what_is_no_job_is_reported_and_left_alone(make, store, scripted, events):
    await store.put(QUEUE, "t0000000000000001", {"version": 9})
    manager = make(extract_fn=scripted())
    await manager.drain()
    assert "memory.queue_unreadable" in events.names
    assert await waiting(store) == 1


@pytest.mark.parametrize(
    "damage",
    [
        {"messages": []},
        {"messages": [{}]},
        {"messages": "no"},
        {"messages": [{"role": "user", "content": 5, "number": 1}]},
        {"cursor": "no"},
        {"cursor": {"place": "x"}},
        {"attempts": None},
        {"queued_at": 7},
        {"lease": 3},
        {"namespace": "locus_memory"},
    ],
)
async def test_a_damaged_job_holds_no_other_thread_up(make, store, scripted, events, damage):
    """Not even one of its scope."""
    writer = make(extract_mode="manual")
    await writer.on_session_end(run_of(conversation("one", "two"), "a"))
    (item,) = await store.scan(QUEUE)
    await store.put(QUEUE, item.key, item.value | damage)
    extractor = scripted()
    manager = make(extract_fn=extractor, extract_mode="session_end")
    await manager.on_session_end(run_of(conversation("three", "four"), "b"))
    assert await manager.drain() == 0
    assert extractor.texts == [["three", "four"]]
    assert "memory.queue_unreadable" in events.names
    assert await waiting(store) == 1


async def test_a_job_queued_without_its_cursor_is_adopted(make, store, scripted):
    """As a process leaves it that is killed between the two writes."""
    killed = make(extract_fn=scripted(RuntimeError("no model")))
    await killed.on_session_end(run_of(conversation("one", "two")))
    await store.delete(("locus_memory", "cursors"), "t")
    extractor = scripted()
    manager = make(extract_fn=extractor)
    await manager.on_session_end(run_of(conversation("one", "two", "three", "four")))
    assert await manager.drain() == 0
    assert [text for texts in extractor.texts for text in texts] == ["one", "two", "three", "four"]


async def test_a_job_done_without_its_cursor_leaves_one(make, store, scripted):
    """As above, but the job is done before anybody adds to its thread."""
    killed = make(extract_fn=scripted(RuntimeError("no model")))
    await killed.on_session_end(run_of(conversation("one", "two")))
    await store.delete(("locus_memory", "cursors"), "t")
    extractor = scripted()
    manager = make(extract_fn=extractor)
    assert await manager.drain() == 0
    await manager.on_session_end(run_of(conversation("one", "two", "three", "four")))
    assert await manager.drain() == 0
    assert extractor.texts == [["one", "two"], ["three", "four"]]


async def test_what_another_process_took_is_not_dropped(store, clock):
    """An attempt that outlasted its lease deletes nothing of the next one."""
    manager = LLMMemoryManager(store, clock=clock, extract_mode="manual")
    await manager.add("I am vegetarian.", thread_id="t")
    queue = manager._queue
    [job] = [each async for each in queue.jobs()]
    with Lease(clock() + 60) as lease, Lease(clock() + 60) as other:
        held = await queue.claim([job], lease)
        assert await queue.claim(held, other)
        assert await queue.fail(held, 1) == []
    [left] = [each async for each in queue.jobs()]
    assert left.lease["token"] == other.token
    assert await queue.fail([left], 1) == [replace(left, lease=None)]
    assert [each async for each in queue.jobs()] == []
