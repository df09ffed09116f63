"""Measure ours beside LangGraph's and the Locus SDK's, or the parts named; exits 1 below a bar."""

from __future__ import annotations

import argparse
import asyncio
import logging
import platform
import sqlite3
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from peers_checkpointers import checkpointers
from peers_crowd import crowd
from peers_places import Places
from peers_savers import savers
from peers_shapes import shapes
from peers_stores import stores
from rows import table

PARTS = (savers, shapes, crowd, checkpointers, stores)
PACKAGES = (
    "langgraph",
    "langgraph-checkpoint",
    "langgraph-checkpoint-sqlite",
    "langgraph-checkpoint-postgres",
    "langchain-core",
    "locus-sdk",
    "psycopg",
    "aiosqlite",
    "sqlite-vec",
    "asyncpg",
    "pgvector",
    "redis",
    "locus-memory",
)


def asked():
    """Return the names of the parts to run."""
    known = [part.__name__ for part in PARTS]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(known))
    chosen = parser.parse_args().parts or known
    if unknown := set(chosen) - set(known):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are: {', '.join(known)}")
    return chosen


async def main(names) -> int:
    bars = []
    with tempfile.TemporaryDirectory() as folder:
        async with Places.running(Path(folder)) as places:
            for measure in PARTS:
                if measure.__name__ not in names:
                    continue
                print(f"measuring: {measure.__name__}", file=sys.stderr, flush=True)
                start = time.perf_counter()
                for part in await measure(places):
                    print(part.text(), end="\n\n", flush=True)
                    bars += part.bars
                taken = time.perf_counter() - start
                print(f"{measure.__name__}: {taken:.0f} s", file=sys.stderr, flush=True)
            servers = await places.versions()
    print(table(bars), end="\n\n")
    print(f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {servers};")
    print(", ".join(f"{name} {version(name)}" for name in PACKAGES))
    return 0 if all(row.reached for row in bars) else 1


if __name__ == "__main__":
    logging.getLogger("langgraph").setLevel(logging.ERROR)
    raise SystemExit(asyncio.run(main(asked())))
