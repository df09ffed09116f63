"""What only checkpoints in PostgreSQL can do wrong."""

from __future__ import annotations

import asyncio
import random
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest

from locus_memory.backends.postgresql.backend import PostgreSQLBackend
from locus_memory.backends.postgresql.checkpoints import (
    PostgreSQLCheckpointer,
    PostgreSQLDeltaStorage,
)
from locus_memory.backends.postgresql.connection.connection import PostgreSQLPool
from locus_memory.backends.postgresql.records import APPEND, to_row
from locus_memory.backends.record_rows import digest_of
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.checkpoint.storage import StaleChainError
from locus_memory.errors import (
    BackendClosedError,
    CheckpointConflictError,
    CheckpointCorruptError,
)
from locus_memory.events import subscribe
from locus_memory.testing.servers import PostgreSQLServer


@pytest.fixture
def checkpointer(pool):
    return PostgreSQLCheckpointer(pool=pool, state_type=None)


@pytest.fixture
def storage(pool):
    return PostgreSQLDeltaStorage(pool=pool)


@pytest.fixture
async def other(pool, url):
    """A connection beside the pool, which may hold locks."""
    await pool.open()
    connection = await asyncpg.connect(url)
    yield connection
    await connection.close()


def record(revision, base=None, *, name=None, thread="t"):
    head = RecordHead(
        thread_id=thread,
        checkpoint_id=name or f"c{revision}",
        revision=revision,
        base=base,
        level=0,
        sequence=0,
        created_at=1.5,
        metadata={},
        size=0,
        stored_size=0,
    )
    return Record.pack(b'{"n": 1}', head, 6)


async def names(storage, thread="t"):
    return [head.checkpoint_id for head in await storage.list_checkpoints(thread, None)]


def noise(seed):
    return {"text": random.Random(seed).randbytes(100_000).hex()}


class TestNames:
    @pytest.mark.slow
    async def test_a_uuid_and_a_name_of_that_digest_are_two(self, checkpointer, storage):
        uuid = str(UUID(bytes=digest_of("name")))
        for name in ("name", uuid, uuid.upper()):
            await checkpointer.save({"is": name}, "t", name)
        for name in ("name", uuid, uuid.upper()):
            assert await checkpointer.load("t", name) == {"is": name}
            assert (await storage.find("t", name)).checkpoint_id == name
        assert await names(storage) == [uuid.upper(), uuid, "name"]
        assert await checkpointer.delete("t", uuid)
        assert await names(storage) == [uuid.upper(), "name"]

    async def test_order_is_by_code_point_beyond_what_the_index_holds(self, checkpointer):
        stem = "é" * 499
        threads = sorted(
            [stem, *(stem + last for last in ("", "a", "aa", "ab", "\U0001f600", "é"))]
        )
        for thread in threads:
            await checkpointer.save({}, thread)
        expected = sorted(set(threads))
        assert await checkpointer.list_threads() == expected
        listed, after = [], None
        while page := await checkpointer.list_threads(2, after=after):
            listed += page
            after = page[-1]
        assert listed == expected
        assert await checkpointer.list_threads(prefix=stem + "a") == expected[1:4]

    async def test_names_are_compared_as_bytes_whatever_the_collation(self, pool):
        collations = """
            SELECT attname, collname FROM pg_attribute AS a JOIN pg_collation AS c
            ON c.oid = a.attcollation WHERE attrelid = ANY ($1::text[]::regclass[])
            AND attname IN ('thread_id', 'checkpoint_id')
        """
        tables = [pool.sql("{threads}"), pool.sql("{checkpoints}")]
        found = {tuple(row) for row in await pool.fetch(collations, tables)}
        assert found == {("thread_id", "C"), ("checkpoint_id", "C")}


class TestStatements:
    @pytest.fixture
    def statements(self, pool, monkeypatch):
        """What is sent, one entry a statement or transaction."""
        sent = []
        call, transact = pool._call, pool.transact

        async def counted(verb, template, arguments):
            sent.append(template)
            return await call(verb, template, arguments)

        async def counted_too(work):
            sent.append("BEGIN")
            return await transact(work)

        monkeypatch.setattr(pool, "_call", counted)
        monkeypatch.setattr(pool, "transact", counted_too)
        return sent

    async def test_a_save_is_one_and_a_load_is_one(self, pool, checkpointer, statements):
        await checkpointer.save({"n": 0}, "t")
        # The tip of a thread that is new to this process is read once.
        assert len(statements) == 2
        newest = None
        for number in range(1, 80):
            statements.clear()
            options = {"expected_parent": newest} if newest else {}
            newest = await checkpointer.save({"n": number}, "t", **options)
            assert len(statements) == 1
            assert statements[0] != "BEGIN"
        statements.clear()
        fresh = PostgreSQLCheckpointer(pool=pool, state_type=None)
        assert await fresh.load("t") == {"n": 79}
        assert len(statements) == 1
        statements.clear()
        await checkpointer.copy_thread("t", "copy")
        # One to know that there is something to copy.
        assert len(statements) == 2
        assert await fresh.load("copy") == {"n": 79}

    async def test_more_revisions_than_a_statement_has_parameters(self, storage):
        await storage.store(record(7))
        await storage.store(record(8))
        assert await storage.delete("t", range(2, 40_000, 5)) == 1
        assert await names(storage) == ["c8"]

    async def test_a_removed_thread_leaves_no_row(self, pool, checkpointer):
        for thread in ("a", "b"):
            for number in range(3):
                await checkpointer.save({"n": number}, thread, f"c{number}")
        assert await checkpointer.delete("a")
        for number in range(3):
            assert await checkpointer.delete("b", f"c{number}")
        for table in ("{threads}", "{checkpoints}"):
            assert await pool.fetchval(f"SELECT count(*) FROM {table}") == 0


class TestCrowds:
    """Many saves at the same moment."""

    @pytest.mark.slow
    async def test_those_that_wait_when_it_is_closed_are_told(self, url, schema):
        checkpointer = PostgreSQLCheckpointer(url, schema=schema, state_type=None)
        await checkpointer.open()
        saves = [checkpointer.save({"n": 1}, f"t{number}") for number in range(200)]
        saving = asyncio.gather(*saves, return_exceptions=True)
        while not await checkpointer.list_threads():
            pass
        await checkpointer.close()
        done = await saving
        refused = [each for each in done if not isinstance(each, str)]
        assert {type(each) for each in refused} <= {BackendClosedError}


class TestRaces:
    async def blocked(self, other):
        query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        return await other.fetchval(query) > 0

    async def lock(self, pool, other, then):
        await other.execute("BEGIN")
        await other.execute(pool.sql("UPDATE {threads} SET removals = removals"))
        await other.execute(pool.sql(then))

    async def test_a_base_that_goes_while_a_save_waits(self, pool, storage, other, until):
        await storage.store(record(1))
        await storage.store(record(2))
        await self.lock(pool, other, "DELETE FROM {checkpoints} WHERE revision = 1")
        await other.execute(pool.sql("UPDATE {threads} SET removals = removals + 1"))
        saving = asyncio.create_task(storage.store(record(3, base=1)))
        await until(lambda: self.blocked(other))
        await other.execute("COMMIT")
        with pytest.raises(StaleChainError):
            await saving
        assert await names(storage) == ["c2"]

    async def test_a_thread_that_goes_while_a_save_waits(self, pool, storage, other, until):
        await storage.store(record(1))
        await self.lock(pool, other, "DELETE FROM {checkpoints}")
        await other.execute(pool.sql("DELETE FROM {threads}"))
        saves = (storage.store(record(2, base=1)), storage.store(record(3)))
        saving = asyncio.gather(*saves, return_exceptions=True)
        await until(lambda: self.blocked(other))
        await other.execute("COMMIT")
        stale, _ = await saving
        assert isinstance(stale, StaleChainError)
        assert await names(storage) == ["c3"]

    async def test_a_parent_that_is_overtaken_while_a_save_waits(self, pool, storage, other, until):
        await storage.store(record(1))
        await other.execute("BEGIN")
        first = (digest_of("t"), *to_row(record(2)).values(), True, None)
        assert await other.fetchval(pool.sql(APPEND), *first)
        saving = asyncio.create_task(storage.store(record(3), expected_parent="c1"))
        await until(lambda: self.blocked(other))
        await other.execute("COMMIT")
        with pytest.raises(CheckpointConflictError) as caught:
            await saving
        assert caught.value.actual == "c2"
        assert await names(storage) == ["c2", "c1"]

    async def test_two_saves_of_one_name_at_once(self, pool, storage, other, until):
        await storage.store(record(1))
        await self.lock(pool, other, "SELECT 1")
        saves = [storage.store(record(number, base=1, name="same")) for number in (2, 3)]
        saving = asyncio.gather(*saves)
        await until(lambda: self.blocked(other))
        await other.execute("COMMIT")
        await saving
        assert await names(storage) == ["same", "c1"]

    @pytest.mark.slow
    async def test_processes_that_save_one_thread_lose_nothing(self, url, schema, checkpointer):
        script = """
import asyncio, sys
from locus_memory.backends.postgresql.checkpoints import PostgreSQLCheckpointer
from locus_memory.errors import CheckpointConflictError

async def main():
    won = 0
    async with PostgreSQLCheckpointer(sys.argv[1], schema=sys.argv[2], state_type=None) as saver:
        for number in range(40):
            await saver.save({"by": sys.argv[3], "n": number}, "t", sys.argv[3] + str(number))
            try:
                await saver.save({"n": number}, "race", expected_parent=number and f"r{number-1}"
                    or None, checkpoint_id=f"r{number}")
                won += 1
            except CheckpointConflictError:
                while not await saver.exists("race", f"r{number}"):
                    pass
    print(won)

asyncio.run(main())
"""
        processes = [
            await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", script, url, schema, str(number)),
                stdout=asyncio.subprocess.PIPE,
            )
            for number in range(4)
        ]
        outputs = await asyncio.gather(*(process.communicate() for process in processes))
        assert sum(int(out) for out, _ in outputs) == 40
        expected = [f"r{number}" for number in reversed(range(40))]
        assert await checkpointer.list_checkpoints("race", 100) == expected
        assert len(await checkpointer.list_checkpoints("t", 1000)) == 160
        for by in range(4):
            for number in range(40):
                state = {"by": str(by), "n": number}
                assert await checkpointer.load("t", f"{by}{number}") == state


class TestDamage:
    @pytest.mark.parametrize(
        "change",
        [
            "revision = revision + 1",
            "base = 77",
            "level = level + 1",
            "created_at = created_at + 1",
            "metadata = '{\"step\": 2}'",
            "metadata = '[]'",
            "size = size + 1",
            "seal = seal + 1",
            "checkpoint_id = 'other'",
            "checkpoint_id = E'\\x02'",
        ],
    )
    async def test_a_damaged_head_is_never_told_as_true(self, pool, checkpointer, change):
        await checkpointer.save({"n": 1}, "t", "c0", {"step": 1})
        await checkpointer.save({"n": 1}, "sound", "c0", {"step": 1})
        thread = "(SELECT id FROM {threads} WHERE thread_id = 't')"
        await pool.execute(f"UPDATE {{checkpoints}} SET {change} WHERE thread = {thread}")
        for call in (
            checkpointer.load("t"),
            checkpointer.get_metadata("t", "c0"),
            checkpointer.list_with_metadata("t"),
        ):
            with pytest.raises(CheckpointCorruptError, match="'t'"):
                await call
        await checkpointer.save({"n": 2}, "t")
        assert await checkpointer.load("t") == {"n": 2}
        assert await checkpointer.get_metadata("sound", "c0") == {"step": 1}
        assert await checkpointer.delete("t")
        assert await checkpointer.list_threads() == ["sound"]

    async def test_a_damaged_payload_is_named(self, pool, checkpointer):
        await checkpointer.save({"n": 1}, "t", "c0")
        for value in ("'\\x'", "'\\x01'", "payload || '\\x00'", "'\\xff'::bytea || payload"):
            await pool.execute(f"UPDATE {{checkpoints}} SET payload = {value}")
            with pytest.raises(CheckpointCorruptError, match="'c0' of thread 't'"):
                await checkpointer.load("t")

    @pytest.mark.parametrize("base", ["revision", "3", "77"])
    async def test_links_in_a_circle_or_to_nothing(self, pool, storage, base):
        await storage.store(record(1))
        await storage.store(record(2, base=1))
        await storage.store(record(3, base=2))
        rows = await pool.fetch("SELECT revision FROM {checkpoints} ORDER BY sequence")
        assert [row[0] for row in rows] == [1, 2, 3]
        bad = replace(record(1), base=1 if base == "revision" else int(base))
        update = "UPDATE {checkpoints} SET base = $1, seal = $2 WHERE revision = 1"
        await pool.execute(update, bad.base, bad.seal())
        with pytest.raises(CheckpointCorruptError, match="'c1'"):
            await storage.retrieve_chain("t")

    @pytest.mark.parametrize("name", ["E'\\x02\\x09'", "E'\\x02'"])
    async def test_a_damaged_name_of_a_thread_is_named(self, pool, checkpointer, name):
        await checkpointer.save({"n": 1}, "t", "c0")
        await pool.execute(f"UPDATE {{threads}} SET thread_id = {name}")
        with pytest.raises(CheckpointCorruptError, match="its name is damaged"):
            await checkpointer.list_threads()


class TestMetadata:
    async def test_numbers_come_back_as_they_were(self, checkpointer):
        numbers = {"a": [1.0, -0.0, 1e22, 1.5e300, 5e-324, 2**63 - 1, -(2**63), 0.1, 1e16]}
        await checkpointer.save({}, "t", metadata=numbers)
        assert repr(await checkpointer.get_metadata("t")) == repr(numbers)
        assert len(await checkpointer.query_by_metadata({"a.2": 1e22})) == 1

    async def test_it_is_one_statement_that_no_value_is_spliced_into(self, pool, checkpointer):
        await checkpointer.save({}, "t", metadata={"a'b": "'; DROP TABLE x; --", "{threads}": 1})
        hostile = {"a'b": "'; DROP TABLE x; --", "{threads}": {"$gte": 1}}
        fill, statements = pool.sql, []
        pool.sql = lambda template: statements.append(fill(template)) or statements[-1]
        assert len(await checkpointer.query_by_metadata(hostile)) == 1
        assert len(statements) == 1
        assert "DROP" not in statements[0]


class TestReclaiming:
    @pytest.fixture
    async def own_pool(self):
        """Of a server where nobody else still reads what was removed."""
        with PostgreSQLServer() as server:
            async with PostgreSQLPool(server.url) as pool:
                yield pool

    @pytest.mark.slow
    async def test_vacuum_makes_room(self, own_pool):
        checkpointer, pool = PostgreSQLCheckpointer(pool=own_pool, state_type=None), own_pool
        for number in range(30):
            await checkpointer.save(noise(number), "t")
        size = "SELECT pg_total_relation_size($1::text::regclass)"
        before = await pool.fetchval(size, pool.sql("{checkpoints}"))
        assert await checkpointer.prune("t", keep_last=1) == 29
        await checkpointer.vacuum(0)
        for number in range(30, 50):
            await checkpointer.save(noise(number), "t")
        # The room of what was removed is used again.
        assert await pool.fetchval(size, pool.sql("{checkpoints}")) < before * 1.1
        assert await checkpointer.load("t") == noise(49)

    @pytest.mark.slow
    @pytest.mark.usefixtures("own_tables")
    async def test_a_role_that_may_not_vacuum_is_told_nothing(
        self, postgresql_server, pool, make_pool, schema
    ):
        await pool.open()
        postgresql_server.run(f"CREATE ROLE {schema}_guest LOGIN")
        postgresql_server.run(f"GRANT USAGE ON SCHEMA {schema} TO {schema}_guest")
        grant = "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA"
        postgresql_server.run(f"{grant} {schema} TO {schema}_guest")
        sequences = f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {schema}_guest"
        postgresql_server.run(sequences)
        guest = make_pool(postgresql_server.url.replace("locus@", f"{schema}_guest@"))
        checkpointer = PostgreSQLCheckpointer(pool=guest, state_type=None)
        await checkpointer.save({"n": 1}, "t")
        assert await checkpointer.copy_thread("t", "copy") == 1
        assert await checkpointer.vacuum(0) == 0

    @pytest.mark.slow
    async def test_where_it_must_not_wait_for_others_it_is_an_event(self, pool, make_pool, other):
        events = []
        stop = subscribe(lambda event: events.append(event.name))
        hasty = make_pool(command_timeout=0.3)
        async with other.transaction():
            await other.execute(pool.sql("LOCK TABLE {checkpoints} IN EXCLUSIVE MODE"))
            assert await PostgreSQLCheckpointer(pool=hasty).vacuum(0) == 0
        stop()
        assert events == ["postgresql.not_vacuumed"]


class TestOwnership:
    async def test_a_shared_pool_is_not_closed(self, pool):
        async with PostgreSQLCheckpointer(pool=pool) as checkpointer:
            await checkpointer.save({}, "t")
        assert await pool.fetchval("SELECT 1") == 1


class TestBackend:
    @pytest.mark.parametrize("shared", [False, True])
    async def test_both_contracts_over_one_pool(self, url, schema, shared, pool):
        options = {"pool": pool} if shared else {"database": url, "schema": schema}
        async with PostgreSQLBackend(
            **options,
            store_options={"exact_below": 7},
            checkpointer_options={"state_type": None},
        ) as backend:
            await backend.store.put(("a",), "k", 1)
            await backend.checkpointer.save({"n": 1}, "t")
            assert backend.store._connection is backend.checkpointer.storage._connection
            assert len(backend.store._connection._loop_pools._held()) == 1
            for part in (backend.store, backend.checkpointer):
                await part.close()
            assert await backend.store.get(("a",), "k") == 1
            assert await backend.checkpointer.load("t") == {"n": 1}
        if shared:
            assert await pool.fetchval("SELECT 1") == 1
        else:
            with pytest.raises(BackendClosedError):
                await backend.store.get(("a",), "k")


class Pooler:
    """PgBouncer in transaction mode, between the tests and their server."""

    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")

    def __init__(self, server, folder, port):
        self.folder, self.port = folder, port
        self.settings = f"""
[databases]
postgres = host=127.0.0.1 port={server.port} dbname=postgres user=locus
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
logfile = {folder}/log
"""

    def start(self):
        path = self.folder / "pgbouncer.ini"
        path.write_text(self.settings)
        user = None
        if path.owner() == "root":
            user = 65534
            shutil.chown(self.folder, user, user)
        self.process = subprocess.Popen(
            [self.program, "-q", path], user=user, group=user, stderr=subprocess.DEVNULL
        )

    def stop(self):
        self.process.terminate()
        self.process.wait()


class TestBehindPgBouncer:
    @pytest.fixture
    async def bouncer(self, postgresql_server, unused_tcp_port, until):
        if Pooler.program is None:
            pytest.skip("pgbouncer is not installed")
        # Not in tmp_path, which only its owner may enter.
        folder = Path(tempfile.mkdtemp(prefix="locus-pgbouncer-"))
        pooler = Pooler(postgresql_server, folder, unused_tcp_port)
        pooler.start()
        url = postgresql_server.url.replace(str(postgresql_server.port), str(pooler.port))

        async def answers():
            try:
                connection = await asyncpg.connect(url, statement_cache_size=0)
            except OSError:
                return False
            await connection.close()
            return True

        await until(answers)
        yield url
        pooler.stop()
        shutil.rmtree(folder)

    @pytest.mark.slow
    async def test_twenty_tasks_over_two_connections(self, bouncer, schema):
        async with PostgreSQLPool(bouncer, schema=schema, pooler=True, pool_size=20) as pool:
            checkpointer = PostgreSQLCheckpointer(pool=pool, state_type=None)

            async def work(number):
                thread = f"t{number % 7}"
                for index in range(20):
                    state = {"by": number, "index": index}
                    name = await checkpointer.save(state, thread)
                    assert await checkpointer.load(thread, name) == state
                    if index % 5 == 4:
                        await checkpointer.prune(thread, keep_last=50)

            await asyncio.gather(*(work(number) for number in range(20)))
            assert len(await checkpointer.list_threads()) == 7
            await checkpointer.vacuum(0)

    @pytest.mark.slow
    async def test_cancelled_calls_are_survived(self, bouncer, schema):
        async with PostgreSQLPool(bouncer, schema=schema, pooler=True, pool_size=4) as pool:
            for _ in range(10):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(pool.fetchval("SELECT pg_sleep(30)"), 0.02)
                assert await pool.fetchval("SELECT 1") == 1
