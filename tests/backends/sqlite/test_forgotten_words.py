"""What is deleted is in no byte of the file or of its log once the store is compacted."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import subprocess
import sys

import pytest

from locus_memory.backends.sqlite.backend import SQLiteBackend
from locus_memory.events import subscribe

NS = ("users", "ada")
WORD = b"xylophone"
COUNT = 300


def hits(path):
    """Return how often the word is in each of the files."""
    return {each.name: each.read_bytes().count(WORD) for each in path.parent.glob("agent.db*")}


@pytest.fixture
async def backend(tmp_path):
    async with SQLiteBackend(
        tmp_path / "agent.db", checkpointer_options={"compression_level": 0}
    ) as b:
        for n in range(COUNT):
            await b.store.put(NS, f"{n}", f"Ada plays the xylophone {n} " + "and so on " * 40)
            await b.store.put(("users", "bob"), f"{n}", f"Bob hums {n}")
        await b.checkpointer.save({"messages": ["a xylophone"] * 20}, "t")
        yield b


async def forget(backend):
    assert await backend.store.clear_namespace(NS) == COUNT
    assert await backend.checkpointer.delete("t")


async def test_no_word_is_left_of_what_is_deleted_and_compacted(backend, tmp_path):
    path = tmp_path / "agent.db"
    assert sum(hits(path).values()) > COUNT
    await forget(backend)
    await backend.store.compact()
    assert hits(path) == dict.fromkeys(hits(path), 0)
    assert len(await backend.store.search(("users", "bob"), "hums", limit=COUNT)) == COUNT


async def test_no_word_is_left_of_what_is_overwritten(backend, tmp_path):
    for n in range(COUNT):
        await backend.store.put(NS, f"{n}", "nothing")
    await backend.checkpointer.delete("t")
    await backend.store.compact()
    assert set(hits(tmp_path / "agent.db").values()) == {0}


async def test_no_word_is_left_of_what_another_program_deleted(backend, tmp_path):
    """Pages that are still in use keep pieces of the rows that another program deleted there."""
    with contextlib.closing(sqlite3.connect(tmp_path / "agent.db", isolation_level=None)) as other:
        other.execute("PRAGMA secure_delete = OFF")
        other.execute("UPDATE items SET value = '1' WHERE value LIKE '%xylophone%'")
    await forget(backend)
    await backend.compact()
    assert set(hits(tmp_path / "agent.db").values()) == {0}
    assert len(await backend.store.search(("users", "bob"), "hums", limit=COUNT)) == COUNT


async def test_vacuum_empties_the_log_of_checkpoints(backend, tmp_path):
    await backend.store.clear_namespace(NS)
    await backend.store.compact()
    await backend.checkpointer.delete("t")
    await backend.checkpointer.vacuum(30)
    assert set(hits(tmp_path / "agent.db").values()) == {0}


async def test_a_build_that_deletes_carelessly_by_default_is_told_not_to(backend):
    for call in (backend._connection.read, backend._connection.write):
        assert await call(lambda c: c.execute("PRAGMA secure_delete").fetchone()) == (1,)


@pytest.mark.slow
async def test_somebody_who_reads_keeps_the_log_and_that_is_said(backend, tmp_path, monkeypatch):
    monkeypatch.setattr("locus_memory.backends.sqlite.connection.pool._LOG_PATIENCE", 50)
    events = []
    unsubscribe = subscribe(events.append)
    reader = sqlite3.connect(tmp_path / "agent.db", isolation_level=None)
    try:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM items").fetchone()
        await forget(backend)
        await backend.store.compact()
        assert "sqlite.log_kept" in {event.name for event in events}
        assert sum(hits(tmp_path / "agent.db").values()) > 0
    finally:
        reader.close()
        unsubscribe()
    # Nobody waits for the patience of the log later on.
    timeout = await backend._connection.write(lambda c: c.execute("PRAGMA busy_timeout").fetchone())
    assert timeout == (30_000,)
    await backend.store.compact()
    assert set(hits(tmp_path / "agent.db").values()) == {0}


async def test_compacting_among_writers(backend):
    async def write(worker):
        for n in range(30):
            await backend.store.put(("busy", worker), f"{n}", f"xylophone {n}")

    writers = [asyncio.create_task(write(f"{n}")) for n in range(4)]
    for _ in range(5):
        await backend.store.compact()
    await asyncio.gather(*writers)
    for n in range(4):
        assert len(await backend.store.list_keys(("busy", f"{n}"))) == 30


FILLED = """
import asyncio, os, resource, sys
from locus_memory.backends.sqlite.backend import SQLiteBackend

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

async def run():
    async with SQLiteBackend(sys.argv[1]) as backend:
        for n in range(64):
            await backend.checkpointer.save({"a": os.urandom(750_000).hex()}, f"{n}")
        before = peak()
        await backend.compact()
        print(peak() - before, os.path.getsize(sys.argv[1]))

asyncio.run(run())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="others count the memory in other units")
def test_compacting_takes_no_memory_of_the_size_of_the_file(tmp_path):
    command = [sys.executable, "-c", FILLED, f"{tmp_path / 'large.db'}"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    taken, size = map(int, told.split())
    assert size > 40 * 2**20
    assert taken < size / 2
