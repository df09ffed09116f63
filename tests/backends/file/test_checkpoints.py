"""What only checkpoints in a folder can do wrong."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys

import pytest

from locus_memory.backends.file import threads
from locus_memory.backends.file.checkpoints import FileCheckpointer
from locus_memory.errors import CheckpointConflictError

LONG = "Long" * 100


def state(number: int) -> dict[str, object]:
    return {"messages": [f"message {n}" for n in range(number + 1)]}


async def fill(checkpointer: FileCheckpointer, thread: str, count: int) -> None:
    for number in range(count):
        await checkpointer.save(state(number), thread, f"c{number}", {"step": number})


# Each child is killed before another system call that makes something last.
CRASHING_COPIES = """
import asyncio, json, os, signal, sys
from locus_memory.backends.file.checkpoints import FileCheckpointer

def crash_before(step):
    steps = iter(range(step))
    for name in ("fsync", "replace", "rename", "rmdir"):
        def call(*arguments, real=getattr(os, name)):
            if next(steps, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments)
        setattr(os, name, call)

codes = []
for step in range(40):
    child = os.fork()
    if child == 0:
        checkpointer = FileCheckpointer(sys.argv[1], state_type=None)
        crash_before(step)
        asyncio.run(checkpointer.copy_thread("source", f"target{step}"))
        os._exit(0)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(json.dumps(codes))
"""


@pytest.mark.slow
async def test_a_copy_is_there_whole_or_not_at_all_after_sigkill(tmp_path):
    async with FileCheckpointer(tmp_path, state_type=None) as checkpointer:
        await fill(checkpointer, "source", 6)
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-W", "ignore", "-c", CRASHING_COPIES, str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        codes = json.loads(done.stdout)
        assert codes.count(-9) >= 8
        assert set(codes) == {0, -9}
        sizes = set()
        for step, code in enumerate(codes):
            names = await checkpointer.list_checkpoints(f"target{step}", 100)
            sizes.add(len(names))
            assert len(names) == 6 or code == -9
            if not names:
                # What is left over does not block another try.
                assert await checkpointer.copy_thread("source", f"target{step}") == 6
            for number in range(6):
                assert await checkpointer.load(f"target{step}", f"c{number}") == state(number)
        assert sizes == {0, 6}
        assert len(await checkpointer.list_threads()) == 41


async def test_a_copy_takes_the_place_of_what_a_removed_thread_left(tmp_path):
    async with FileCheckpointer(tmp_path, state_type=None) as checkpointer:
        await fill(checkpointer, "t", 2)
        await fill(checkpointer, "copy", 1)
        note = tmp_path / "t-copy" / "note.txt"
        note.write_text("not ours")
        with pytest.raises(CheckpointConflictError):
            await checkpointer.copy_thread("t", "copy")
        assert await checkpointer.delete("copy")
        assert await checkpointer.list_threads() == ["t"]
        assert await checkpointer.copy_thread("t", "copy") == 2
        assert await checkpointer.load("copy") == state(1)
        assert note.read_text() == "not ours"


async def test_a_copy_that_fails_leaves_nothing(tmp_path):
    async with FileCheckpointer(tmp_path, state_type=None) as checkpointer:
        await fill(checkpointer, "t", 3)
        before = set(tmp_path.rglob("*.ckpt"))
        damaged = sorted((tmp_path / "t-t").iterdir())[-2]
        damaged.write_bytes(b"damaged")
        with pytest.raises(Exception, match="damaged"):
            await checkpointer.copy_thread("t", "copy")
        assert set(tmp_path.rglob("*.ckpt")) == before


CHURN = """
import asyncio, sys
from locus_memory.backends.file.checkpoints import FileCheckpointer

async def main(place, mark):
    async with FileCheckpointer(place, state_type=None) as checkpointer:
        for number in range(60):
            for thread in (f"short{mark}", "Long" * 100 + mark):
                await checkpointer.save({"n": number}, thread, "c", {"step": number})
                await checkpointer.delete(thread)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.slow
async def test_listing_while_threads_come_and_go(tmp_path):
    churns = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", CHURN, str(tmp_path), str(n))
        for n in range(2)
    ]
    ends = [asyncio.ensure_future(churn.wait()) for churn in churns]
    async with FileCheckpointer(tmp_path, state_type=None) as checkpointer:
        await fill(checkpointer, "stays", 2)
        await fill(checkpointer, LONG, 2)
        while not all(end.done() for end in ends):
            assert {"stays", LONG} <= set(await checkpointer.list_threads(1000))
            found = await checkpointer.query_by_metadata({}, 1000)
            assert sum(info.thread_id in ("stays", LONG) for info in found) == 4
            assert await checkpointer.vacuum(30) == 0
        assert sorted(await checkpointer.list_threads()) == [LONG, "stays"]
    assert [end.result() for end in ends] == [0, 0]


@pytest.mark.parametrize("gone", ["t-t", "~"])
async def test_a_folder_that_vanishes_while_it_is_listed_is_not_there(tmp_path, monkeypatch, gone):
    async with FileCheckpointer(tmp_path, state_type=None) as checkpointer:
        await fill(checkpointer, "t", 2)
        await fill(checkpointer, LONG, 2)
        listing = os.listdir

        def listdir(path):
            found = listing(path)
            if path == tmp_path:
                for name in found:
                    if name.startswith(gone):
                        monkeypatch.undo()
                        shutil.rmtree(path / name)
            return found

        monkeypatch.setattr(os, "listdir", listdir)
        left = LONG if gone == "t-t" else "t"
        assert await checkpointer.list_threads() == [left]


@pytest.mark.parametrize("stays", [0, 1])
async def test_a_record_that_vanishes_while_it_is_listed_is_not_there(tmp_path, monkeypatch, stays):
    async with FileCheckpointer(tmp_path, state_type=None) as checkpointer:
        await fill(checkpointer, LONG, 2)
        await fill(checkpointer, "t", 1)
        # Where no lock can be had, a removal may come between listing and reading.
        shutil.rmtree(tmp_path / ".locks")
        (tmp_path / ".locks").write_text("no folder")
        listing = os.listdir

        def listdir(path):
            found = sorted(listing(path))
            if path.name.startswith("~"):
                for record in found[: len(found) - stays]:
                    (path / record).unlink()
            return found

        monkeypatch.setattr(os, "listdir", listdir)
        assert await checkpointer.list_threads() == ([LONG, "t"] if stays else ["t"])


async def test_folders_that_are_not_ours_are_no_threads(tmp_path):
    async with FileCheckpointer(tmp_path, state_type=None) as checkpointer:
        await fill(checkpointer, "t", 1)
        record = next((tmp_path / "t-t").iterdir())
        for name in ("t-%ff", "t-%74", "t-T", "t-%zz", "~", "~7f", "other", ".t"):
            (tmp_path / name).mkdir()
            shutil.copy(record, tmp_path / name)
        (tmp_path / "t-file").write_text("no folder")
        (tmp_path / "t-empty").mkdir()
        assert await checkpointer.list_threads() == ["t"]
        assert len(await checkpointer.query_by_metadata({})) == 1


async def test_a_thread_is_deleted_at_once(tmp_path, monkeypatch):
    def killed(folder):
        raise KeyboardInterrupt

    async with FileCheckpointer(tmp_path, state_type=None) as checkpointer:
        await fill(checkpointer, "t", 3)
        with monkeypatch.context() as patch:
            patch.setattr(threads, "discard", killed)
            with pytest.raises(KeyboardInterrupt):
                checkpointer.storage._threads.delete("t", None, ())
        assert await checkpointer.list_threads() == []
        assert await checkpointer.load("t") is None
        await fill(checkpointer, "t", 1)
        assert len(list((tmp_path / ".aside").iterdir())) == 1
        await checkpointer.vacuum(30)
        assert list((tmp_path / ".aside").iterdir()) == []
        assert await checkpointer.load("t") == state(0)


FULL = """
import asyncio, os, resource, signal, sys
from locus_memory.backends.file.checkpoints import FileCheckpointer
from locus_memory.errors import BackendWriteError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

async def main():
    checkpointer = FileCheckpointer(sys.argv[1], state_type=None)
    await checkpointer.save({"a": 1}, "t")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        await checkpointer.save({"a": os.urandom(1000).hex()}, "t")
    except BackendWriteError as error:
        said = str(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert said.endswith("; deleting may need room as well: make some on the disk first"), said
    assert await checkpointer.load("t") == {"a": 1}

asyncio.run(main())
"""


@pytest.mark.slow
def test_a_full_disk_says_what_helps(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], check=False, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
