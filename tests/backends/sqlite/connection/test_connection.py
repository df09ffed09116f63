"""One SQLite file shared by tasks, threads, loops and processes."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress

import pytest

from locus_memory.backends.sqlite.connection import opening
from locus_memory.backends.sqlite.connection.connection import SQLiteDatabase
from locus_memory.backends.sqlite.schema import APPLICATION_ID, MIGRATIONS
from locus_memory.errors import (
    BackendError,
    BackendUnavailableError,
    ConfigurationError,
)

PATIENCE = 30


@pytest.fixture
async def database(tmp_path):
    database = SQLiteDatabase(tmp_path / "agent.db")
    yield database
    await database.close()


def add(name):
    return lambda c: c.execute("INSERT INTO threads (thread_id) VALUES (?)", (name,)).lastrowid


def names(connection):
    return [name for (name,) in connection.execute("SELECT thread_id FROM threads ORDER BY id")]


def fail(connection):
    raise LookupError("on purpose")


def add_then_fail(name):
    def work(connection):
        add(name)(connection)
        fail(connection)

    return work


class Gate:
    """Work that keeps its thread busy until it is told to go on."""

    def __init__(self):
        self.entered = threading.Event()
        self.leave = threading.Event()

    def __call__(self, connection):
        self.entered.set()
        assert self.leave.wait(PATIENCE)

    async def wait(self):
        assert await asyncio.to_thread(self.entered.wait, PATIENCE)


async def together(database, *works):
    """Have the writer find all of the works waiting at one moment."""
    gate = Gate()
    first = asyncio.ensure_future(database.write(gate))
    await gate.wait()
    tasks = [asyncio.ensure_future(database.write(work)) for work in works]
    await asyncio.sleep(0)
    gate.leave.set()
    await first
    return await asyncio.gather(*tasks, return_exceptions=True)


def threads_of_ours():
    return [t for t in threading.enumerate() if t.name.startswith("locus-memory-sqlite")]


def run_python(script, *arguments):
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


class TestOpening:
    async def test_it_opens_on_first_use_and_makes_its_folder(self, tmp_path):
        path = tmp_path / "a" / "agent.db"
        database = SQLiteDatabase(str(path))
        assert not path.parent.exists()
        assert await database.read(names) == []
        assert path.exists()
        assert database.path == str(path)
        await database.close()

    async def test_a_path_may_hold_any_character(self, tmp_path):
        path = tmp_path / "50% off? #1 é'.db"
        database = SQLiteDatabase(path)
        await database.write(add("a"))
        await database.close()
        assert path.exists()

    async def test_a_relative_path_stays_where_it_was(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        database = SQLiteDatabase("agent.db")
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        await database.open()
        await database.close()
        assert (tmp_path / "agent.db").exists()

    async def test_tables_that_another_makes_between_two_looks_are_no_damage(
        self, tmp_path, monkeypatch
    ):
        path = tmp_path / "agent.db"
        # Whoever reads keeps the first opener from switching the journal.
        reader = sqlite3.connect(path, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
        looks = []
        prepare = opening.register_functions

        def make_tables_before_the_second_look_at_the_owner(statement):
            if statement != "PRAGMA application_id":
                return
            looks.append(statement)
            if len(looks) == 2:
                reader.close()
                with suppress(sqlite3.OperationalError):
                    opening.Settings(str(path), 0, "NORMAL").connect()[0].close()

        def watched(connection):
            prepare(connection)
            if not looks:
                connection.set_trace_callback(make_tables_before_the_second_look_at_the_owner)

        monkeypatch.setattr(opening, "register_functions", watched)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            opening.Settings(str(path), 0.05, "NORMAL").connect()
        assert len(looks) == 2

    async def test_the_file_is_marked_as_ours(self, database, tmp_path):
        await database.open()
        connection = sqlite3.connect(tmp_path / "agent.db")
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        connection.close()

    @pytest.mark.parametrize(
        "options", [{"readers": 0}, {"busy_timeout": -1}, {"synchronous": "off"}]
    )
    def test_an_option_that_cannot_work_is_refused(self, options):
        with pytest.raises(ConfigurationError):
            SQLiteDatabase("agent.db", **options)

    @pytest.mark.parametrize("path", ["", "a\0b"])
    def test_a_path_that_cannot_be_is_refused(self, path):
        with pytest.raises(ConfigurationError):
            SQLiteDatabase(path)

    async def test_full_synchronous_reaches_the_writer(self, tmp_path):
        database = SQLiteDatabase(tmp_path / "agent.db", synchronous="full")
        level = await database.write(lambda c: c.execute("PRAGMA synchronous").fetchone())
        assert level == (2,)
        await database.close()


class TestMemory:
    async def test_two_are_apart(self):
        first, second = SQLiteDatabase(":memory:"), SQLiteDatabase(":memory:")
        await first.write(add("a"))
        assert await second.read(names) == []
        await first.close()
        await second.close()


class TestWriting:
    async def test_what_waits_shares_one_transaction(self, database):
        statements = []
        await database.write(lambda c: c.set_trace_callback(statements.append))
        await together(database, *(add(f"{n}") for n in range(10)))
        # One for the gate, one for all that waited behind it.
        assert statements.count("BEGIN IMMEDIATE") == 2
        assert statements.count("COMMIT") == 3
        assert await database.read(names) == [f"{n}" for n in range(10)]

    async def test_a_failure_undoes_only_itself(self, database):
        works = (add("one"), add_then_fail("lost"), add("two"), add_then_fail("gone"), fail)
        results = await together(database, *works)
        assert [isinstance(result, LookupError) for result in results] == [0, 1, 0, 1, 1]
        assert await database.read(names) == ["one", "two"]

    async def test_a_failure_alone_undoes_itself(self, database):
        with pytest.raises(LookupError):
            await database.write(add_then_fail("lost"))
        assert await database.read(names) == []

    async def test_a_failed_commit_fails_every_job_of_the_batch(self, database):
        def dangle(connection):
            connection.execute("PRAGMA defer_foreign_keys = ON")
            connection.execute(
                "INSERT INTO checkpoints (thread, checkpoint_id, revision, level, created_at,"
                " metadata, size, seal, payload) VALUES (99, 'c', 1, 0, 0, '{}', 0, 0, x'')"
            )

        results = await together(database, add("a"), dangle, add("b"))
        assert [type(result) for result in results] == [BackendError] * 3
        assert await database.read(names) == []
        await database.write(add("c"))
        assert await database.read(names) == ["c"]

    async def test_an_odd_exception_reaches_its_caller(self, database):
        with pytest.raises(RuntimeError, match="StopIteration"):
            await database.write(lambda _: next(iter(())))

    async def test_a_locked_file_is_unavailable_and_can_still_be_read(self, tmp_path):
        database = SQLiteDatabase(tmp_path / "agent.db", busy_timeout=0.02)
        await database.write(add("a"))
        other = sqlite3.connect(tmp_path / "agent.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(BackendUnavailableError, match=r"agent\.db"):
            await database.write(add("b"))
        assert await database.read(names) == ["a"]
        other.execute("COMMIT")
        other.close()
        await database.write(add("c"))
        assert await database.read(names) == ["a", "c"]
        await database.close()


class TestTheLog:
    async def grow(self, database, path):
        """Write more than the limit while another process reads."""
        await database.write(add("first"))
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM threads").fetchall()
            for n in range(20):
                name = f"{n}" + "x" * 2**20
                await database.write(add(name))
            assert log_of(path) > opening.LOG_LIMIT

    async def test_it_is_emptied_by_the_first_write_that_nobody_reads_beside(self, tmp_path):
        async with SQLiteDatabase(tmp_path / "a.db") as database:
            await self.grow(database, tmp_path / "a.db")
            await database.write(add("last"))
            assert log_of(tmp_path / "a.db") == 0

    async def test_it_is_limited_where_another_program_writes_it_back(self, tmp_path):
        async with SQLiteDatabase(tmp_path / "a.db") as database:
            await self.grow(database, tmp_path / "a.db")
            with closing(sqlite3.connect(tmp_path / "a.db")) as other:
                other.execute("PRAGMA wal_checkpoint")
            await database.write(add("last"))
            assert log_of(tmp_path / "a.db") <= opening.LOG_LIMIT


def log_of(path):
    return path.with_name(f"{path.name}-wal").stat().st_size


class TestReading:
    async def test_a_read_sees_one_snapshot(self, database):
        await database.write(add("a"))
        gate = Gate()

        def twice(connection):
            before = names(connection)
            gate(connection)
            return before, names(connection)

        reading = asyncio.ensure_future(database.read(twice))
        await gate.wait()
        await database.write(add("b"))
        # The other reader is free, and sees what is committed.
        assert await database.read(names) == ["a", "b"]
        gate.leave.set()
        assert await reading == (["a"], ["a"])

    @pytest.mark.slow
    async def test_a_result_is_not_kept_alive(self, database):
        class Large:
            pass

        large = await database.read(lambda _: Large())
        await database.read(names)
        # Of what was there before the tests as well.
        gc.unfreeze()
        count = len(gc.get_referrers(large))
        gc.freeze()
        assert count <= 1


class TestCancelling:
    async def test_work_that_has_not_begun_is_never_done(self, database):
        gate = Gate()
        first = asyncio.ensure_future(database.write(gate))
        await gate.wait()
        second = asyncio.ensure_future(database.write(add("never")))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        gate.leave.set()
        await first
        assert await database.read(names) == []

    async def test_work_that_has_begun_is_over_when_the_cancelled_call_returns(self, database):
        gate = Gate()

        def work(connection):
            gate(connection)
            add("done")(connection)

        writing = asyncio.ensure_future(database.write(work))
        await gate.wait()
        writing.cancel()
        await asyncio.sleep(0)
        assert not writing.done()
        gate.leave.set()
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert await database.read(names) == ["done"]

    async def test_a_read_lets_go_at_once(self, database):
        gate = Gate()
        reading = asyncio.ensure_future(database.read(gate))
        await gate.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        # It still keeps its thread busy, and the next read does not wait for it.
        assert await database.read(names) == []
        gate.leave.set()

    async def test_a_cancelled_read_counts_until_it_is_over(self, tmp_path):
        database = SQLiteDatabase(tmp_path / "one.db", readers=1)
        gate = Gate()
        begun = asyncio.ensure_future(database.read(gate))
        await gate.wait()
        for reading in (begun, asyncio.ensure_future(database.read(names))):
            await asyncio.sleep(0)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
        assert (database.use().used, database.use().waiting) == (1, 0)
        gate.leave.set()
        # The only thread for readers is done with the other one then.
        assert await database.read(names) == []
        assert (database.use().used, database.use().waiting) == (0, 0)
        await database.close()

    async def test_a_read_that_is_cancelled_as_it_ends_is_counted_down(self, database):
        gate = Gate()
        reading = asyncio.ensure_future(database.read(gate))
        await gate.wait()
        gate.leave.set()
        # The loop stands still: the thread is done before it knows of the cancellation.
        time.sleep(0.1)  # noqa: ASYNC251 - on purpose
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert database.use().used == 0

    async def test_waiting_for_another_process_can_be_cancelled_at_once(self, database, tmp_path):
        await database.open()
        other = sqlite3.connect(tmp_path / "agent.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(database.write(add("never")), 0.05)
        other.execute("COMMIT")
        other.close()
        await database.write(add("next"))
        assert await database.read(names) == ["next"]


class TestLoopsAndProcesses:
    async def test_two_loops_in_two_threads_share_it(self, database):
        async def many(prefix):
            await asyncio.gather(*(database.write(add(f"{prefix}{n}")) for n in range(50)))
            return await database.read(names)

        elsewhere = asyncio.to_thread(lambda: asyncio.run(many("b")))
        await asyncio.gather(many("a"), elsewhere)
        assert len(await database.read(names)) == 100

    async def test_a_loop_that_is_gone_hurts_nobody(self, database):
        gate = Gate()

        def leave_early():
            loop = asyncio.new_event_loop()
            job = loop.create_task(database.write(gate))
            loop.run_until_complete(gate.wait())
            assert not job.done()
            # Destroyed as it waits, without a word about it.
            job._log_destroy_pending = False
            loop.close()

        await asyncio.to_thread(leave_early)
        gate.leave.set()
        await database.write(add("a"))
        assert await database.read(names) == ["a"]

    @pytest.mark.slow
    def test_a_child_of_a_fork_is_told(self, tmp_path):
        script = """
import asyncio, os, sys, warnings
from locus_memory.backends.sqlite.connection.connection import SQLiteDatabase
from locus_memory.errors import BackendError
warnings.simplefilter("ignore")
database = SQLiteDatabase(sys.argv[1])
asyncio.run(database.open())
child = os.fork()
if child == 0:
    try:
        asyncio.run(database.open())
    except BackendError as error:
        asyncio.run(database.close())
        os._exit(7 if "fork" in str(error) else 8)
    os._exit(9)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
asyncio.run(database.open())
asyncio.run(database.close())
"""
        done = run_python(script, tmp_path / "agent.db")
        assert done.returncode == 0, done.stderr

    @pytest.mark.slow
    def test_a_child_may_be_the_first_to_use_it(self, tmp_path):
        script = """
import asyncio, os, sys
from locus_memory.backends.sqlite.connection.connection import SQLiteDatabase
database = SQLiteDatabase(sys.argv[1])
child = os.fork()
asyncio.run(database.open())
asyncio.run(database.close())
if child:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
        done = run_python(script, tmp_path / "agent.db")
        assert done.returncode == 0, done.stderr

    def test_an_interpreter_ends_though_it_was_not_closed(self, tmp_path):
        script = """
import asyncio, sys
from locus_memory.backends.sqlite.connection.connection import SQLiteDatabase
database = SQLiteDatabase(sys.argv[1])
async def main():
    await database.write(lambda c: c.execute("INSERT INTO threads (thread_id) VALUES ('a')"))
    await database.open()
asyncio.run(main())
"""
        done = run_python(script, tmp_path / "agent.db")
        assert (done.returncode, done.stderr) == (0, "")


class TestClosing:
    async def test_what_was_asked_for_is_finished(self, tmp_path):
        database = SQLiteDatabase(tmp_path / "agent.db")
        jobs = [asyncio.ensure_future(database.write(add(f"{n}"))) for n in range(100)]
        reading = asyncio.ensure_future(database.read(names))
        await asyncio.sleep(0)
        await database.close()
        assert len(await asyncio.gather(*jobs)) == 100
        assert isinstance(await reading, list)
        assert sorted(p.name for p in tmp_path.iterdir()) == ["agent.db"]

    async def test_closing_an_unused_one_makes_no_file(self, tmp_path):
        await SQLiteDatabase(tmp_path / "agent.db").close()
        assert list(tmp_path.iterdir()) == []

    # One of the threads may be the last to let go of it, at any moment.
    @pytest.mark.filterwarnings("ignore::ResourceWarning")
    async def test_the_threads_of_a_forgotten_one_end(self, tmp_path):
        database = SQLiteDatabase(tmp_path / "agent.db")
        await database.write(add("a"))
        await database.open()
        workers = threads_of_ours()
        assert len(workers) == 2
        del database
        gc.collect()
        for worker in workers:
            await asyncio.to_thread(worker.join, PATIENCE)
            assert not worker.is_alive()
