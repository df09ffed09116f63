"""A retention that dies in its middle leaves a consistent database, and what the rules keep."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest

from integration.killing import killed_at
from locus_memory.integrity import verify
from locus_memory.registry import open_backend

THREADS, TURNS, ITEMS, KEPT = 30, 40, 1500, 7
FILE = f"""
[[tool.locus_memory.retention]]
namespace = ["log"]
keep_last = {KEPT}
[[tool.locus_memory.retention]]
keep_last = {KEPT}
"""
RETAIN = ["retain", "--yes", "--url"]
BATCH = 100

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
        return len(keys), sum(ids)


def after_threads(done):
    """Return how many checkpoints there are when some threads are pruned."""
    return done * KEPT + (THREADS - done) * TURNS


KILLS = [
    # A place and a call, and the items and the checkpoints that are left.
    ("locus_memory.retention.items:_delete", 1, (ITEMS, THREADS * TURNS)),
    ("locus_memory.retention.items:_delete", 4, (ITEMS - 3 * BATCH, THREADS * TURNS)),
    # In a transaction of the writing thread.
    ("locus_memory.backends.sqlite.items:write", 2, (ITEMS - 4 * BATCH, THREADS * TURNS)),
    ("locus_memory.retention.threads:_Work._retain", 1, (KEPT, THREADS * TURNS)),
    ("locus_memory.retention.threads:_Work._retain", 11, (KEPT, after_threads(10))),
    ("locus_memory.checkpoint.chain:DeltaCheckpointer.prune", 30, (KEPT, after_threads(29))),
]


def test_killed_anywhere(tmp_path):
    url = f"sqlite:{tmp_path / 'agent.db'}"
    (tmp_path / "pyproject.toml").write_text(FILE)
    asyncio.run(fill(url))
    for place, call, expected in KILLS:
        killed_at(place, call, *RETAIN, url, cwd=tmp_path)
        assert asyncio.run(check(url)) == expected
    command = [sys.executable, "-m", "locus_memory.cli", *RETAIN, url, "--json"]
    done = subprocess.run(command, cwd=tmp_path, check=True, stdout=subprocess.PIPE)
    assert json.loads(done.stdout)["checkpoints"] == TURNS - KEPT
    assert asyncio.run(check(url)) == (KEPT, KEPT * THREADS)
