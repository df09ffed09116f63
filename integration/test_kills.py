"""Storms of kills: processes that save, prune and delete, and die at any moment."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

import pytest

from locus_memory.backends.file.checkpoints import FileCheckpointer
from tests.backends.file.test_kills import LEFT, kill_removals, remove_after_kills
from tests.checkpoint.test_faults import KINDS, kill_writers

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")


@pytest.mark.parametrize("kind", KINDS)
async def test_every_acknowledged_save_survives_sigkill(kind, tmp_path):
    await kill_writers(kind, tmp_path / "place", range(20))


@pytest.mark.parametrize("verb", ["prune", "delete one"])
async def test_a_removal_is_all_or_nothing(tmp_path, verb):
    await kill_removals(tmp_path, verb, LEFT[verb])


async def test_what_a_dead_writer_left_goes_with_the_next_deletion(tmp_path):
    await remove_after_kills(tmp_path, "prune")


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
