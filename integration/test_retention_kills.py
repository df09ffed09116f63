"""A retention that is killed anywhere leaves a consistent database, and what the rules keep."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import time

import pytest

from locus_memory.integrity import verify
from locus_memory.registry import open_backend

KILLS = 12
THREADS, TURNS, ITEMS, KEPT = 30, 40, 1500, 7
FILE = f"""
[[tool.locus_memory.retention]]
namespace = ["log"]
keep_last = {KEPT}
[[tool.locus_memory.retention]]
keep_last = {KEPT}
"""
RETAIN = [sys.executable, "-m", "locus_memory.cli", "retain", "--yes", "--url"]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")


def state(thread, turn):
    return {"messages": [f"{thread}: {number}" for number in range(turn)]}


async def fill(url):
    async with open_backend(url, state_type=None) as backend:
        for thread in range(THREADS):
            for turn in range(TURNS):
                await backend.checkpointer.save(state(thread, turn), f"t{thread}", f"c{turn}")
        for start in range(0, ITEMS, 100):
            rows = [(("log", "a"), f"{n:05}", {"n": n}) for n in range(start, start + 100)]
            await backend.store.put_batch(rows)


async def check(url):
    """Check that all is intact and all that the rules keep is there; return what is left."""
    async with open_backend(url, state_type=None) as backend:
        async for finding in verify(backend):
            assert finding.reason is None
        for thread in range(THREADS):
            for turn in range(TURNS - KEPT, TURNS):
                found = await backend.checkpointer.load(f"t{thread}", f"c{turn}")
                assert found == state(thread, turn)
        keys = await backend.store.list_keys(("log", "a"), ITEMS)
        assert keys[-KEPT:] == [f"{n:05}" for n in range(ITEMS - KEPT, ITEMS)]
        ids = [
            len(await backend.checkpointer.list_checkpoints(f"t{n}", TURNS)) for n in range(THREADS)
        ]
        return len(keys) + sum(ids)


def test_killed_anywhere(tmp_path):
    url = f"sqlite:{tmp_path / 'agent.db'}"
    (tmp_path / "pyproject.toml").write_text(FILE)
    asyncio.run(fill(url))
    started = time.monotonic()
    dry_run = [*RETAIN, url, "--dry-run"]
    subprocess.run(dry_run, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    startup = time.monotonic() - started
    left = []
    for _ in range(KILLS):
        process = subprocess.Popen([*RETAIN, url], cwd=tmp_path, stdout=subprocess.DEVNULL)
        time.sleep(startup * random.uniform(0.5, 1.2))
        process.send_signal(signal.SIGKILL)
        process.wait()
        left.append(asyncio.run(check(url)))
    assert left == sorted(left, reverse=True)
    subprocess.run([*RETAIN, url], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    assert asyncio.run(check(url)) == KEPT * (THREADS + 1)
