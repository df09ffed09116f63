"""Imports from other frameworks that die at any moment: the same command completes them."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from locus_memory import open_backend
from locus_memory.memory.manager import LLMMemoryManager

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")

KILLS = 6
COMMAND = [sys.executable, "-W", "ignore", "-m", "locus_memory"]


def command(kind, where, target):
    return [*COMMAND, "--url", target, "import", "--format", kind, "--from", str(where), "--json"]


def through_kills(kind, where, target):
    """Kill an import each time it has written more; return what the last run says."""
    url, counts = f"sqlite:{target}", []
    for _ in range(KILLS):
        process = subprocess.Popen(command(kind, where, url), stdout=subprocess.DEVNULL)
        enough = max([0, *counts]) + 150
        while process.poll() is None and count(target) < enough:
            time.sleep(0.01)
        process.kill()
        process.wait()
        counts.append(count(target))
    assert counts == sorted(counts)
    assert len(set(counts) - {0}) > 2, counts
    last = subprocess.run(command(kind, where, url), capture_output=True, check=True)
    return json.loads(last.stdout)


def count(path):
    """Return how many items a SQLite target has, past versions included."""
    if not path.exists():
        return 0
    with closing(sqlite3.connect(path)) as connection:
        try:
            return connection.execute("SELECT count(*) FROM items").fetchone()[0]
        except sqlite3.OperationalError:
            return 0


async def test_sessions_of_openai_agents(tmp_path):
    agents = pytest.importorskip("agents")
    from locus_memory.integrations.openai_agents import LocusSession  # noqa: PLC0415 - an extra

    where, target = tmp_path / "old.db", tmp_path / "new.db"
    names = [f"s{n}" for n in range(10)]
    for name in names:
        session = agents.SQLiteSession(name, where)
        await session.add_items(
            [{"role": "user", "content": f"{name} {n} " * 40} for n in range(500)]
        )
        session.close()
    document = await asyncio.to_thread(through_kills, "openai-agents", where, target)
    assert (document["items"], document["conflicts"]) == (5000, 0)
    async with open_backend(f"sqlite:{target}") as backend:
        for name in names:
            theirs = agents.SQLiteSession(name, where)
            assert await LocusSession(name, backend).get_items() == await theirs.get_items()
            theirs.close()


async def test_memories_of_mem0(tmp_path):
    where, target = tmp_path / "history.db", tmp_path / "new.db"
    start = datetime(2025, 1, 1, tzinfo=UTC)
    rows, expected = [], {}
    for n in range(900):
        name = str(UUID(int=n + 2**100))
        for version in range(3):
            at = (start + timedelta(minutes=n + 10_000 * version)).isoformat()
            old = f"Note {n} number {version - 1}." if version else None
            new = f"Note {n} number {version}."
            event = "UPDATE" if version else "ADD"
            if version == 2 and n % 5 == 0:
                event, new = "DELETE", None
            moments = (start.isoformat(), at) if version else (at, None)
            row = (f"{n}-{version}", name, old, new, event, *moments, int(new is None), None, None)
            rows.append(row)
        expected[f"fact:{UUID(name).hex}"] = new
    with closing(sqlite3.connect(where)) as connection:
        # `mem0/memory/storage.py` of mem0ai 2.2.1.
        connection.execute(
            "CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, "
            "new_memory TEXT, event TEXT, created_at DATETIME, updated_at DATETIME, "
            "is_deleted INTEGER, actor_id TEXT, role TEXT)"
        )
        connection.executemany("INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        connection.commit()
    document = await asyncio.to_thread(through_kills, "mem0", where, target)
    assert (document["memories"], document["changes"]) == (900, 2700)
    async with open_backend(f"sqlite:{target}") as backend:
        manager = LLMMemoryManager(backend.store, history_limit=100)
        found = {fact["key"]: fact["content"] async for fact in manager.export_facts()}
        assert found == {key: content for key, content in expected.items() if content}
        for key in list(expected)[::50]:
            versions = [each.content for each in await manager.history(key)]
            assert len(versions) == len(set(versions)) == (3 if expected[key] else 2)
