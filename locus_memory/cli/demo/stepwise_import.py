"""An import that waits after each turn: `locus-memory demo` kills it.

After each turn it prints the number of saved turns and waits until it reads a line. So the
parent process knows its progress, and can kill it while it works on a turn.
"""

from __future__ import annotations

import asyncio
import sys

from locus_memory.cli.conversations.importer import import_conversation
from locus_memory.cli.demo.sample import load_sample
from locus_memory.cli.printing.outcome import report
from locus_memory.errors import LocusMemoryError
from locus_memory.inspection.errors import CommandError
from locus_memory.registry import open_backend

__all__: list[str] = []

_BATCH = 8


def _wait(turns: int) -> None:
    sys.stdout.write(f"{turns}\n")
    sys.stdout.flush()
    if not sys.stdin.readline():
        sys.exit("the demo process has gone")


async def _import(url: str) -> None:
    async with open_backend(url, state_type=None) as backend:
        await import_conversation(backend, load_sample(), on_turn=_wait, batch=_BATCH)


if __name__ == "__main__":
    try:
        asyncio.run(_import(sys.argv[1]))
    except (CommandError, LocusMemoryError) as problem:
        sys.exit(report(problem))
