"""Deletions that die in their middle lose nothing else, and the next run completes them.

Compacting, the audit of a deletion, and forgetting; each is killed at calls that are named.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import sys

import pytest

from integration.killing import killed_at
from locus_memory.integrity import verify
from locus_memory.registry import open_backend

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")

SQLITE = "locus_memory.backends.sqlite"
NOTES, WORD = 600, "zanzibarine"
USERS, PARTS = ("ada", "bob"), ("memories", "notes", "more")
ITEMS, THREADS, TURNS = 500, 30, 3
BATCH = 500


def run(*arguments, check=True):
    """Run a command; return its JSON."""
    command = [sys.executable, "-m", "locus_memory.cli", *arguments, "--json"]
    return json.loads(subprocess.run(command, check=check, capture_output=True).stdout)


async def damaged(url):
    async with open_backend(url, state_type=None) as backend:
        return [each async for each in verify(backend) if each.reason is not None]


@pytest.fixture
def shortened(tmp_path):
    """A database in which a word and much else is deleted, but not erased."""
    path = tmp_path / "agent.db"

    async def fill():
        async with open_backend(f"sqlite:{path}", state_type=None) as backend:
            rows = [
                ((f"n{n % 7}",), f"k{n}", {"n": n, "text": "note " * 400}) for n in range(NOTES)
            ]
            await backend.store.put_batch(rows)
            for turn in range(TURNS):
                for thread in ("t0", "t1"):
                    await backend.checkpointer.save({"turn": turn}, thread, f"c{turn}")
            await backend.store.put(("secrets",), "s", {"text": WORD})
            await backend.store.delete(("secrets",), "s")
            await backend.store.clear_namespace(("n1",))
            await backend.checkpointer.delete("t1")

    asyncio.run(fill())
    return path


async def left(path):
    async with open_backend(f"sqlite:{path}", state_type=None) as backend:
        keys = [await backend.store.list_keys((f"n{n}",), NOTES) for n in range(7)]
        threads = [await backend.checkpointer.list_checkpoints(f"t{n}", TURNS) for n in range(2)]
        return keys, threads


COMPACTING = [
    (f"{SQLITE}.store:SQLiteStore.compact", 1),
    # The text index has been compacted.
    (f"{SQLITE}.connection.connection:SQLiteDatabase.empty_log", 1),
    # In the writing thread, before the file is written anew.
    (f"{SQLITE}.connection.connection:rewrite", 1),
    (f"{SQLITE}.connection.connection:SQLiteDatabase.empty_log", 2),
]


@pytest.mark.parametrize(("place", "call"), COMPACTING)
def test_compacting_loses_nothing(shortened, place, call):
    url = f"sqlite:{shortened}"
    kept = asyncio.run(left(shortened))
    assert [len(keys) for keys in kept[0]].count(0) == 1
    killed_at(place, call, "--url", url, "compact")
    assert asyncio.run(damaged(url)) == []
    assert asyncio.run(left(shortened)) == kept
    sizes = run("--url", url, "compact")["disk_bytes"]
    assert sizes["after"] <= sizes["before"]
    assert asyncio.run(left(shortened)) == kept
    assert run("--url", url, "audit-deletion", WORD)["proven"]


AUDITING = [
    # Items first, and then checkpoints.
    ("locus_memory.deletion:_searched", 2),
    # In the middle of the file.
    (f"{SQLITE}.upkeep.remains:_OtherProcess.read", 2),
    (f"{SQLITE}.upkeep.remains:_free_pages", 1),
]


@pytest.mark.parametrize(("place", "call"), AUDITING)
def test_an_audit_changes_nothing(shortened, place, call):
    url = f"sqlite:{shortened}"
    run("--url", url, "compact")
    digest, names = hashlib.sha256(shortened.read_bytes()).hexdigest(), {"agent.db"}
    assert {each.name for each in shortened.parent.iterdir()} == names
    killed_at(place, call, "--url", url, "audit-deletion", WORD)
    assert hashlib.sha256(shortened.read_bytes()).hexdigest() == digest
    # SQLite's own files, of a process that could not delete them; they hold nothing.
    log = shortened.with_name("agent.db-wal")
    assert not log.exists() or log.stat().st_size == 0
    assert {each.name for each in shortened.parent.iterdir()} <= {
        *names,
        "agent.db-wal",
        "agent.db-shm",
    }
    assert run("--url", url, "audit-deletion", WORD)["proven"]
    assert {each.name for each in shortened.parent.iterdir()} == names


DELETE_ITEMS = "locus_memory.backends.checked_store:CheckedStore.delete_batch"
DELETE_THREAD = "locus_memory.checkpoint.chain:DeltaCheckpointer.delete"
FORGETTING = [
    # A place and a call, and the threads and the items that are left of the user.
    (DELETE_ITEMS, 1, (THREADS, ITEMS * 3)),
    (DELETE_ITEMS, 3, (THREADS, ITEMS * 3 - 2 * BATCH)),
    (DELETE_THREAD, 12, (THREADS - 11, 0)),
    (DELETE_THREAD, 19, (1, 0)),
    # In a transaction of the writing thread.
    (f"{SQLITE}.items:clear", 1, (0, 0)),
    (f"{SQLITE}.store:SQLiteStore.compact", 1, (0, 0)),
]


def test_forgetting_a_user_is_completed_by_the_next_run(tmp_path):
    url = f"sqlite:{tmp_path / 'agent.db'}"
    asyncio.run(store_users(url))
    command = ["--url", url, "forget", "--user", "ada", "--yes"]
    for place, call, expected in FORGETTING:
        killed_at(place, call, *command)
        assert asyncio.run(damaged(url)) == []
        assert asyncio.run(of_users(url)) == {"ada": expected, "bob": (THREADS, ITEMS * 3)}
    # There is nothing left to forget, but what is deleted is not erased yet.
    assert run(*command, check=False)["error"]["message"] == "no data of user 'ada'"
    run("--url", url, "compact")
    assert run("--url", url, "audit-deletion", "adamarker")["proven"]
    assert asyncio.run(of_users(url)) == {"ada": (0, 0), "bob": (THREADS, ITEMS * 3)}


async def store_users(url):
    async with open_backend(url, state_type=None) as backend:
        for user in USERS:
            for part in PARTS:
                rows = [(("users", user, part), f"{n}", f"{user}marker {n}") for n in range(ITEMS)]
                await backend.store.put_batch(rows)
            for n in range(THREADS):
                for turn in range(TURNS):
                    state, metadata = {"said": f"{user}marker", "turn": turn}, {"user_id": user}
                    await backend.checkpointer.save(state, f"{user}-{n}", f"c{turn}", metadata)


async def of_users(url):
    """Return how many threads and items there are of each user; threads are whole."""
    async with open_backend(url, state_type=None) as backend:
        threads = await backend.checkpointer.list_threads()
        for thread in threads:
            assert len(await backend.checkpointer.list_checkpoints(thread)) == TURNS
        found = {}
        for user in USERS:
            keys = [
                await backend.store.list_keys(("users", user, part), ITEMS * 2) for part in PARTS
            ]
            own = [each for each in threads if each.startswith(user)]
            found[user] = len(own), sum(map(len, keys))
    return found
