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

from integration.killing import killed_at
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
    return completed(kind, where, url)


def completed(kind, where, url):
    """Run an import to its end; return what it says."""
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
async def test_sessions_of_adk(tmp_path):
    pytest.importorskip("google.adk")
    from google.adk.events import Event  # noqa: PLC0415 - an extra
    from google.adk.sessions.sqlite_session_service import SqliteSessionService  # noqa: PLC0415

    from locus_memory.integrations.adk import LocusSessionService  # noqa: PLC0415 - an extra

    where, target = tmp_path / "old.db", tmp_path / "new.db"
    theirs = SqliteSessionService(str(where))
    places = [
        {"app_name": "app", "user_id": "ada", "session_id": each} for each in ("home", "work")
    ]
    for place in places:
        session = await theirs.create_session(**place, state={"own": place["session_id"]})
        for n in range(430):
            event = Event(author="user", invocation_id=f"i{n}", timestamp=1_740_000_000.0 + n)
            await theirs.append_event(session, event)

    async def events():
        """Return how many events each session has; they are the first ones."""
        async with open_backend(f"sqlite:{target}") as backend:
            service, found = LocusSessionService(backend), []
            for place in places:
                mine = await service.get_session(**place)
                original = await theirs.get_session(**place)
                there = [] if mine is None else mine.events
                assert there == original.events[: len(there)]
                found.append(len(there))
        return found

    url = f"sqlite:{target}"
    arguments = command("adk", where, url)[len(COMMAND) :]
    # A page is 200 events; the second call in one run writes the second page.
    for place, call, expected in (
        ("locus_memory.integrations.adk.importing.target:Target._add", 1, [0, 0]),
        ("locus_memory.backends.checked_store:CheckedStore.restore", 2, [200, 0]),
        ("locus_memory.backends.sqlite.items:write", 2, [200, 0]),
        ("locus_memory.backends.checked_store:CheckedStore.restore", 4, [430, 200]),
    ):
        await asyncio.to_thread(killed_at, place, call, *arguments)
        assert await events() == expected, (place, call)
    document = await asyncio.to_thread(completed, "adk", where, url)
    assert (document["events"], document["conflicts"]) == (860, 0)
    assert await events() == [430, 430]


async def test_items_of_a_store_of_langgraph(tmp_path):
    pytest.importorskip("langgraph.store.sqlite")
    from langgraph.store.sqlite import SqliteStore  # noqa: PLC0415 - an extra

    from locus_memory.integrations.langgraph import LocusStore  # noqa: PLC0415 - an extra

    where, target = tmp_path / "old.db", tmp_path / "new.db"
    with SqliteStore.from_conn_string(str(where)) as theirs:
        theirs.setup()
        for n in range(1_000):
            theirs.put(("notes", f"u{n % 3}"), f"k{n:04}", {"n": n, "text": f"note {n}"})

    async def items():
        """Return the values by their keys."""
        async with open_backend(f"sqlite:{target}") as backend:
            found = await LocusStore(backend).asearch(("notes",), limit=2_000)
        return {item.key: item.value for item in found}

    url = f"sqlite:{target}"
    arguments = command("langgraph-store", where, url)[len(COMMAND) :]
    expected = {f"k{n:04}": {"n": n, "text": f"note {n}"} for n in range(1_000)}
    # A page is 200 items.
    for place, call, count_then in (
        ("locus_memory.integrations.langgraph.store:LocusStore.arestore", 1, 0),
        ("locus_memory.integrations.langgraph.store:LocusStore.arestore", 3, 400),
        # In a transaction of the writing thread.
        ("locus_memory.backends.sqlite.items:write", 1, 400),
        ("locus_memory.integrations.langgraph.store:LocusStore.arestore", 5, 800),
    ):
        await asyncio.to_thread(killed_at, place, call, *arguments)
        found = await items()
        assert len(found) == count_then, (place, call)
        assert found.items() <= expected.items()
    document = await asyncio.to_thread(completed, "langgraph-store", where, url)
    assert (document["items"], document["saved"]) == (1_000, 200)
    assert await items() == expected
