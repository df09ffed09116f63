"""What only the checkpoints of a SQLite file can do wrong."""

from __future__ import annotations

import random

from locus_memory.backends.sqlite.checkpoints import SQLiteCheckpointer


def noise(seed: int) -> dict[str, str]:
    return {"text": random.Random(seed).randbytes(100_000).hex()}


async def test_vacuum_gives_the_space_back(tmp_path):
    path = tmp_path / "memory.db"
    async with SQLiteCheckpointer(path, state_type=None) as checkpointer:
        for number in range(50):
            await checkpointer.save(noise(number), "t")
        assert await checkpointer.prune("t", keep_last=1) == 49
        await checkpointer.vacuum(0)
        assert await checkpointer.load("t") == noise(49)
    assert path.stat().st_size < 500_000


async def test_vacuum_with_nothing_to_give_back(tmp_path):
    async with SQLiteCheckpointer(tmp_path / "memory.db", state_type=None) as checkpointer:
        await checkpointer.save({"n": 1}, "t")
        assert await checkpointer.vacuum(0) == 0
        assert await checkpointer.load("t") == {"n": 1}
