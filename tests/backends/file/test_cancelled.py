"""A call that is cancelled on a slow disk never surprises whoever comes next."""

from __future__ import annotations

import asyncio
import os
import threading
from random import Random

import pytest

from locus_memory.backends.file.checkpoints import FileCheckpointer

ROUNDS = 10


class Disk:
    """A disk that stalls when it is told to: what is written lasts only once it goes on."""

    def __init__(self, monkeypatch):
        self.stalled = threading.Event()
        self.moves = threading.Event()
        self.moves.set()
        self.fsync = os.fsync
        monkeypatch.setattr(os, "fsync", self)

    def __call__(self, handle):
        if not self.moves.is_set():
            self.stalled.set()
            assert self.moves.wait(30)
        self.fsync(handle)

    def stall(self):
        self.stalled.clear()
        self.moves.clear()

    async def reached(self):
        assert await asyncio.to_thread(self.stalled.wait, 30)


@pytest.fixture
def disk(monkeypatch):
    found = Disk(monkeypatch)
    yield found
    found.moves.set()


async def test_a_later_save_stays(tmp_path, disk):
    async with FileCheckpointer(tmp_path, state_type=None) as checkpointer:
        for n in range(ROUNDS):
            disk.stall()
            early = asyncio.create_task(checkpointer.save({"early": n}, "t", f"early {n}"))
            await disk.reached()
            early.cancel()
            asyncio.get_running_loop().call_later(0.02, disk.moves.set)
            with pytest.raises(asyncio.CancelledError):
                await early
            await checkpointer.save({"later": n}, "t", f"later {n}")
            assert await checkpointer.load("t") == {"later": n}
            assert await checkpointer.list_checkpoints("t", 2) == [f"later {n}", f"early {n}"]


async def test_what_waits_for_its_turn_is_dropped(tmp_path, disk):
    async with FileCheckpointer(tmp_path, state_type=None) as checkpointer:
        await checkpointer.save({}, "t", "first")
        disk.stall()
        stalled = asyncio.create_task(checkpointer.save({"n": 1}, "t", "stalled"))
        await disk.reached()
        # It has a thread of its own by then, and waits for the lock of `t`.
        waiting = asyncio.create_task(checkpointer.delete("t"))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        disk.moves.set()
        await stalled
        await checkpointer.save({"n": 2}, "t", "last")
        assert await checkpointer.list_checkpoints("t") == ["last", "stalled", "first"]


async def test_a_read_waits_for_no_write(tmp_path, disk):
    async with FileCheckpointer(tmp_path, state_type=None) as checkpointer:
        await checkpointer.save({"n": 1}, "t", "first")
        disk.stall()
        stalled = asyncio.create_task(checkpointer.save({"n": 2}, "t"))
        await disk.reached()
        assert await checkpointer.list_checkpoints("t") == ["first"]
        assert await checkpointer.load("t") == {"n": 1}
        assert await checkpointer.list_threads() == ["t"]
        assert not stalled.done()
        disk.moves.set()
        await stalled


async def test_closing_waits_for_what_has_begun(tmp_path, disk):
    checkpointer = FileCheckpointer(tmp_path, state_type=None)
    await checkpointer.save({}, "t", "first")
    disk.stall()
    stalled = asyncio.create_task(checkpointer.save({"n": 1}, "t", "stalled"))
    await disk.reached()
    for _ in range(2):
        # Cancelled twice, the caller waits no longer, but whoever closes does.
        stalled.cancel()
        await asyncio.sleep(0.01)
    with pytest.raises(asyncio.CancelledError):
        await stalled
    closing = asyncio.create_task(checkpointer.close())
    await asyncio.sleep(0.05)
    assert not closing.done()
    disk.moves.set()
    await closing
    async with FileCheckpointer(tmp_path, state_type=None) as other:
        assert await other.load("t") == {"n": 1}


@pytest.mark.slow
async def test_five_hundred_cancels(tmp_path):
    random = Random(7)
    async with FileCheckpointer(tmp_path, state_type=None) as checkpointer:
        for n in range(500):
            tasks = [
                asyncio.create_task(call)
                for call in (
                    checkpointer.save({"n": n}, "t", f"c{n}"),
                    checkpointer.save({"n": n}, "u"),
                    checkpointer.load("t"),
                )
            ]
            for _ in range(random.randrange(8)):
                await asyncio.sleep(0.0001)
            for task in tasks:
                task.cancel()
            async with asyncio.timeout(30):
                await asyncio.gather(*tasks, return_exceptions=True)
            if n % 25 == 0:
                await checkpointer.save({"kept": n}, "t", f"kept {n}")
                assert await checkpointer.load("t") == {"kept": n}
                assert await checkpointer.prune("u", keep_last=1) >= 0
        names = await checkpointer.list_checkpoints("t", 2000)
        assert {f"kept {n}" for n in range(0, 500, 25)} <= set(names)
        for name in names:
            assert await checkpointer.load("t", name)
    assert not checkpointer.storage._running
