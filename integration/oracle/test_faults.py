"""Faults between the driver of Oracle Database and its server: nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
import signal
import sys

import oracledb
import pytest
from oracledb import errors as driver

from locus_memory import OracleBackend, OracleCheckpointer, OracleStore
from locus_memory.backends.oracle.connection.opening import Opening
from locus_memory.errors import BackendUnavailableError, MissingDriverError
from locus_memory.testing.servers import OracleServer

PATIENCE = 120

WORKER = """
import asyncio, sys

from locus_memory import OracleBackend


async def main(url, name, count):
    async with OracleBackend(url, table_prefix="FOUR_") as backend:
        for number in range(int(count)):
            await backend.store.put(("counters",), "all", name)
            await backend.store.put(("own", name), f"{number:04}", number)
            await backend.checkpointer.save({"n": number}, "shared", f"{name}-{number}")
            print(number, flush=True)


asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def server():
    try:
        with OracleServer() as server:
            yield server
    except MissingDriverError as error:
        pytest.skip(str(error))


async def start(url, name, count):
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", WORKER, url, name, str(count)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def test_four_processes_lose_nothing(server):
    workers = [await start(server.url, f"w{n}", 10) for n in range(4)]
    done = await asyncio.wait_for(
        asyncio.gather(*(each.communicate() for each in workers)), PATIENCE
    )
    assert [errors.decode() for _, errors in done] == [""] * 4
    async with OracleBackend(server.url, table_prefix="FOUR_") as backend:
        counter = await backend.store.get_item(("counters",), "all")
        assert counter.version == 40
        assert len(await backend.checkpointer.list_checkpoints("shared", 100)) == 40
        for n in range(4):
            assert len(await backend.store.list_keys(("own", f"w{n}"))) == 10


async def test_connections_that_open_one_database_at_once_create_its_tables_once(server):
    async def opened(prefix, key):
        async with OracleBackend(server.url, table_prefix=prefix) as backend:
            await backend.store.put(("opened",), key, key)

    for prefix in (f"RACE{n}_" for n in range(8)):
        await asyncio.gather(*(opened(prefix, f"{n}") for n in range(4)))
        async with OracleBackend(server.url, table_prefix=prefix) as backend:
            assert await backend.store.list_keys(("opened",)) == ["0", "1", "2", "3"]


async def test_a_killed_client_leaves_what_it_acknowledged(server):
    worker = await start(server.url, "killed", 1_000)
    for _ in range(5):
        await asyncio.wait_for(worker.stdout.readline(), PATIENCE)
    worker.send_signal(signal.SIGKILL)
    rest, _ = await worker.communicate()
    acknowledged = 5 + rest.count(b"\n")
    async with OracleBackend(server.url, table_prefix="FOUR_") as backend:
        keys = await backend.store.list_keys(("own", "killed"), 2_000)
        assert acknowledged <= len(keys) <= acknowledged + 1
        found = await backend.checkpointer.list_checkpoints("shared", 2_000)
        saved = [each for each in found if each.startswith("killed-")]
        assert acknowledged <= len(saved) <= acknowledged + 1
        for each in saved:
            assert await backend.checkpointer.exists("shared", each)


async def test_a_killed_server_is_an_outage_and_loses_nothing(server):
    async with OracleStore(server.url, table_prefix="KILL_") as store:
        acknowledged = [await store.put(("a",), "k", number) for number in range(5)]
        server.kill()
        with pytest.raises(BackendUnavailableError):
            await store.put(("a",), "k", 5)
        with pytest.raises(BackendUnavailableError):
            await store.get(("a",), "k")
        server.start()
        item = await store.get_item(("a",), "k")
        assert (item.value, item.version) == (4, acknowledged[-1])
        assert await store.put(("a",), "k", 6) == item.version + 1


async def test_a_low_compatible_leaves_the_tokens_of_filters_in_a_blob(server, monkeypatch):
    """A database of 21c or later may be kept compatible with a release without the type JSON."""
    create = Opening._create

    async def created(self, connection, statement):
        if '"FIELDS" JSON' in statement:
            detail = driver._Error("ORA-00406: COMPATIBLE parameter needs to be 20.0.0", code=406)
            raise oracledb.DatabaseError(detail)
        await create(self, connection, statement)

    monkeypatch.setattr(Opening, "_create", created)
    for _ in range(2):
        async with OracleStore(server.url, table_prefix="COMPATIBLE_") as store:
            await store.put(("a",), "k", {"n": 1})
            assert not store._connection.features.native_json
            assert [item.key for item in await store.search(("a",), filter={"n": 1})] == ["k"]
            assert await store.search(("a",), filter={"n": 2}) == []
        monkeypatch.undo()


async def test_all_connections_busy_is_an_outage_that_passes(server):
    options = {"table_prefix": "BUSY_", "pool_size": 1, "acquire_timeout": 0.5}
    async with OracleStore(server.url, **options) as store:
        release = asyncio.Event()

        async def hold(_session):
            await release.wait()

        holder = asyncio.create_task(store._connection.transact(hold))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        with pytest.raises(BackendUnavailableError, match="1 connections are busy"):
            await store.get(("a",), "k")
        release.set()
        await holder
        assert await store.put(("a",), "k", 1) == 1


async def test_cancelled_calls_leave_the_pool_whole(server):
    async with OracleStore(server.url, table_prefix="CANCEL_", pool_size=2) as store:
        await store.put(("a",), "k", 0)
        for number in range(30):
            calls = [
                asyncio.create_task(store.put(("a",), "k", number)),
                asyncio.create_task(store.get(("a",), "k")),
                asyncio.create_task(store.search(("a",), "word")),
            ]
            await asyncio.sleep(0.001 * (number % 7))
            for each in calls:
                each.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
        item = await store.get_item(("a",), "k")
        assert await store.put(("a",), "k", "last") == item.version + 1
        values = await asyncio.gather(*(store.get(("a",), "k") for _ in range(6)))
        assert values == ["last"] * 6


async def test_a_call_that_waits_for_a_lock_can_be_cancelled(server):
    first = OracleStore(server.url, table_prefix="LOCK_")
    second = OracleStore(server.url, table_prefix="LOCK_", pool_size=1)
    async with first, second:
        await first.put(("a",), "k", 1)
        locked, release = asyncio.Event(), asyncio.Event()

        async def hold(session):
            await session.fetch('SELECT i."NAME" FROM {items} i FOR UPDATE', {})
            locked.set()
            await release.wait()

        holder = asyncio.create_task(first._connection.transact(hold))
        await locked.wait()
        waiting = asyncio.create_task(second.put(("a",), "k", 2))
        await asyncio.sleep(0.3)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        release.set()
        await holder
        # Its connection was closed, and another one takes its place.
        assert (await second.get_item(("a",), "k")).value in (1, 2)


async def test_a_cut_connection_is_replaced(server):
    async with OracleCheckpointer(server.url, table_prefix="CUT_", state_type=None) as saver:
        await saver.save({"n": 1}, "t", "one")
        server.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        assert await saver.load("t", "one") == {"n": 1}
        await saver.save({"n": 2}, "t", "two")
        assert await saver.list_checkpoints("t") == ["two", "one"]


async def test_a_pool_of_the_caller_is_used_and_never_closed(server):
    options = {"user": "LOCUS", "password": "tiger", "dsn": f"127.0.0.1:{server.port}/FREEPDB1"}
    pool = oracledb.create_pool_async(**options, min=1, max=4)
    try:
        async with OracleBackend(pool=pool, table_prefix="CALLER_") as backend:
            puts = (backend.store.put(("a",), str(n), n) for n in range(10))
            assert await asyncio.gather(*puts) == [1] * 10
            await backend.checkpointer.save({"n": 1}, "t")
        assert pool.busy == 0
        async with pool.acquire() as connection:
            rows = await connection.fetchall('SELECT COUNT(*) FROM "CALLER_ITEMS"')
        assert rows == [(10,)]
    finally:
        await pool.close()


async def test_a_pool_of_the_caller_that_is_too_small_is_an_error(server):
    options = {"user": "LOCUS", "password": "tiger", "dsn": f"127.0.0.1:{server.port}/FREEPDB1"}
    pool = oracledb.create_pool_async(**options, min=1, max=1)
    try:
        store = OracleStore(pool=pool, table_prefix="SMALL_", acquire_timeout=0.5)
        with pytest.raises(BackendUnavailableError, match="needs 3 to create the tables"):
            await store.put(("a",), "k", 1)
        await store.close()
        assert pool.busy == 0
    finally:
        await pool.close(force=True)
