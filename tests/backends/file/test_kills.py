"""What SIGKILL leaves of a removal: all or nothing, and no word of what was removed."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time

import pytest

from locus_memory.backends.file.checkpoints import FileCheckpointer

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")

SECRET = "hunter2"
COUNT = 8

# Each child is killed before another system call that changes what is in a folder.
KILLED = """
import asyncio, json, os, signal, sys
from locus_memory.backends.file.checkpoints import FileCheckpointer

NAMES = ("fsync", "replace", "rename", "unlink", "rmdir", "mkdir")

def crash_before(step):
    steps = iter(range(step))
    for name in NAMES:
        def call(*arguments, real=getattr(os, name), **options):
            if next(steps, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)
        setattr(os, name, call)

async def remove(base, thread, verb):
    checkpointer = FileCheckpointer(base, state_type=None)
    if verb == "delete":
        await checkpointer.delete(thread)
    elif verb == "prune":
        await checkpointer.prune(thread, keep_last=2)
    else:
        await checkpointer.delete(thread, "c3")

codes = []
for step in range(60):
    child = os.fork()
    if child == 0:
        crash_before(step)
        asyncio.run(remove(sys.argv[1], f"t{step}", sys.argv[2]))
        os._exit(0)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(json.dumps(codes))
"""


def state(thread: str, n: int) -> dict[str, object]:
    # Not compressed, so that the words can be looked for.
    return {"messages": [f"{thread} {SECRET} {i}" for i in range(n + 1)]}


async def fill(checkpointer, thread):
    for n in range(COUNT):
        await checkpointer.save(state(thread, n), thread, f"c{n}")


async def killed(base, verb):
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-W", "ignore", "-c", KILLED, str(base), verb],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    codes = json.loads(done.stdout)
    assert set(codes) == {0, -9}
    return codes


EVERYTHING = [f"c{n}" for n in range(COUNT)][::-1]
LEFT = {"prune": EVERYTHING[:2], "delete": [], "delete one": [n for n in EVERYTHING if n != "c3"]}


@pytest.mark.parametrize(("verb", "left"), LEFT.items())
async def test_a_removal_is_all_or_nothing(tmp_path, verb, left):
    async with FileCheckpointer(tmp_path, state_type=None, compression_level=0) as checkpointer:
        for step in range(60):
            await fill(checkpointer, f"t{step}")
        codes = await killed(tmp_path, verb)
        found = []
        async with FileCheckpointer(tmp_path, state_type=None) as other:
            for step, code in enumerate(codes):
                names = await other.list_checkpoints(f"t{step}", 100)
                assert names in ((left, EVERYTHING) if code else (left,))
                found.append(names)
                for name in names:
                    assert await other.load(f"t{step}", name) == state(f"t{step}", int(name[1:]))
        assert left in found[: codes.index(0)]
        assert EVERYTHING in found


@pytest.mark.parametrize("verb", ["prune", "delete"])
async def test_what_a_dead_writer_left_goes_with_the_next_deletion(tmp_path, verb):
    async with FileCheckpointer(tmp_path, state_type=None, compression_level=0) as checkpointer:
        for step in range(60):
            await fill(checkpointer, f"t{step}")
        await killed(tmp_path, verb)
    async with FileCheckpointer(tmp_path, state_type=None) as checkpointer:
        for thread in await checkpointer.list_threads(1000):
            assert await checkpointer.delete(thread)
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert [path.name for path in files if path.suffix != ".lock"] == []


async def test_a_forgotten_thread_leaves_no_word_though_its_deletion_was_killed(tmp_path):
    async with FileCheckpointer(tmp_path, state_type=None, compression_level=0) as checkpointer:
        for step in range(60):
            await fill(checkpointer, f"t{step}")
        await checkpointer.save({}, "other")
        await killed(tmp_path, "delete")
        gone = {f"t{n}" for n in range(60)}.difference(await checkpointer.list_threads(1000))
        assert gone
        # Any deletion will do: it need not be of the same thread.
        assert await checkpointer.delete("other")
        for path in tmp_path.rglob("*.ckpt"):
            content = path.read_bytes()
            assert not any(f'"{thread} {SECRET}'.encode() in content for thread in gone)


STORM = """
import asyncio, sys
from locus_memory.backends.file.checkpoints import FileCheckpointer

async def main(base, worker):
    async with FileCheckpointer(base, state_type=None) as checkpointer:
        state = {"messages": []}
        for n in range(100_000):
            state["messages"].append(f"{worker} {n}" * 20)
            await checkpointer.save(state, worker, f"c{n}")
            if n % 5 == 4:
                await checkpointer.prune(worker, keep_last=3)

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


def storm(base, seconds):
    """Kill one process after the other while it saves and prunes; return how many."""
    end, kills = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        folder = base / f"t-w{kills}"
        process = subprocess.Popen([sys.executable, "-c", STORM, str(base), f"w{kills}"])
        while not any(folder.glob("*.ckpt")):
            time.sleep(0.01)
        time.sleep(0.05 * kills % 0.3)
        process.kill()
        process.wait()
        kills += 1
    return kills


async def test_a_storm_of_kills_while_threads_are_pruned(tmp_path):
    kills = await asyncio.to_thread(storm, tmp_path, 8)
    assert kills > 3
    async with FileCheckpointer(tmp_path, state_type=None) as checkpointer:
        for n in range(kills):
            names = await checkpointer.list_checkpoints(f"w{n}", 100)
            newest = int(names[0][1:])
            # A prune keeps three, and then up to five are saved.
            assert [int(name[1:]) for name in names] == list(range(newest, newest - len(names), -1))
            assert len(names) <= 8
            for name in names:
                loaded = await checkpointer.load(f"w{n}", name)
                assert len(loaded["messages"]) == int(name[1:]) + 1
