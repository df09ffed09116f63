"""How the chain limits were chosen: bytes stored against the cost of a load."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import orjson
from conversations import Talk

from locus_memory.backends.sqlite.checkpoints import SQLiteCheckpointer
from locus_memory.checkpoint.encoding import encode
from locus_memory.checkpoint.encoding.levels import place

CHOICES = [(10**9, 10), (10**9, 50), (10**9, 10**9), (8, 64), (16, 64), (32, 64), (64, 128)]


async def measure(folder: Path, radix: int, depth: int, turns: int) -> str:
    """Return a line of the table for one choice."""

    def chosen(levels: Sequence[int]) -> tuple[int, int]:
        return place(levels, radix)

    encode.place = chosen
    path = folder / f"{radix}-{depth}-{turns}.db"
    full = 0
    async with SQLiteCheckpointer(path, max_chain_depth=depth, state_type=None) as checkpointer:
        for state in Talk().states(turns):
            full += len(orjson.dumps(state))
            await checkpointer.save(state, "t")
        stats = await checkpointer.get_storage_stats("t")
        loads: list[float] = []
        for _ in range(15):
            start = time.perf_counter()
            await checkpointer.load("t")
            loads.append(time.perf_counter() - start)
        chain = await checkpointer.storage.retrieve_chain("t")
    named = "none" if radix == 10**9 else str(radix)
    limit = "none" if depth == 10**9 else str(depth)
    ratio = stats["compressed_size"] / full
    return (
        f"| {turns} | {named} | {limit} | {stats['full_checkpoints']} | {len(chain)} "
        f"| {ratio:.5f} | {median(loads) * 1e3:.2f} |"
    )


async def main() -> None:
    print("| turns | radix | depth | full | replayed | stored / full JSON | load, ms |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for turns in (200, 2000):
            for radix, depth in CHOICES:
                print(await measure(Path(folder), radix, depth, turns), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
