"""What must not hurt: other processes, sudden death, a full disk, a damaged file."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import traceback
from contextlib import closing
from pathlib import Path

import pytest

from locus_memory.backends.sqlite.connection.connection import SQLiteDatabase
from locus_memory.backends.sqlite.schema import APPLICATION_ID, MIGRATIONS
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.errors import (
    BackendCorruptError,
    BackendUnavailableError,
    BackendWriteError,
    ConfigurationError,
)

NS = ("faults",)
PATIENCE = 60

PRELUDE = """
import asyncio, os, resource, signal, sys
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.errors import BackendUnavailableError, BackendWriteError
NS = ("faults",)

async def must_fail(error, call):
    try:
        await call
    except error as caught:
        return caught
    raise AssertionError(f"{error.__name__} was not raised")
"""


def start(body, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + body, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    return output


def together(body, path, count=4):
    """Run the body in several processes that begin at the same moment."""
    processes = [start(body, path, number) for number in range(count)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    return [finish(process) for process in processes]


class TestManyProcesses:
    @pytest.mark.slow
    async def test_four_processes_put_and_lose_nothing(self, tmp_path):
        body = """
async def main():
    print("ready", flush=True)
    sys.stdin.readline()
    async with SQLiteStore(sys.argv[1]) as store:
        own = [store.put(NS, f"{sys.argv[2]}-{n}", n) for n in range(60)]
        shared = [store.put(NS, "shared", n) for n in range(60)]
        await asyncio.gather(*own[:30], *shared[:30])
        for call in own[30:] + shared[30:]:
            await call
asyncio.run(main())
"""
        together(body, tmp_path / "store.db")
        async with SQLiteStore(tmp_path / "store.db") as store:
            shared = await store.get_item(NS, "shared")
            assert shared.version == 4 * 60
            keys = await store.list_keys(NS, 1000)
            assert len(keys) == 4 * 60 + 1
            assert {(await store.get_item(NS, key)).version for key in keys} == {1, 240}

    @pytest.mark.slow
    async def test_conditional_puts_of_four_processes_each_count_once(self, tmp_path):
        body = """
from locus_memory.errors import VersionConflictError
async def main():
    print("ready", flush=True)
    sys.stdin.readline()
    async with SQLiteStore(sys.argv[1]) as store:
        done = 0
        while done < 25:
            item = await store.get_item(NS, "count")
            version, value = (item.version, item.value) if item else (0, 0)
            try:
                await store.put(NS, "count", value + 1, if_version=version)
            except VersionConflictError:
                continue
            done += 1
asyncio.run(main())
"""
        together(body, tmp_path / "store.db")
        async with SQLiteStore(tmp_path / "store.db") as store:
            item = await store.get_item(NS, "count")
            assert (item.value, item.version) == (100, 100)

    @pytest.mark.slow
    async def test_four_processes_open_new_files_at_once(self, tmp_path):
        body = """
async def main():
    print("ready", flush=True)
    sys.stdin.readline()
    for round in range(20):
        stores = [SQLiteStore(f"{sys.argv[1]}/{round}.db") for _ in range(3)]
        puts = [store.put(NS, f"{sys.argv[2]}-{n}", n) for n, store in enumerate(stores)]
        await asyncio.gather(*puts)
        for store in stores:
            await store.close()
asyncio.run(main())
"""
        together(body, tmp_path)
        for number in range(20):
            async with SQLiteStore(tmp_path / f"{number}.db") as store:
                assert len(await store.list_keys(NS)) == 12


class TestSuddenDeath:
    @pytest.mark.slow
    async def test_what_was_acknowledged_survives_sigkill(self, tmp_path):
        body = """
async def main():
    store = SQLiteStore(sys.argv[1])
    async def put(n):
        await store.put(NS, f"{sys.argv[2]}-{n:06}", {"n": n, "text": "word " * 50})
        print(n, flush=True)
    for start in range(0, 10**6, 16):
        await asyncio.gather(*(put(n) for n in range(start, start + 16)))
asyncio.run(main())
"""
        path = tmp_path / "store.db"
        acknowledged = {}
        for attempt in range(6):
            process = start(body, path, attempt)
            lines = [process.stdout.readline() for _ in range(10 + 37 * attempt)]
            process.send_signal(signal.SIGKILL)
            # communicate() skips what was read ahead. The last line may have been cut.
            lines += process.stdout.readlines()
            process.communicate(timeout=PATIENCE)
            numbers = [int(line) for line in lines if line.endswith("\n")]
            acknowledged |= {f"{attempt}-{n:06}": n for n in numbers}
        async with SQLiteStore(path) as store:
            for key, number in acknowledged.items():
                assert (await store.get(NS, key))["n"] == number
            found = await store.search(NS, "words", 10**6)
            assert {item.key for item in found} >= acknowledged.keys()
        check_text_index(path)


def check_text_index(path):
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO texts (texts, rank) VALUES ('integrity-check', 1)")
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


class TestFullDisk:
    @pytest.mark.slow
    async def test_earlier_data_is_intact_and_it_works_again(self, tmp_path):
        body = """
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
async def main():
    store = SQLiteStore(sys.argv[1])
    await store.put(NS, "before", 1)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))
    error = await must_fail(BackendWriteError, store.put(NS, "large", "x" * 400_000))
    assert "store.db" in str(error), error
    assert "deleting may need room as well: make some" in str(error), error
    many = [store.put(NS, f"{n}", "y" * 50_000) for n in range(20)]
    results = await asyncio.gather(*many, return_exceptions=True)
    assert any(isinstance(result, BackendWriteError) for result in results), results
    assert await store.get(NS, "before") == 1
    kept = {f"{n}" for n, result in enumerate(results) if result == 1}
    assert kept | {"before"} == set(await store.list_keys(NS))
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    await store.put(NS, "after", 1)
    await store.close()
asyncio.run(main())
"""
        finish(start(body, tmp_path / "store.db"))
        async with SQLiteStore(tmp_path / "store.db") as store:
            assert await store.get(NS, "before") == 1
            assert await store.get(NS, "after") == 1
            assert not await store.exists(NS, "large")
        check_text_index(tmp_path / "store.db")

    async def test_a_file_that_may_not_grow_says_what_helps(self, tmp_path):
        async with SQLiteStore(tmp_path / "store.db") as store:
            await store.put(NS, "before", 1)
            await store._connection.write(
                lambda c: c.execute("PRAGMA max_page_count = 1").fetchall()
            )
            with pytest.raises(BackendWriteError, match=r"is full .*deleting may need room"):
                await store.put(NS, "large", "x" * 400_000)
            assert await store.get(NS, "before") == 1

    @pytest.mark.slow
    def test_a_file_that_could_not_be_made_is_made_later(self, tmp_path):
        body = """
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
async def main():
    store = SQLiteStore(sys.argv[1])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    await must_fail(BackendWriteError, store.put(NS, "k", 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert await store.put(NS, "k", 1) == 1
    await store.close()
asyncio.run(main())
"""
        finish(start(body, tmp_path / "store.db"))


@pytest.fixture
def public_path():
    """A folder that a process without our rights can reach."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


# Mode bits do not stop root: become nobody first.
UNPRIVILEGED = """
import asyncio, sqlite3, urllib.parse
# What is imported late must come from a folder that nobody can read: do it now.
asyncio.run(SQLiteStore(":memory:").search(("a",), "word"))
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
"""


class TestReadOnly:
    @pytest.mark.slow
    async def test_what_is_there_can_be_read(self, public_path):
        path = public_path / "store.db"
        async with SQLiteStore(path) as store:
            await store.put(NS, "k", "some words")
        path.chmod(0o444)
        public_path.chmod(0o555)
        body = (
            UNPRIVILEGED
            + """
async def main():
    async with SQLiteStore(sys.argv[1]) as store:
        for _ in range(2):
            assert await store.get(NS, "k") == "some words"
            assert [item.key for item in await store.search(NS, "word")] == ["k"]
            error = await must_fail(BackendWriteError, store.put(NS, "k", 2))
            assert "store.db" in str(error)
asyncio.run(main())
"""
        )
        finish(start(body, path))
        public_path.chmod(0o755)
        assert [each.name for each in public_path.iterdir()] == ["store.db"]

    @pytest.mark.slow
    async def test_what_only_the_log_holds_is_not_overlooked(self, public_path):
        path = public_path / "store.db"
        store = SQLiteStore(path)
        await store.put(NS, "k", 1)
        # A copy as a crash leaves it: the log has the data, its index is lost.
        copy = public_path / "copy"
        copy.mkdir()
        for name in ("store.db", "store.db-wal"):
            (copy / name).write_bytes((public_path / name).read_bytes())
            (copy / name).chmod(0o444)
        await store.close()
        copy.chmod(0o555)
        body = (
            UNPRIVILEGED
            + """
async def main():
    store = SQLiteStore(sys.argv[1])
    try:
        assert await store.get(NS, "k") == 1
    except BackendUnavailableError:
        pass
    await store.close()
asyncio.run(main())
"""
        )
        finish(start(body, copy / "store.db"))
        copy.chmod(0o755)

    async def test_a_folder_that_cannot_be_made_is_named(self, tmp_path):
        (tmp_path / "file").touch()
        database = SQLiteDatabase(tmp_path / "file" / "agent.db")
        with pytest.raises(BackendUnavailableError, match=r"file/agent\.db"):
            await database.open()
        await database.close()

    async def test_a_folder_in_place_of_the_file_is_unavailable(self, tmp_path):
        database = SQLiteDatabase(tmp_path)
        with pytest.raises(BackendUnavailableError):
            await database.open()
        await database.close()


async def opened(path):
    database = SQLiteDatabase(path)
    try:
        await database.open()
    finally:
        await database.close()


class TestWrongFiles:
    async def test_a_file_that_is_no_database_is_corrupt(self, tmp_path):
        path = tmp_path / "agent.db"
        path.write_text("not a database at all, but long enough to be taken for one " * 20)
        with pytest.raises(BackendCorruptError, match=r"agent\.db"):
            await opened(path)
        assert path.read_text().startswith("not a database")

    async def test_a_damaged_page_is_corrupt(self, tmp_path):
        path = tmp_path / "store.db"
        async with SQLiteStore(path) as store:
            for n in range(200):
                await store.put(NS, f"{n}", "word " * 100)
        content = bytearray(path.read_bytes())
        content[4096:] = os.urandom(len(content) - 4096)
        path.write_bytes(content)
        store = SQLiteStore(path)
        for call in (store.get(NS, "7"), store.put(NS, "7", 1)):
            with pytest.raises(BackendCorruptError):
                await call
        await store.close()

    async def test_a_vector_without_its_item_is_corrupt(self, tmp_path):
        store = SQLiteStore(tmp_path / "store.db")
        await store.put_with_embedding(NS, "k", 1, [1.0, 2.0])
        await store._connection.write(lambda c: c.execute("UPDATE vectors SET item = 99"))
        with pytest.raises(BackendCorruptError, match="a vector is damaged"):
            await store.search_by_embedding(NS, [1.0, 2.0])
        await store.close()

    async def test_an_empty_file_is_as_good_as_none(self, tmp_path):
        path = tmp_path / "agent.db"
        path.touch()
        await opened(path)
        assert path.stat().st_size > 0

    @pytest.mark.parametrize(
        "statements",
        [
            [f"PRAGMA application_id = {APPLICATION_ID + 1}"],
            ["CREATE TABLE theirs (a)"],
            ["PRAGMA user_version = 1"],
        ],
    )
    async def test_the_file_of_another_program_is_left_alone(self, tmp_path, statements):
        path = tmp_path / "agent.db"
        connection = sqlite3.connect(path)
        for statement in statements:
            connection.execute(statement)
        connection.close()
        before = path.read_bytes()
        with pytest.raises(BackendCorruptError, match="another program"):
            await opened(path)
        assert path.read_bytes() == before

    async def test_the_file_of_a_newer_version_asks_for_an_upgrade(self, tmp_path):
        path = tmp_path / "agent.db"
        await opened(path)
        connection = sqlite3.connect(path)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
        connection.close()
        with pytest.raises(ConfigurationError, match="upgrade"):
            await opened(path)

    async def test_a_text_that_is_not_utf_8_is_corrupt_and_not_told(self, tmp_path):
        path = tmp_path / "store.db"
        async with SQLiteStore(path) as store:
            await store.put(NS, "k", "secret")
        with closing(sqlite3.connect(path)) as raw, raw:
            raw.execute("UPDATE items SET value = CAST(x'22736563726574ff22' AS TEXT)")
        async with SQLiteStore(path) as store:
            for call in (store.get(NS, "k"), store.scan(NS), store.search(NS, "secret")):
                with pytest.raises(BackendCorruptError, match="the item 'k'") as caught:
                    await call
                assert "secret" not in "".join(traceback.format_exception(caught.value))
