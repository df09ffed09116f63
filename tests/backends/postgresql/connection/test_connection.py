"""One PostgreSQL database shared by tasks, event loops and processes."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import random
import ssl
import sys
import threading

import asyncpg
import pytest

from locus_memory.backends.postgresql.connection.connection import PostgreSQLPool
from locus_memory.backends.postgresql.connection.driver_errors import translate
from locus_memory.backends.postgresql.schema import MIGRATIONS, Names
from locus_memory.errors import (
    BackendClosedError,
    BackendCorruptError,
    BackendError,
    BackendUnavailableError,
    BackendWriteError,
    ConfigurationError,
    LocusMemoryError,
)
from locus_memory.events import subscribe

pytestmark = pytest.mark.usefixtures("own_tables")

THREADS = "SELECT count(*) FROM {threads}"
ADD = "INSERT INTO {threads} (digest, thread_id) VALUES ($1, 'x')"


RACE = """
import asyncio, sys
from locus_memory.backends.postgresql.connection.connection import PostgreSQLPool

async def race():
    pools = [PostgreSQLPool(sys.argv[1], schema=sys.argv[2], pool_size=1) for _ in range(3)]
    print("ready", flush=True)
    sys.stdin.readline()
    await asyncio.gather(*(pool.open() for pool in pools))
    await asyncio.gather(*(pool.close() for pool in pools))
    print("done")

asyncio.run(race())
"""


def marked(url, mark):
    """A URL whose connections can be told from others."""
    return f"{url}?application_name={mark}"


async def connections(url, mark):
    connection = await asyncpg.connect(url)
    try:
        query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1"
        return await connection.fetchval(query, mark)
    finally:
        await connection.close()


class TestOptions:
    @pytest.mark.parametrize("database", ["", "a\0b", "mysql://host/db"])
    def test_a_database_that_cannot_be_is_refused(self, database):
        with pytest.raises(ConfigurationError, match="postgresql://"):
            PostgreSQLPool(database)

    @pytest.mark.parametrize(
        ("database", "shown"),
        [
            (None, "postgresql"),
            ("agent", "postgresql agent"),
            ("postgresql://user:hunter2@host:5432/db", "postgresql host:5432/db"),
            ("postgres://user:hunter2@[::1]:5432/db?sslmode=require", "postgresql [::1]:5432/db"),
            ("postgresql://user:hun/ter2@host/db", "postgresql"),
            ("postgresql://user:hunter2?@host/db", "postgresql"),
            ("postgresql://user:h@hunter2@host/db", "postgresql host/db"),
            ("postgresql://host/db?password=hunter2", "postgresql host/db"),
            ("postgresql://[hunter2", "postgresql"),
        ],
    )
    async def test_the_password_is_never_shown(self, database, shown):
        assert repr(PostgreSQLPool(database)) == f"PostgreSQLPool({shown})"

    @pytest.mark.parametrize(
        "database",
        [
            "postgresql://user:hun/ter2@127.0.0.1:1/db",
            "postgresql://user:hunter2@127.0.0.1:port/db",
            "postgresql://user:hunter2@127.0.0.1:1/db?sslmode=wrong",
            "postgresql://user:hunter2@127.0.0.1:1,2,3/db",
            "postgresql://user:hunter2@127.0.0.1:1/db",
            "postgresql://user:hunter2@" + "a" * 70 + ".invalid:1/db",
        ],
    )
    async def test_no_error_of_opening_tells_the_password(self, database):
        with pytest.raises((ConfigurationError, BackendUnavailableError)) as caught:
            await PostgreSQLPool(database).open()
        shown = "".join(map(repr, (caught.value, caught.value.__cause__)))
        assert "hun" not in shown
        assert "ter2" not in shown

    @pytest.mark.slow
    async def test_a_name_is_completed_by_the_environment(
        self, postgresql_server, schema, monkeypatch
    ):
        monkeypatch.setenv("PGHOST", "127.0.0.1")
        monkeypatch.setenv("PGPORT", str(postgresql_server.port))
        monkeypatch.setenv("PGUSER", "locus")
        async with PostgreSQLPool("postgres", schema=schema) as pool:
            assert await pool.fetchval("SELECT current_database()") == "postgres"
        monkeypatch.setenv("PGDATABASE", "postgres")
        async with PostgreSQLPool(schema=schema) as pool:
            assert await pool.fetchval("SELECT current_database()") == "postgres"


class TestOpening:
    async def test_twelve_tasks_open_no_more_than_the_pool(self, url, make_pool, schema, until):
        pool = make_pool(marked(url, schema), pool_size=4)
        counts = await asyncio.gather(*(pool.fetchval(THREADS) for _ in range(12)))
        assert counts == [0] * 12
        assert 1 <= await connections(url, schema) <= 4
        await pool.close()

        async def gone():
            return await connections(url, schema) == 0

        await until(gone)

    @pytest.mark.slow
    async def test_four_processes_open_a_new_schema_at_once(self, url, schema, pool):
        processes = [
            await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", RACE, url, schema),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            for _ in range(4)
        ]
        for process in processes:
            assert await process.stdout.readline() == b"ready\n"
        done = await asyncio.gather(*(process.communicate(b"go\n") for process in processes))
        assert [out for out, _ in done] == [b"done\n"] * 4
        parts = await pool.fetch("SELECT part, version FROM {migrations} ORDER BY part")
        assert [tuple(part) for part in parts] == [
            (part, len(MIGRATIONS[part])) for part in ("core", "vector")
        ]

    async def test_what_is_up_to_date_takes_no_lock(self, url, pool, make_pool, schema):
        await pool.open()
        other = await asyncpg.connect(url)
        async with other.transaction():
            await other.execute("SELECT pg_advisory_xact_lock($1)", Names(schema).lock)
            again = make_pool(command_timeout=20)
            assert await again.fetchval(THREADS) == 0
        await other.close()

    async def test_newer_tables_are_refused(self, pool, make_pool):
        await pool.execute("UPDATE {migrations} SET version = 99 WHERE part = 'core'")
        with pytest.raises(ConfigurationError, match="a newer locus_memory"):
            await make_pool().open()

    @pytest.mark.slow
    async def test_another_schema_and_another_prefix_are_apart(self, make_pool, schema):
        pools = [
            make_pool(),
            make_pool(table_prefix="Other_"),
            make_pool(schema=f"{schema}_Other"),
        ]
        for number, pool in enumerate(pools):
            for index in range(number):
                await pool.execute(ADD, bytes([index]))
        assert [await pool.fetchval(THREADS) for pool in pools] == [0, 1, 2]

    async def test_no_search_path_is_needed(self, url, make_pool):
        pool = make_pool(f"{url}?search_path=nowhere")
        await pool.execute(ADD, b"1")
        assert await pool.fetchval(THREADS) == 1

    @pytest.mark.slow
    async def test_a_database_that_is_not_unicode_is_refused(self, postgresql_server, schema):
        template = "TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C' LOCALE_PROVIDER libc"
        postgresql_server.run(f"CREATE DATABASE {schema} {template}")
        url = postgresql_server.url.replace("/postgres", f"/{schema}")
        with pytest.raises(ConfigurationError, match="LATIN1, not UTF8"):
            async with PostgreSQLPool(url):
                pass
        postgresql_server.run(f"DROP DATABASE {schema}")

    @pytest.mark.slow
    async def test_a_role_that_may_make_nothing_uses_what_is_there(
        self, postgresql_server, pool, make_pool, schema
    ):
        await pool.open()
        role = f"{schema}_guest"
        postgresql_server.run(f"CREATE ROLE {role} LOGIN")
        postgresql_server.run(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
        grant = f"GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA {schema} TO {role}"
        postgresql_server.run(grant)
        url = postgresql_server.url.replace("locus@", f"{role}@")
        guest = make_pool(url)
        await guest.execute(ADD, b"1")
        assert await guest.fetchval(THREADS) == 1
        with pytest.raises(BackendError, match="permission denied"):
            await guest.execute("DELETE FROM {threads}")
        for elsewhere in ({"schema": f"{schema}_2"}, {"table_prefix": "other_"}):
            with pytest.raises(BackendError, match="permission denied"):
                await make_pool(url, **elsewhere).open()

    @pytest.mark.slow
    async def test_a_read_that_is_denied_is_no_failed_write(
        self, postgresql_server, pool, make_pool, schema
    ):
        await pool.open()
        role = f"{schema}_blind"
        postgresql_server.run(f"CREATE ROLE {role} LOGIN")
        postgresql_server.run(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
        postgresql_server.run(f"GRANT SELECT ON {pool.sql('{migrations}')} TO {role}")
        blind = make_pool(postgresql_server.url.replace("locus@", f"{role}@"))
        with pytest.raises(BackendError, match="denied for table locus_threads") as caught:
            await blind.fetchval(THREADS)
        assert not isinstance(caught.value, BackendWriteError)

    @pytest.mark.slow
    async def test_the_extension_may_come_later(self, postgresql_server, schema):
        postgresql_server.run(f"CREATE ROLE {schema} LOGIN")
        postgresql_server.run(f"CREATE DATABASE {schema}")
        postgresql_server.run(f"CREATE SCHEMA {schema} AUTHORIZATION {schema}", schema)
        url = postgresql_server.url.replace("locus@", f"{schema}@")
        url = url.replace("/postgres", f"/{schema}")
        events = []
        stop = subscribe(lambda event: events.append(event.name))
        async with PostgreSQLPool(url, schema=schema) as pool:
            assert not pool.features.has_vector
            assert pool.features.vector_version == ()
            assert await pool.fetchval(THREADS) == 0
        stop()
        assert events == ["postgresql.no_vectors"]
        postgresql_server.run("CREATE SCHEMA ext; CREATE EXTENSION vector SCHEMA ext", schema)
        postgresql_server.run(f"GRANT USAGE ON SCHEMA ext TO {schema}", schema)
        async with PostgreSQLPool(url, schema=schema) as pool:
            assert pool.features.has_vector
            assert pool.features.vector_version >= (0, 8)
            assert pool.features.vector_schema == "ext"
            assert pool.sql("{vector}") == '"ext"'
        postgresql_server.run(f"DROP DATABASE {schema}")


class TestStatements:
    @pytest.mark.slow
    async def test_what_the_server_gave_up_is_done_again(self, make_pool):
        pool = make_pool(pool_size=2)
        for digest in (b"a", b"b"):
            await pool.execute(ADD, digest)
        runs = []
        meet = asyncio.Barrier(2)

        async def cross(connection, first, second):
            runs.append(first)
            touch = pool.sql("UPDATE {threads} SET removals = removals + 1 WHERE digest = $1")
            await connection.execute(touch, first)
            if len(runs) <= 2:
                await meet.wait()
            await connection.execute(touch, second)
            return first

        done = await asyncio.gather(
            pool.transact(lambda c: cross(c, b"a", b"b")),
            pool.transact(lambda c: cross(c, b"b", b"a")),
        )
        assert done == [b"a", b"b"]
        assert len(runs) >= 3
        removals = await pool.fetch("SELECT removals FROM {threads}")
        assert [row[0] for row in removals] == [2, 2]

    async def test_an_error_tells_no_value(self, pool):
        await pool.execute(ADD, b"secret")
        calls = (
            pool.execute(ADD, b"secret"),
            pool.fetchval("SELECT $1::text::integer", "secret"),
            pool.fetchval("SELECT $1::integer", "secret"),
        )
        for call in calls:
            with pytest.raises(BackendError) as caught:
                await call
            assert "secret" not in repr(caught.value)
            assert b"secret".hex() not in repr(caught.value)

    async def test_no_plan_is_kept_for_long(self, make_pool, monkeypatch):
        pool = make_pool(pool_size=1)
        kept = "SELECT max(generic_plans) FROM pg_prepared_statements WHERE statement = $1"
        statement = pool.sql("SELECT FROM {threads} WHERE thread_id = $1")
        for _ in range(8):
            await pool.fetch(statement, "x")
        assert await pool.fetchval(kept, statement) > 0
        loop = asyncio.get_running_loop()
        now = loop.time
        monkeypatch.setattr(loop, "time", lambda: now() + 61)
        for _ in range(2):
            await asyncio.sleep(0)
        assert await pool.fetchval(kept, statement) is None
        monkeypatch.undo()

    async def test_templates_are_forgotten_rather_than_piled_up(self, pool):
        for number in range(2500):
            assert pool.sql(f"SELECT {number}") == f"SELECT {number}"
        assert pool.sql.cache_info().currsize <= 1000


class TestWaiting:
    async def test_an_exhausted_pool_is_unavailable(self, make_pool):
        pool = make_pool(pool_size=1, acquire_timeout=0.05)
        await pool.open()
        async with pool.transaction():
            calls = (pool.fetchval("SELECT 1") for _ in range(3))
            refused = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(error) for error in refused] == [BackendUnavailableError] * 3
        assert "all 1 connections are busy" in str(refused[0])
        assert await pool.fetchval("SELECT 1") == 1

    async def test_nobody_knocks_twice_at_a_server_that_is_gone(self, make_pool, proxy):
        pool = make_pool(proxy.url)
        await pool.open()
        proxy.refusing = True
        proxy.cut()
        # What was lost with its connection is noticed first.
        with pytest.raises(BackendUnavailableError):
            await pool.fetchval("SELECT 1")
        for call in (lambda: pool.fetchval("SELECT 1"), lambda: pool.transact(None)):
            before = proxy.refused
            with pytest.raises(BackendUnavailableError):
                await call()
            assert proxy.refused == before + 1

    async def test_each_waits_as_long_as_it_was_told(self, make_pool):
        pool = make_pool(pool_size=1, acquire_timeout=0.1)
        await pool.open()
        async with pool.transaction():
            first = asyncio.create_task(pool.fetchval("SELECT 1"))
            await asyncio.sleep(0.05)
            second = asyncio.create_task(pool.fetchval("SELECT 2"))
            await asyncio.wait([first])
            assert not second.done()
        assert isinstance(first.exception(), BackendUnavailableError)
        assert await second == 2

    async def test_who_waits_longest_is_served_first(self, make_pool):
        pool = make_pool(pool_size=1)
        await pool.open()
        order = []

        async def call(number):
            order.append(await pool.fetchval("SELECT $1::integer", number))

        async with pool.transaction():
            tasks = [asyncio.create_task(call(number)) for number in range(5)]
            await asyncio.sleep(0)
        await asyncio.gather(*tasks)
        assert order == [0, 1, 2, 3, 4]

    async def test_who_gives_up_waiting_takes_nothing_along(self, make_pool):
        pool = make_pool(pool_size=1)
        await pool.open()
        for hurried in (False, True):
            async with pool.transaction():
                tasks = [asyncio.create_task(pool.fetchval("SELECT 1")) for _ in range(4)]
                await asyncio.sleep(0)
                if not hurried:
                    tasks[0].cancel()
            # Hurried: cancelled after the connection was handed on, before the task ran.
            tasks[0].cancel()
            done = await asyncio.gather(*tasks, return_exceptions=True)
            assert isinstance(done[0], asyncio.CancelledError)
            assert done[1:] == [1, 1, 1]
        assert await pool.fetchval("SELECT 1") == 1

    @pytest.mark.slow
    async def test_a_command_that_takes_too_long_is_unavailable(self, make_pool):
        pool = make_pool(pool_size=1, command_timeout=0.2)
        with pytest.raises(BackendUnavailableError, match="no answer in time"):
            await pool.fetchval("SELECT pg_sleep(30)")
        assert await pool.fetchval("SELECT 1") == 1

    @pytest.mark.slow
    async def test_cancelled_calls_leave_the_pool_whole(self, make_pool, url, schema, until):
        pool = make_pool(marked(url, schema), pool_size=3)
        await pool.open()
        chance = random.Random(7)

        async def sleep_in_a_transaction():
            async with pool.transaction() as connection:
                await connection.execute(pool.sql(ADD), b"never")
                await connection.execute("SELECT pg_sleep(30)")

        for _ in range(30):
            calls = (pool.fetchval("SELECT pg_sleep(30)"), sleep_in_a_transaction())
            tasks = [asyncio.create_task(call) for call in calls]
            for _ in range(chance.randrange(12)):
                await asyncio.sleep(0.0005)
            for task in tasks:
                task.cancel()
            done = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(each, asyncio.CancelledError) for each in done)
        assert await asyncio.gather(*(pool.fetchval(THREADS) for _ in range(9))) == [0] * 9

        async def few():
            return await connections(url, schema) <= 3

        await until(few)

    async def test_a_cancelled_statement_is_over(self, pool):
        await pool.open()
        task = asyncio.create_task(pool.execute("SELECT pg_sleep(31)"))
        await asyncio.sleep(0.05)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        running = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query = $1"
        assert await pool.fetchval(running, "SELECT pg_sleep(31)") == 0


class TestClosing:
    async def test_one_never_opened_can_be_closed(self):
        await PostgreSQLPool("agent").close()

    async def test_running_calls_end_and_waiting_ones_are_refused(self, make_pool):
        pool = make_pool(pool_size=1)
        await pool.open()
        entered, leave = asyncio.Event(), asyncio.Event()

        async def work():
            async with pool.transaction() as connection:
                entered.set()
                await leave.wait()
                return await connection.fetchval("SELECT 1")

        working = asyncio.create_task(work())
        await entered.wait()
        waiting = asyncio.create_task(pool.fetchval("SELECT 2"))
        await asyncio.sleep(0)
        closing = asyncio.create_task(pool.close())
        with pytest.raises(BackendClosedError):
            await waiting
        assert not closing.done()
        leave.set()
        assert await working == 1
        await closing

    async def test_whoever_stops_waiting_for_the_end_leaves_no_connection(
        self, make_pool, url, schema, until
    ):
        pool = make_pool(marked(url, schema), pool_size=2)
        await pool.open()
        entered, leave = asyncio.Event(), asyncio.Event()

        async def work():
            async with pool.transaction():
                entered.set()
                await leave.wait()

        working = asyncio.create_task(work())
        await entered.wait()
        closing = asyncio.create_task(pool.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing

        async def gone():
            return await connections(url, schema) == 0

        await until(gone)
        leave.set()
        with pytest.raises(BackendClosedError):
            await working

    async def test_one_that_is_closed_while_it_opens_keeps_no_connection(
        self, make_pool, url, schema, until
    ):
        pool = make_pool(marked(url, schema))
        opening = asyncio.create_task(pool.open())
        await asyncio.sleep(0)
        await pool.close()
        with pytest.raises(BackendClosedError):
            await opening

        async def gone():
            return await connections(url, schema) == 0

        await until(gone)

    async def test_a_connection_that_opens_meanwhile_is_refused(self, make_pool):
        pool = make_pool(pool_size=2)
        await pool.open()
        entered, leave = asyncio.Event(), asyncio.Event()

        async def work():
            async with pool.transaction():
                entered.set()
                await leave.wait()

        working = asyncio.create_task(work())
        await entered.wait()
        opening = asyncio.create_task(pool.fetchval("SELECT 1"))
        await asyncio.sleep(0)
        closing = asyncio.create_task(pool.close())
        with pytest.raises(BackendClosedError):
            await opening
        leave.set()
        await asyncio.gather(working, closing)


class TestLoops:
    @pytest.mark.slow
    def test_a_loop_that_was_closed_is_forgotten(self, url, schema):
        pool = PostgreSQLPool(url, schema=schema)
        for _ in range(3):
            loop = asyncio.new_event_loop()
            loop.run_until_complete(pool.open())
            loop.close()
            del loop
        asyncio.run(pool.open())
        assert len(pool._loop_pools._held()) == 1
        asyncio.run(pool.close())
        gc.collect()

    async def test_opening_connects_in_every_loop(self, proxy, schema):
        pool = PostgreSQLPool(proxy.url, schema=schema)
        await pool.open()
        proxy.refusing = True

        def elsewhere():
            for _ in range(2):
                with pytest.raises(BackendUnavailableError):
                    asyncio.run(pool.open())

        await asyncio.to_thread(elsewhere)
        proxy.refusing = False
        await asyncio.to_thread(asyncio.run, pool.open())
        await pool.close()

    async def test_closing_reaches_the_connections_of_other_loops(
        self, make_pool, url, schema, until
    ):
        pool = make_pool(marked(url, schema), pool_size=2)
        resting = asyncio.new_event_loop()
        await asyncio.to_thread(resting.run_until_complete, pool.open())
        opened, leave = asyncio.Event(), threading.Event()
        here = asyncio.get_running_loop()

        async def elsewhere():
            await pool.open()
            here.call_soon_threadsafe(opened.set)
            await asyncio.to_thread(leave.wait, 60)

        async def gone():
            return await connections(url, schema) == 0

        running = asyncio.create_task(asyncio.to_thread(asyncio.run, elsewhere()))
        try:
            await opened.wait()
            await pool.open()
            assert len(pool._loop_pools._held()) == 3
            assert await connections(url, schema) > 0
            await pool.close()
            await until(gone)
        finally:
            leave.set()
            await running
            resting.close()

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "end",
        [
            # Good order.
            "asyncio.run(pending())",
            # A loop that is closed as it is, with calls in all stages.
            """
loop = asyncio.new_event_loop()
tasks = loop.run_until_complete(pending())
for task in tasks:
    task._log_destroy_pending = False
loop.close()
del task, tasks, loop
""",
        ],
    )
    def test_a_loop_may_end_with_work_pending(self, run_python, url, schema, end):
        script = f"""
import asyncio, gc, sys
from locus_memory.backends.postgresql.connection.connection import PostgreSQLPool
pool = PostgreSQLPool(sys.argv[1], schema=sys.argv[2], pool_size=3)

async def block():
    async with pool.transaction() as connection:
        await connection.execute("SELECT pg_sleep(30)")

async def pending():
    await pool.open()
    calls = [block(), *(pool.fetchval("SELECT pg_sleep(30)") for _ in range(6))]
    tasks = [asyncio.ensure_future(call) for call in calls]
    # The driver reports a loop that is closed while it connects.
    while len(pool._loop_pools.here()._connections) < 3:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)
    return tasks

{end}
gc.collect()
assert asyncio.run(pool.fetchval("SELECT 1")) == 1
asyncio.run(pool.close())
gc.collect()
"""
        done = run_python(script, url, schema)
        assert (done.returncode, done.stderr) == (0, "")

    @pytest.mark.slow
    def test_a_child_of_a_fork_has_connections_of_its_own(self, run_python, url, schema):
        script = """
import asyncio, os, sys, warnings
from locus_memory.backends.postgresql.connection.connection import PostgreSQLPool
pool = PostgreSQLPool(sys.argv[1], schema=sys.argv[2], pool_size=2)
who = "SELECT pg_backend_pid()"

async def parent():
    theirs = await pool.fetchval(who)
    child = os.fork()
    if child == 0:
        # As multiprocessing does: a new loop, in a process that ends without a word.
        asyncio.events._set_running_loop(None)
        ours = asyncio.run(pool.fetchval(who))
        asyncio.run(pool.close())
        os._exit(7 if ours != theirs else 8)
    _, status = await asyncio.to_thread(os.waitpid, child, 0)
    assert os.waitstatus_to_exitcode(status) == 7, status
    assert await pool.fetchval(who) == theirs
    await pool.close()

asyncio.run(parent())
"""
        done = run_python(script, url, schema)
        assert (done.returncode, done.stderr) == (0, "")


class TestBorrowing:
    async def test_the_callers_pool_is_used_and_left_open(self, url, schema):
        async with asyncpg.create_pool(url, min_size=0, max_size=2) as theirs:
            pool = PostgreSQLPool(pool=theirs, schema=schema)
            await asyncio.gather(*(pool.execute(ADD, bytes([n])) for n in range(5)))
            async with pool.transaction() as connection:
                assert await connection.fetchval(pool.sql(THREADS)) == 5
            assert theirs.get_size() > 0
            await pool.close()
            assert await theirs.fetchval("SELECT 1") == 1

    async def test_a_cancelled_call_leaves_it_whole(self, url, schema):
        async with asyncpg.create_pool(url, min_size=0, max_size=1) as theirs:
            pool = PostgreSQLPool(pool=theirs, schema=schema)
            await pool.open()
            for _ in range(5):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(pool.fetchval("SELECT pg_sleep(30)"), 0.02)
                assert await pool.fetchval("SELECT 1") == 1

    async def test_a_connection_that_is_lost_is_replaced(self, url, schema):
        async with asyncpg.create_pool(url, min_size=0, max_size=1) as theirs:
            pool = PostgreSQLPool(pool=theirs, schema=schema)
            with pytest.raises(BackendUnavailableError):
                await pool.fetchval("SELECT pg_terminate_backend(pg_backend_pid())")
            assert await pool.fetchval("SELECT 1") == 1

    async def test_it_waits_no_longer_than_it_was_told(self, url, schema):
        async with asyncpg.create_pool(url, min_size=0, max_size=1) as theirs:
            pool = PostgreSQLPool(pool=theirs, schema=schema, acquire_timeout=0.05)
            async with theirs.acquire():
                with pytest.raises(BackendUnavailableError):
                    await pool.fetchval("SELECT 1")

    async def test_another_loop_is_told(self, url, schema):
        async with asyncpg.create_pool(url, min_size=0, max_size=1) as theirs:
            pool = PostgreSQLPool(pool=theirs, schema=schema)

            def elsewhere():
                with pytest.raises(ConfigurationError, match="another event loop"):
                    asyncio.run(pool.open())

            await asyncio.to_thread(elsewhere)
            await pool.open()

    async def test_a_closed_one_is_closed(self, url, schema):
        async with asyncpg.create_pool(url, min_size=0, max_size=1) as theirs:
            pool = PostgreSQLPool(pool=theirs, schema=schema)
            await pool.open()
        with pytest.raises(BackendClosedError, match="pool is clos"):
            await pool.fetchval("SELECT 1")

    async def test_the_callers_codecs_do_not_matter(self, url, schema):
        async def init(connection):
            for name in ("json", "jsonb"):
                await connection.set_type_codec(
                    name, encoder=json.dumps, decoder=json.loads, schema="pg_catalog"
                )

        async with asyncpg.create_pool(url, min_size=0, max_size=2, init=init) as theirs:
            pool = PostgreSQLPool(pool=theirs, schema=schema)
            assert await pool.fetchval("SELECT '{\"a\": 1}'::json::text") == '{"a": 1}'


class TestPooler:
    async def test_no_prepared_statement_and_no_setting_is_left(self, make_pool):
        kept = "SELECT count(*) FROM pg_prepared_statements WHERE from_sql = false"
        settings = "SELECT name FROM pg_settings WHERE source = 'session'"
        for pooler in (True, False):
            pool = make_pool(pool_size=1, pooler=pooler)
            for _ in range(3):
                await pool.fetchval("SELECT $1::text", "a")
            async with pool.transaction() as connection:
                assert (await connection.fetchval(kept) == 0) is pooler
            assert await pool.fetch(settings) == []


class TestErrors:
    def test_every_state_of_the_server_is_ours(self):
        # Class 01 is warnings, class 02 is no data: nobody raises them.
        states = [state for state in asyncpg.PostgresError._message_map if state[:2] > "02"]
        assert len(states) > 200
        for state in states:
            error = asyncpg.PostgresError.new({"C": state, "M": "words", "D": "the value"})
            described = translate(error, "postgresql")
            assert isinstance(described, BackendError | ConfigurationError), state
            assert "the value" not in str(described)

    def test_every_error_of_the_driver_is_ours(self):
        classes = [
            each
            for each in vars(asyncpg.exceptions).values()
            if isinstance(each, type)
            and issubclass(each, Exception)
            and not issubclass(each, Warning)
        ]
        assert len(classes) > 200
        for each in classes:
            assert isinstance(translate(each("words"), "postgresql"), LocusMemoryError), each

    @pytest.mark.parametrize(
        ("state", "kind"),
        [
            ("08006", BackendUnavailableError),
            ("53300", BackendUnavailableError),
            ("57P01", BackendUnavailableError),
            ("57P02", BackendUnavailableError),
            ("57P03", BackendUnavailableError),
            ("57014", BackendUnavailableError),
            ("40001", BackendUnavailableError),
            ("28P01", ConfigurationError),
            ("28000", ConfigurationError),
            ("3D000", ConfigurationError),
            ("25006", BackendWriteError),
            ("53100", BackendWriteError),
            ("42501", BackendError),
            ("XX001", BackendCorruptError),
            ("42601", BackendError),
            ("99999", BackendError),
        ],
    )
    def test_states_mean_what_they_say(self, state, kind):
        error = asyncpg.PostgresError.new({"C": state, "M": "words"})
        assert type(translate(error, "postgresql db")) is kind
        assert str(translate(error, "postgresql db")).startswith("postgresql db: words")

    def test_a_pooler_that_was_not_mentioned_is(self):
        for state in ("26000", "42P05"):
            error = asyncpg.PostgresError.new({"C": state, "M": "words"})
            assert "pass pooler=True" in str(translate(error, "postgresql"))

    def test_the_network_and_certificates(self):
        for error in (ConnectionRefusedError(111, "refused"), TimeoutError(), ssl.SSLError("x")):
            assert type(translate(error, "postgresql")) is BackendUnavailableError
        refused = ssl.SSLCertVerificationError("x")
        refused.verify_message = "self-signed certificate"
        assert type(translate(refused, "postgresql")) is ConfigurationError

    def test_what_is_not_the_drivers_stays_as_it_is(self):
        for error in (LookupError(), asyncio.CancelledError(), BackendWriteError("x")):
            assert translate(error, "postgresql") is error

    async def test_a_database_that_is_not_there(self, url):
        with pytest.raises(ConfigurationError, match='database "nowhere" does not exist'):
            await PostgreSQLPool(url.replace("/postgres", "/nowhere")).open()

    async def test_a_read_only_session_is_a_write_error(self, url, pool, make_pool):
        await pool.open()
        reader = make_pool(f"{url}?default_transaction_read_only=on")
        assert await reader.fetchval(THREADS) == 0
        with pytest.raises(BackendWriteError, match="read-only"):
            await reader.execute(ADD, b"1")


async def test_no_two_connections_name_their_statements_alike(pool):
    """Else, behind a pooler that nobody mentioned, one's name may be another's statement."""
    names = "SELECT array_agg(name) FROM pg_prepared_statements"

    async def prepared():
        async with pool.transaction() as connection:
            await connection.fetchval("SELECT 1")
            return set(await connection.fetchval(names))

    first, second = await asyncio.gather(prepared(), prepared())
    assert first
    assert not first & second


def test_a_full_disk_says_what_helps():
    error = asyncpg.PostgresError.new({"C": "53100", "M": "could not extend file: disk full"})
    described = translate(error, "postgresql db")
    assert type(described) is BackendWriteError
    assert str(described).endswith("; deleting may need room as well: make some on the disk first")
