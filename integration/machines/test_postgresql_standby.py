"""A primary of PostgreSQL and its standby: failover, and reads from the standby."""

from __future__ import annotations

import asyncio

import pytest

from integration.machines.conftest import PATIENCE
from integration.machines.postgresql_servers import pair
from locus_memory.errors import (
    BackendUnavailableError,
    BackendWriteError,
    ConfigurationError,
    VersionConflictError,
)
from locus_memory.events import subscribe
from locus_memory.registry import get_checkpointer, get_store, open_backend

WHERE_IT_RAN = "SELECT pg_catalog.pg_is_in_recovery()"


@pytest.fixture(scope="module")
def two_servers():
    with pair() as servers:
        yield servers


@pytest.fixture
def events():
    found = []
    unsubscribe = subscribe(found.append)
    yield found
    unsubscribe()


async def reads_on_standby(store, namespace):
    """Return how many of 20 searches ran on a standby."""
    pool, count = store._connection, 0
    asked = pool._standbys.answer

    async def counted(work):
        nonlocal count
        found = await asked(work)
        count += found is not None
        return found

    pool._standbys.answer = counted
    for _ in range(20):
        await store.search(namespace, "rose")
    pool._standbys.answer = asked
    return count


def transactions(server):
    """Return how many transactions a server has run, as far as it has counted them."""
    server.run("SELECT pg_stat_force_next_flush()")
    return int(server.run("SELECT sum(xact_commit + xact_rollback) FROM pg_stat_database"))


async def test_a_failover_loses_nothing_that_was_acknowledged(load_on):
    with pair() as servers:
        async with (
            open_backend(servers.url, state_type=None) as backend,
            get_store(servers.url, standby_reads=True, schema="two") as reader,
        ):
            await backend.checkpointer.save({"n": 1}, "thread")
            await reader.put(("n",), "key", "rose 0")
            assert await reader.get(("n",), "key") == "rose 0"
            load = load_on(backend.store)
            await load.goes_on()
            await asyncio.to_thread(servers.primary.kill)
            await load.fails()
            await asyncio.to_thread(servers.promote)
            await load.everywhere()
            await load.stop()
            assert {type(each) for each in load.failures} <= {BackendUnavailableError}
            assert await load.lost() == set()
            assert servers.standby.run(WHERE_IT_RAN) == "f"
            assert await backend.checkpointer.load("thread") == {"n": 1}
            await backend.checkpointer.save({"n": 2}, "thread")
            assert await reader.get(("n",), "key") == "rose 0"
            await reader.put(("n",), "key", "rose 1")
            assert await reader.get(("n",), "key") == "rose 1"
        async with get_checkpointer(servers.url, state_type=None) as again:
            assert await again.load("thread") == {"n": 2}


class TestReadsOfStandbys:
    async def test_a_writer_reads_its_writes(self, two_servers):
        async with get_store(two_servers.url, schema="own", standby_reads=True) as store:
            for number in range(50):
                version = await store.put(("n",), "key", {"text": f"rose {number}"})
                item = await store.get_item(("n",), "key")
                assert item.version == version == number + 1
                assert item.value == {"text": f"rose {number}"}
                assert await store.delete(("n",), f"{number}") is False
            assert [each.key for each in await store.search(("n",), "rose")] == ["key"]
            assert await reads_on_standby(store, ("n",)) == 20

    async def test_while_the_standby_lags_the_primary_answers(self, two_servers):
        async with get_store(two_servers.url, schema="lag", standby_reads=True) as store:
            await store.put(("n",), "key", "rose 0")
            assert await store.get(("n",), "key") == "rose 0"
            two_servers.standby.run("SELECT pg_wal_replay_pause()")
            try:
                await store.put(("n",), "key", "rose 1")
                assert await store.get(("n",), "key") == "rose 1"
                assert await reads_on_standby(store, ("n",)) == 0
                with pytest.raises(VersionConflictError):
                    await store.put(("n",), "key", "rose 2", if_version=1)
                assert (await store.get_item(("n",), "key")).version == 2
            finally:
                two_servers.standby.run("SELECT pg_wal_replay_resume()")

    async def test_a_search_of_an_index_runs_on_the_standby(self, two_servers):
        """It takes a transaction of its own."""
        options = {"schema": "vec", "standby_reads": True, "exact_below": 0}
        async with get_store(two_servers.url, **options) as store:
            assert store.capabilities.semantic_search
            for number in range(120):
                vector = [1.0, number / 120]
                await store.put_with_embedding(("n",), f"{number:03}", "rose", vector)
            before = transactions(two_servers.standby)
            found = await store.search_by_embedding(("n",), [1.0, 0.0], 5)
            assert [each.item.key for each in found] == [f"{number:03}" for number in range(5)]
            assert await store.get_embedding(("n",), "000") == [1.0, 0.0]
            assert transactions(two_servers.standby) > before

    async def test_a_standby_that_dies_is_done_without(self, two_servers, events):
        two_servers.primary.run("ALTER SYSTEM SET synchronous_standby_names = ''")
        two_servers.primary.run("SELECT pg_reload_conf()")
        async with get_store(two_servers.url, schema="die", standby_reads=True) as store:
            await store.put(("n",), "key", "rose")
            async with asyncio.timeout(30):
                # Nothing waits for the standby any more, which may lag.
                while await reads_on_standby(store, ("n",)) == 0:  # noqa: ASYNC110 - it tells nobody
                    await asyncio.sleep(0.05)
            two_servers.standby.kill()
            assert await store.get(("n",), "key") == "rose"
            assert [each.name for each in events] == ["postgresql.standby_failed"]
            await store.put(("n",), "key", "another rose")
            assert await store.get(("n",), "key") == "another rose"
            two_servers.standby.start()

    @pytest.mark.parametrize("where", ["postgresql:mydb", "postgresql://localhost/mydb"])
    def test_one_host_has_no_standby(self, where):
        with pytest.raises(ConfigurationError, match="standby_reads needs a URL with several"):
            get_store(where, standby_reads=True)


async def test_a_primary_that_is_told_to_take_no_writes_is_left(two_servers):
    """The last test of this file, for afterwards both servers are primaries."""
    async with get_store(two_servers.url, schema="left") as store:
        await store.put(("n",), "1", "first")
        two_servers.primary.run("ALTER SYSTEM SET default_transaction_read_only = on")
        two_servers.primary.run("SELECT pg_reload_conf()")
        while two_servers.standby.run('SELECT count(*) FROM "left".locus_items') != "1":
            pass
        two_servers.promote()
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    await store.put(("n",), "2", "second")
                except (BackendUnavailableError, BackendWriteError):
                    await asyncio.sleep(0.02)
                else:
                    break
        assert two_servers.standby.run('SELECT count(*) FROM "left".locus_items') == "2"
