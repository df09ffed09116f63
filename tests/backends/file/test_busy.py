"""Another process has the lock of a thread, and does not let it go: it may be suspended."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from contextlib import contextmanager
from dataclasses import replace

import orjson
import pytest

from locus_memory._internal.locks import locked
from locus_memory.backends.file import journal
from locus_memory.backends.file.checkpoints import FileCheckpointer, FileDeltaStorage
from locus_memory.errors import BackendTimeoutError, BackendUnavailableError, ConfigurationError

WRITES = {
    "save": lambda c: c.save({}, "t"),
    "delete": lambda c: c.delete("t"),
    "delete one": lambda c: c.delete("t", "c0"),
    "prune": lambda c: c.prune("t", keep_last=1),
    "copy": lambda c: c.copy_thread("t", "u"),
    "copy onto": lambda c: c.copy_thread("other", "t"),
}


@contextmanager
def held(base, thread="t"):
    """Hold the lock of a thread as another process does."""
    [path] = FileDeltaStorage(base)._threads.locks(thread)
    with locked(path):
        yield


def hold(base, seconds):
    with held(base):
        time.sleep(seconds)


def state(n):
    # Long enough that later ones are deltas against it.
    return {"n": n, "messages": [str(each) * 20 for each in range(20 + n)]}


async def fill(checkpointer, *threads):
    for thread in threads:
        for n in range(3):
            await checkpointer.save(state(n), thread, f"c{n}")


@pytest.mark.parametrize("name", WRITES)
async def test_a_write_waits_for_no_more_than_its_limit(tmp_path, name):
    async with FileCheckpointer(tmp_path, state_type=None, busy_timeout=0.05) as checkpointer:
        await fill(checkpointer, "t", "other")
        with held(tmp_path), pytest.raises(BackendTimeoutError, match="another process") as raised:
            await WRITES[name](checkpointer)
        assert isinstance(raised.value, BackendUnavailableError)
        assert await checkpointer.list_checkpoints("t") == ["c2", "c1", "c0"]
        assert await checkpointer.list_threads() == ["other", "t"]
        await WRITES[name](checkpointer) if name != "copy onto" else None


async def test_a_write_goes_on_once_the_lock_is_free(tmp_path):
    async with FileCheckpointer(tmp_path, state_type=None) as checkpointer:
        await fill(checkpointer, "t")
        with held(tmp_path):
            saving = asyncio.create_task(checkpointer.save({"n": 3}, "t", "c3"))
            await asyncio.sleep(0.05)
            assert not saving.done()
        assert await saving == "c3"


async def test_a_read_needs_no_lock(tmp_path):
    async with FileCheckpointer(tmp_path, state_type=None, busy_timeout=0) as checkpointer:
        await fill(checkpointer, "t", "Long" * 100)
        with held(tmp_path), held(tmp_path, "Long" * 100):
            assert await checkpointer.load("t") == state(2)
            assert await checkpointer.load("t", "c0") == state(0)
            assert await checkpointer.list_checkpoints("t") == ["c2", "c1", "c0"]
            assert await checkpointer.list_threads() == ["Long" * 100, "t"]
            assert len(await checkpointer.query_by_metadata({}, 10)) == 6


@pytest.mark.parametrize("done", range(4))
async def test_a_read_sees_the_end_of_a_change_that_is_half_done(tmp_path, monkeypatch, done):
    """Whoever wrote the journal may be suspended anywhere between its first and its last step."""
    async with FileCheckpointer(tmp_path, state_type=None, busy_timeout=0) as checkpointer:
        await fill(checkpointer, "t")
        with monkeypatch.context() as patch:
            patch.setattr(journal, "_carry_out", lambda *_: None)
            assert await checkpointer.prune("t", keep_last=1) == 2
        folder = tmp_path / "t-t"
        plan = orjson.loads((folder / journal.JOURNAL).read_bytes())
        assert len(plan["renamed"]) == 1
        assert len(plan["removed"]) == 2
        steps = [(folder / aside).replace for aside in plan["renamed"]]
        arguments = [(folder / name,) for name in plan["renamed"].values()]
        steps += [(folder / name).unlink for name in plan["removed"]]
        for step, given in zip(steps[:done], [*arguments, (), ()], strict=False):
            step(*given)
        with held(tmp_path):
            assert await checkpointer.list_checkpoints("t") == ["c2"]
            assert await checkpointer.load("t") == state(2)
            assert await checkpointer.load("t", "c0") is None
            assert await checkpointer.list_threads() == ["t"]
        await checkpointer.save({"n": 3}, "t", "c3")
        assert sorted(path.suffix for path in folder.iterdir()) == [".ckpt", ".ckpt"]


async def test_calls_that_wait_occupy_no_thread(tmp_path):
    async with FileCheckpointer(tmp_path, state_type=None, busy_timeout=1) as checkpointer:
        await fill(checkpointer, "t")
        with held(tmp_path):
            waiting = [asyncio.create_task(checkpointer.save({}, "t")) for _ in range(200)]
            await asyncio.sleep(0.1)
            before = threading.active_count()
            assert before < 50
            async with asyncio.timeout(0.5):
                await asyncio.to_thread(time.sleep, 0)
                await checkpointer.save({"n": 1}, "u")
                assert await checkpointer.load("t") == state(2)
            # All of them were called at one time, so their limits end at one time.
            async with asyncio.timeout(5):
                ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert {type(error) for error in ended} == {BackendTimeoutError}


async def test_a_long_queue_is_no_suspended_process(tmp_path, monkeypatch):
    """While others get their turn the limit does not end, though the lock is often taken."""
    async with FileCheckpointer(tmp_path, state_type=None, busy_timeout=0.5) as checkpointer:
        await fill(checkpointer, "t")
        found = await checkpointer.storage.retrieve("t", "c0")
        records = [replace(found, checkpoint_id=f"d{n}", revision=n) for n in range(40)]
        monkeypatch.setattr(os, "fsync", lambda _: time.sleep(0.02))
        saving = asyncio.gather(*map(checkpointer.storage.store, records))
        while not saving.done():
            await asyncio.to_thread(hold, tmp_path, 0.005)
            await asyncio.sleep(0.005)
        assert sorted(await saving) == list(range(4, 44))


async def test_file_work_leaves_the_threads_of_the_event_loop_alone(tmp_path, monkeypatch):
    used = []
    async with FileCheckpointer(tmp_path, state_type=None) as checkpointer:
        storage = checkpointer.storage
        for name in ("store", "chain"):
            original = getattr(storage._threads, name)

            def noted(*args, original=original):
                used.append(threading.current_thread().name)
                return original(*args)

            monkeypatch.setattr(storage._threads, name, noted)
        await checkpointer.save({}, "t")
        assert await checkpointer.load("t") == {}
    assert len(used) >= 2
    assert all(name.startswith("file") for name in used)


def test_a_negative_limit_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="busy_timeout >= 0"):
        FileCheckpointer(tmp_path, busy_timeout=-1)
