"""Copies that die at any moment: the next run completes them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import zlib
from urllib.parse import urlsplit

import asyncpg
import pytest

from locus_memory import open_backend
from locus_memory.transfer import MigrateOptions, migrate
from locus_memory.transfer.marker import MARKER

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")

COUNT = 3000
KILLS = 8


async def fill(backend):
    for start in range(0, COUNT, 500):
        await backend.store.put_batch(
            [((f"n{n % 7}", "x"), f"k{n}", {"n": n}) for n in range(start, start + 500)]
        )
    state = {"messages": []}
    for n in range(300):
        state["messages"].append(f"turn {n} " * 20)
        await backend.checkpointer.save(state, f"t{n % 3}", f"c{n}")


async def count(backend):
    namespaces = await backend.store.list_namespaces()
    items = [len(await backend.store.list_keys(each, 10_000)) for each in namespaces]
    threads = await backend.checkpointer.list_threads()
    found = [len(await backend.checkpointer.list_checkpoints(each, 1000)) for each in threads]
    return sum(items) + sum(found)


def run_for(seconds, arguments):
    """Run a command and kill it after a time; return whether it ended by itself."""
    process = subprocess.Popen([sys.executable, "-m", "locus_memory", *arguments])
    try:
        return process.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False


@pytest.fixture
async def database(postgresql_url, tmp_path):
    """The URL of a new database of this test alone."""
    name = f"t{zlib.crc32(bytes(tmp_path))}"
    connection = await asyncpg.connect(postgresql_url)
    try:
        await connection.execute(f"CREATE DATABASE {name}")
        yield urlsplit(postgresql_url)._replace(path=f"/{name}").geturl()
        await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await connection.close()


async def test_a_migration_survives_sigkill(tmp_path):
    await migrate_through_kills(tmp_path, f"sqlite:{tmp_path / 'b.db'}")


async def test_a_migration_to_postgresql_survives_sigkill(tmp_path, database):
    await migrate_through_kills(tmp_path, database)


async def migrate_through_kills(tmp_path, target):
    """Kill a migration again and again, and complete it."""
    source = f"sqlite:{tmp_path / 'a.db'}"
    async with open_backend(source) as one:
        await fill(one)
    command = ["migrate", "--from", source, "--to", target, "--json", "--rate", "400"]
    counts = []
    for number in range(KILLS):
        ended = await asyncio.to_thread(run_for, 3 + 0.5 * (number % 3), command)
        async with open_backend(target) as other:
            counts.append(await count(other))
        if ended:
            break
    # Each run continues: nothing is lost, and it does not start over.
    assert counts == sorted(counts)
    assert len(set(counts) - {0}) > 2, counts
    async with open_backend(source) as one, open_backend(target) as other:
        report = await migrate(one, other, MigrateOptions(verify=True))
        assert report.equal
        assert await other.store.get(MARKER, "marker") is not None
        assert (await migrate(one, other)).written == 0
