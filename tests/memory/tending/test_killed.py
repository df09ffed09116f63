"""A process that is killed in the middle of a pass."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.memory.scope import Scope

SCOPE = Scope(("locus_memory",))
NOW = 1_700_000_000.0 + 60 * 86_400
ENDS = {"expires_at": "2023-12-01"}

KILLED = """
import asyncio, os, signal, sys
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.memory.manager import LLMMemoryManager

class Mortal(SQLiteStore):
    left = int(sys.argv[2])

    async def write_batch(self, operations):
        Mortal.left -= 1
        if Mortal.left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return await super().write_batch(operations)

async def main():
    now = float(sys.argv[3])
    async with Mortal(sys.argv[1], clock=lambda: now) as store:
        await LLMMemoryManager(store, clock=lambda: now).consolidate()

asyncio.run(main())
"""


async def tell(path: Path) -> None:
    """Leave facts that have expired."""
    start = 1_700_000_000.0
    async with SQLiteStore(path, clock=lambda: start) as store:
        manager = LLMMemoryManager(store, clock=lambda: start)
        await manager.save(
            [Memory(MemoryType.USER, f"k{n}", f"Fact{n} is thing{n}.", ENDS) for n in range(6)]
        )


async def look(path: Path) -> tuple[Any, list[str]]:
    """Finish the pass; return what it still did, and the facts that are left."""
    async with SQLiteStore(path, clock=lambda: NOW) as store:
        manager = LLMMemoryManager(store, clock=lambda: NOW)
        report = await manager.consolidate()
        left = await store.list_keys(SCOPE.current)
        for number in range(6):
            assert await manager.undo(f"k{number}") is not None
        return report, left


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("writes", [0, 1, 4])
def test_a_killed_process_holds_nobody_up(tmp_path: Path, writes: int) -> None:
    """Its lease is known to be over at once, and the next pass finishes what it began."""
    path = tmp_path / "m.db"
    asyncio.run(tell(path))
    command = [sys.executable, "-c", KILLED, str(path), str(writes), str(NOW)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    report, left = asyncio.run(look(path))
    # The first write takes the right to the pass.
    assert (report.busy, report.evicted, left) == (0, 6 - max(0, writes - 1), [])
