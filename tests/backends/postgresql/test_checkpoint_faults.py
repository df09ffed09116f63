"""What must not hurt: dead servers, cut connections, too many clients, wrong passwords."""

from __future__ import annotations

import asyncio
import contextlib
import random

import pytest

from locus_memory.backends.postgresql.checkpoints import PostgreSQLCheckpointer
from locus_memory.backends.postgresql.connection.connection import PostgreSQLPool
from locus_memory.errors import BackendError, BackendUnavailableError, ConfigurationError
from locus_memory.testing.servers import PostgreSQLServer

pytestmark = pytest.mark.usefixtures("own_tables")


@pytest.fixture
def server():
    """A server that may be killed."""
    with PostgreSQLServer(password="hunter2", max_connections=12) as server:
        yield server


class TestServers:
    @pytest.mark.slow
    async def test_every_acknowledged_save_outlives_the_server(self, server, until):
        saved, failures = {}, []
        storm = asyncio.Event()

        async def enough():
            return len(saved) > 300

        async def work(thread):
            number = 0
            while not storm.is_set():
                number += 1
                state = {"thread": thread, "n": number}
                try:
                    saved[thread, await checkpointer.save(state, thread)] = state
                except BackendUnavailableError as error:
                    failures.append(error)
                    return

        async with PostgreSQLCheckpointer(server.url, pool_size=6, state_type=None) as checkpointer:
            await checkpointer.open()
            tasks = [asyncio.create_task(work(f"t{number}")) for number in range(12)]
            await until(enough)
            await asyncio.to_thread(server.kill)
            storm.set()
            await asyncio.gather(*tasks)
            assert failures
            with pytest.raises(BackendUnavailableError, match="cannot connect"):
                await checkpointer.load("t0")
            await asyncio.to_thread(server.start)
            for (thread, name), state in saved.items():
                assert await checkpointer.load(thread, name) == state
            await checkpointer.save({"n": 0}, "after")
            assert "hunter2" not in repr(failures)

    @pytest.mark.slow
    async def test_the_call_after_a_restart_works(self, server):
        async with PostgreSQLCheckpointer(server.url, pool_size=4, state_type=None) as checkpointer:
            saves = (checkpointer.save({"n": number}, f"t{number}") for number in range(8))
            await asyncio.gather(*saves)
            for _ in range(2):
                # In this thread: the event loop hears nothing of it until it is back.
                server.restart()
                loads = (checkpointer.load(f"t{number}") for number in range(8))
                assert await asyncio.gather(*loads) == [{"n": number} for number in range(8)]
            server.restart()
            await checkpointer.save({"n": 9}, "t1", "c9")
            server.restart()
            await checkpointer.save({"n": 10}, "t1", "c9")
            assert await checkpointer.load("t1") == {"n": 10}

    @pytest.mark.slow
    async def test_too_many_clients_are_refused_and_let_in_later(self, server, until):
        pools = [PostgreSQLPool(server.url, pool_size=5) for _ in range(4)]
        await pools[0].open()
        calls = [pool.fetchval("SELECT pg_sleep(0.2)") for pool in pools for _ in range(5)]
        done = await asyncio.gather(*calls, return_exceptions=True)
        refused = [error for error in done if isinstance(error, Exception)]
        assert 0 < len(refused) < 20
        assert {type(error) for error in refused} == {BackendUnavailableError}
        assert "53300" in str(refused[0])
        for pool in pools[1:]:
            await pool.close()

        async def let_in():
            calls = (pools[0].fetchval("SELECT pg_sleep(0.01)::text") for _ in range(9))
            return await asyncio.gather(*calls, return_exceptions=True) == [""] * 9

        # The server takes a moment to see them go.
        await until(let_in)
        await pools[0].close()

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("right", "wrong", "message"),
        [
            ("hunter2", "hunter3", "password authentication failed"),
            ("/postgres", "/nowhere", 'database "nowhere" does not exist'),
            ("locus:", "nobody:", "password authentication failed"),
        ],
    )
    async def test_wrong_credentials_are_one_clear_error(self, server, right, wrong, message):
        pool = PostgreSQLPool(server.url.replace(right, wrong))
        for _ in range(2):
            with pytest.raises(ConfigurationError, match=message) as caught:
                await pool.open()
            assert "hunter" not in f"{caught.value!r} {caught.value.__cause__!r} {pool!r}"
        await pool.close()


class TestNetwork:
    @pytest.mark.slow
    async def test_a_connection_that_is_cut_under_a_call(self, proxy, schema, url, until):
        query = "SELECT pg_sleep(32)"
        async with PostgreSQLPool(url) as other, PostgreSQLPool(proxy.url, schema=schema) as pool:

            async def all_sleep():
                running = "SELECT count(*) FROM pg_stat_activity WHERE query = $1"
                return await other.fetchval(running, query) == 4

            sleeping = [asyncio.create_task(pool.fetchval(query)) for _ in range(4)]
            await until(all_sleep)
            proxy.cut()
            done = await asyncio.gather(*sleeping, return_exceptions=True)
            assert [type(error) for error in done] == [BackendUnavailableError] * 4
            assert await pool.fetchval("SELECT 1") == 1

    @pytest.mark.slow
    async def test_a_connection_that_is_cut_again_and_again(self, proxy, schema):
        chance = random.Random(7)
        saved = {}
        async with PostgreSQLCheckpointer(
            proxy.url, schema=schema, pool_size=4, state_type=None
        ) as checkpointer:

            async def work(thread):
                for number in range(60):
                    state = {"n": number}
                    try:
                        saved[thread, await checkpointer.save(state, thread)] = state
                    except BackendUnavailableError:
                        continue

            async def vandal():
                for _ in range(40):
                    await asyncio.sleep(chance.uniform(0, 0.01))
                    proxy.cut()

            await checkpointer.open()
            await asyncio.gather(vandal(), *(work(f"t{number}") for number in range(5)))
            assert len(saved) > 50
            for (thread, name), state in saved.items():
                assert await checkpointer.load(thread, name) == state
            pool = checkpointer.storage._connection
            assert await asyncio.gather(*(pool.fetchval("SELECT 1") for _ in range(12))) == [1] * 12

    async def test_a_transaction_that_loses_its_connection(self, proxy, schema):
        async with PostgreSQLPool(proxy.url, schema=schema) as pool:

            async def lose():
                async with pool.transaction() as connection:
                    await connection.execute(pool.sql("DELETE FROM {migrations}"))
                    proxy.cut()
                    await connection.execute("SELECT 1")

            with pytest.raises(BackendUnavailableError):
                await lose()
            assert await pool.fetchval("SELECT count(*) FROM {migrations}") > 0

    async def test_a_connection_that_turns_out_to_be_dead(self, proxy, schema):
        async with PostgreSQLPool(proxy.url, schema=schema, pool_size=1) as pool:
            for _ in range(3):
                assert await pool.fetchval("SELECT 1") == 1
                # Nothing can be read from it, and nothing says that it is closed.
                opened = pool._loop_pools.here()._connections
                [connection] = [each for each in opened if not each.is_closed()]
                connection._transport.abort()
                async with pool.transaction() as connection:
                    assert await connection.fetchval("SELECT 2") == 2

    async def test_a_server_that_hangs_up_is_unavailable(self, proxy, schema):
        proxy.refusing = True
        pool = PostgreSQLPool(proxy.url, schema=schema)
        with pytest.raises(BackendUnavailableError):
            await pool.open()
        proxy.refusing = False
        await pool.open()
        await pool.close()

    async def test_one_that_never_answers_is_unavailable(self, schema):
        async def silent(reader, writer):
            with contextlib.closing(writer):
                await reader.read()

        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        pool = PostgreSQLPool(f"postgresql://me@127.0.0.1:{port}/db", connect_timeout=0.1)
        with pytest.raises(BackendUnavailableError, match="no answer in time"):
            await pool.open()
        await pool.close()
        server.close()
        await server.wait_closed()

    async def test_one_that_talks_nonsense_is_an_error_of_ours(self, schema):
        async def nonsense(reader, writer):
            with contextlib.closing(writer):
                writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                await reader.read()

        server = await asyncio.start_server(nonsense, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        pool = PostgreSQLPool(f"postgresql://me@127.0.0.1:{port}/db", connect_timeout=1)
        with pytest.raises(BackendError):
            await pool.open()
        await pool.close()
        server.close()
        await server.wait_closed()
