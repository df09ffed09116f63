"""What SIGKILL leaves of a removal: all or nothing, and no word of what was removed.

`integration/` has the same for the other removals, and a storm of kills.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

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


async def kill_removals(base, verb, left):
    """Kill a removal before each of its steps; assert that it is done or was never begun."""
    async with FileCheckpointer(base, state_type=None, compression_level=0) as checkpointer:
        for step in range(60):
            await fill(checkpointer, f"t{step}")
        codes = await killed(base, verb)
        found = []
        async with FileCheckpointer(base, state_type=None) as other:
            for step, code in enumerate(codes):
                names = await other.list_checkpoints(f"t{step}", 100)
                assert names in ((left, EVERYTHING) if code else (left,))
                found.append(names)
                for name in names:
                    assert await other.load(f"t{step}", name) == state(f"t{step}", int(name[1:]))
        assert left in found[: codes.index(0)]
        assert EVERYTHING in found


async def remove_after_kills(base, verb):
    """Kill removals, then delete all threads; assert that no file of them is left."""
    async with FileCheckpointer(base, state_type=None, compression_level=0) as checkpointer:
        for step in range(60):
            await fill(checkpointer, f"t{step}")
        await killed(base, verb)
    async with FileCheckpointer(base, state_type=None) as checkpointer:
        for thread in await checkpointer.list_threads(1000):
            assert await checkpointer.delete(thread)
        files = [path for path in base.rglob("*") if path.is_file()]
        assert [path.name for path in files if path.suffix != ".lock"] == []


@pytest.mark.slow
async def test_a_removal_is_all_or_nothing(tmp_path):
    await kill_removals(tmp_path, "delete", LEFT["delete"])


@pytest.mark.slow
async def test_what_a_dead_writer_left_goes_with_the_next_deletion(tmp_path):
    await remove_after_kills(tmp_path, "delete")


@pytest.mark.slow
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
