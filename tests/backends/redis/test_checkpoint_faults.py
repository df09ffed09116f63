"""What servers and networks can do to checkpoints, and what must survive it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from locus_memory.backends.redis.checkpoints import RedisCheckpointer
from locus_memory.backends.redis.connection.connection import RedisConnection
from locus_memory.backends.redis.lua import Script
from locus_memory.errors import (
    BackendError,
    BackendUnavailableError,
    BackendWriteError,
)
from locus_memory.testing.servers import RedisServer, ValkeyServer

ECHO = Script("return ARGV[1]")
COUNT = Script("return redis.call('INCR', KEYS[1])")
ECHO_TWICE = Script("return ARGV[1]", idempotent=True)
COUNT_TWICE = Script("return redis.call('INCR', KEYS[1])", idempotent=True)
PATIENCE = 60


def wait_until_whole(client):
    while client.execute_command("CLUSTER INFO")["cluster_state"] != "ok":
        time.sleep(0.01)


def said(count):
    return {"messages": [f"message {number} " * 9 for number in range(count)]}


async def check(checkpointer, thread, count):
    """Assert that the thread holds the first states, all of them loadable."""
    names = await checkpointer.list_checkpoints(thread, 10_000)
    assert names == [f"c{number}" for number in reversed(range(count))]
    for number in range(count):
        assert await checkpointer.load(thread, f"c{number}") == said(number)


def contents(client):
    return {key: client.dump(key) for key in client.scan_iter()}


class TestTheServerDies:
    @pytest.mark.slow
    @pytest.mark.parametrize("make", [RedisServer, ValkeyServer])
    async def test_every_acknowledged_save_is_there(self, make):
        acknowledged: dict[str, int] = {}
        enough = asyncio.Event()
        with make() as server:
            async with RedisCheckpointer(server.url, state_type=None) as checkpointer:

                async def talk(thread):
                    number = 0
                    while True:
                        await checkpointer.save(said(number), thread, f"c{number}")
                        acknowledged[thread] = number = number + 1
                        if number == 30:
                            enough.set()

                talks = [asyncio.create_task(talk(f"t{number}")) for number in range(8)]
                await enough.wait()
                await asyncio.to_thread(server.kill)
                failures = await asyncio.gather(*talks, return_exceptions=True)
                assert {type(failure) for failure in failures} == {BackendUnavailableError}
                with pytest.raises(BackendUnavailableError):
                    await checkpointer.load("t0")
                await asyncio.to_thread(server.start)
                for thread, count in acknowledged.items():
                    # One that was under way may have arrived.
                    there = len(await checkpointer.list_checkpoints(thread, 10_000))
                    assert there in (count, count + 1)
                    await check(checkpointer, thread, there)
                await checkpointer.save(said(0), "next")
                assert await checkpointer.load("next") == said(0)

    async def test_it_comes_later(self):
        with RedisServer() as server:
            server.kill()
            checkpointer = RedisCheckpointer(server.url, state_type=None)
            with pytest.raises(BackendUnavailableError):
                await checkpointer.save({}, "t")
            server.start()
            await checkpointer.save({}, "t")
            await checkpointer.close()

    @pytest.mark.slow
    async def test_one_of_three_masters(self, own_cluster):
        servers = own_cluster
        async with RedisCheckpointer(servers[0].url, state_type=None) as checkpointer:
            for number in range(20):
                await checkpointer.save({"n": number}, f"t{number}")
            servers[1].kill()
            lost = 0
            for number in range(20):
                try:
                    assert await checkpointer.load(f"t{number}") == {"n": number}
                except BackendUnavailableError:
                    lost += 1
            assert 0 < lost < 20
            servers[1].start()
            while True:
                try:
                    for number in range(20):
                        assert await checkpointer.load(f"t{number}") == {"n": number}
                        await checkpointer.save({"n": number}, f"t{number}", "again")
                except BackendUnavailableError:
                    await asyncio.sleep(0.02)
                else:
                    break


class TestACutConnection:
    async def test_a_save_whose_answer_is_lost_is_there_once(self, own_server, proxy_to):
        async with (
            proxy_to(own_server) as proxy,
            RedisCheckpointer(proxy.url, state_type=None) as checkpointer,
        ):
            await checkpointer.save(said(0), "t", "c0")
            for number in range(1, 6):
                proxy.cuts_next_answer = True
                parent = f"c{number - 1}"
                await checkpointer.save(said(number), "t", f"c{number}", expected_parent=parent)
            await check(checkpointer, "t", 6)
            proxy.cuts_next_answer = True
            assert await checkpointer.load("t") == said(5)
            heads = await checkpointer.storage.list_checkpoints("t", None)
            assert [head.sequence for head in heads] == [6, 5, 4, 3, 2, 1]

    async def test_what_may_have_run_is_not_run_again(self, own_server, proxy_to):
        async with proxy_to(own_server) as proxy, RedisConnection(proxy.url) as connection:
            assert await connection.run(COUNT, ["n"]) == 1
            proxy.cuts_next_answer = True
            with pytest.raises(BackendUnavailableError):
                await connection.run(COUNT, ["n"])
            assert await connection.run(COUNT, ["n"]) == 3
            proxy.cuts_next_answer = True
            assert await connection.run(COUNT_TWICE, ["n"]) == 5
            proxy.cuts_next_answer = True
            with pytest.raises(BackendUnavailableError):
                await connection.execute_many([COUNT.call(["n"]), COUNT.call(["n"])])
            assert await connection.execute("GET", "n") == b"7"
            proxy.cuts_next_answer = True
            assert await connection.execute("GET", "n", again=True) == b"7"

    @pytest.mark.slow
    async def test_calls_that_share_a_connection_each_know_what_to_do(self, own_server, proxy_to):
        async with proxy_to(own_server) as proxy, RedisConnection(proxy.url) as connection:
            for round_ in range(8):
                proxy.cuts_next_answer = True
                once = [connection.run(COUNT, [f"once-{n}"]) for n in range(20)]
                twice = [connection.run(ECHO_TWICE, (), [n]) for n in range(20)]
                answers = await asyncio.gather(*once, *twice, return_exceptions=True)
                assert answers[20:] == [b"%d" % n for n in range(20)]
                told = [n for n in range(20) if isinstance(answers[n], int)]
                for number in range(20):
                    counted = int(await connection.execute("GET", f"once-{number}") or 0)
                    assert counted <= round_ + 1
                    assert number not in told or counted == answers[number]
                failed = {type(answers[n]) for n in set(range(20)) - set(told)}
                assert failed == {BackendUnavailableError}

    @pytest.mark.slow
    @pytest.mark.parametrize("through", ["url", "client", "cluster"])
    @pytest.mark.parametrize("how", ["kill", "restart"])
    async def test_idle_connections_that_the_server_ended(self, raw, through, how):
        """No call meets one of them, not even a write that must not run twice."""
        settings = {"cluster_enabled": "yes"} if through == "cluster" else {}
        with ValkeyServer(**settings) as server:
            if through == "cluster":
                raw(server).execute_command("CLUSTER ADDSLOTSRANGE", 0, 16383)
                wait_until_whole(raw(server))
            client = AsyncRedis.from_url(server.url)
            given = {"client": client} if through == "client" else {"url": server.url}
            async with client, RedisConnection(**given, pool_size=8) as connection:
                for round_ in range(1, 4):
                    calls = [connection.run(COUNT, ["n"]) for _ in range(8)]
                    assert max(await asyncio.gather(*calls)) == 8 * round_
                    if how == "kill":
                        assert raw(server).client_kill_filter(_type="normal", skipme=True) >= 1
                    else:
                        await asyncio.to_thread(server.restart)
                    if through == "cluster":
                        wait_until_whole(raw(server))
                    await asyncio.sleep(0.06)

    @pytest.mark.slow
    async def test_a_master_that_became_a_replica(self, own_server, proxy_to, raw):
        with RedisServer() as successor:
            async with (
                proxy_to(own_server) as proxy,
                RedisCheckpointer(proxy.url, state_type=None) as checkpointer,
            ):
                await asyncio.gather(*(checkpointer.save(said(1), f"t{n}") for n in range(4)))
                # A master that nobody can reach: it keeps its data and refuses writes.
                raw(own_server).replicaof("127.0.0.1", 1)
                with pytest.raises(BackendWriteError, match="replica"):
                    await checkpointer.save(said(2), "t0")
                assert await checkpointer.load("t0") == said(1)
                assert await checkpointer.list_threads() == ["t0", "t1", "t2", "t3"]
                with pytest.raises(BackendWriteError):
                    await checkpointer.delete("t0")
                proxy.target = successor
                await checkpointer.save(said(3), "t0")
                assert await checkpointer.load("t0") == said(3)
            assert raw(successor).dbsize() == 4


class TestLimits:
    async def test_cancelled_calls_never_mix_up_answers(self, own_server, raw):
        async with RedisConnection(own_server.url, pool_size=4) as connection:
            for round_ in range(40):
                tasks = [
                    asyncio.create_task(connection.run(ECHO, (), [f"{round_}-{n}"]))
                    for n in range(20)
                ]
                for _ in range(round_ % 7):
                    await asyncio.sleep(0)
                for task in tasks[round_ % 3 :: 3]:
                    task.cancel()
                answers = await asyncio.gather(*tasks, return_exceptions=True)
                for number, answer in enumerate(answers):
                    wanted = b"%d-%d" % (round_, number)
                    assert answer == wanted or isinstance(answer, asyncio.CancelledError)
                assert sum(isinstance(answer, bytes) for answer in answers) >= 13
            calls = [connection.run(ECHO, (), [n]) for n in range(100)]
            assert await asyncio.gather(*calls) == [b"%d" % n for n in range(100)]
            assert len(raw(own_server).client_list()) <= 5

    @pytest.mark.slow
    async def test_cancelled_calls_on_a_cluster(self, three_masters):
        async with RedisConnection(three_masters.url, pool_size=4) as connection:
            for round_ in range(20):
                tasks = [
                    asyncio.create_task(
                        connection.execute_many(
                            [ECHO.call([f"k{n + m}"], [n * m]) for m in range(4)]
                        )
                    )
                    for n in range(12)
                ]
                for _ in range(round_ % 9):
                    await asyncio.sleep(0)
                for task in tasks[round_ % 3 :: 3]:
                    task.cancel()
                answers = await asyncio.gather(*tasks, return_exceptions=True)
                for n, answer in enumerate(answers):
                    wanted = [b"%d" % (n * m) for m in range(4)]
                    assert answer == wanted or isinstance(answer, asyncio.CancelledError)

    async def test_cancelled_saves_are_there_or_not(self, redis_server, prefix):
        async with RedisCheckpointer(
            redis_server.url, key_prefix=prefix, state_type=None, pool_size=4
        ) as checkpointer:
            for round_ in range(30):
                task = asyncio.create_task(checkpointer.save(said(round_), "t", f"c{round_}"))
                for _ in range(round_):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
            names = await checkpointer.list_checkpoints("t", 100)
            for name in names:
                assert await checkpointer.load("t", name) == said(int(name[1:]))
            await checkpointer.save(said(50), "t")
            assert await checkpointer.load("t") == said(50)

    async def test_all_connections_are_busy(self, connection, redis_server):
        small = RedisConnection(redis_server.url, pool_size=1, acquire_timeout=0.01)
        await small.open()
        key = connection.key("queue")
        waiting = asyncio.create_task(small.execute("BLPOP", key, 0))
        await asyncio.sleep(0)
        with pytest.raises(BackendUnavailableError, match="pool_size"):
            await small.execute("PING")
        await connection.execute("RPUSH", key, "x")
        assert (await waiting)[1] == b"x"
        assert await small.execute("PING") == b"PONG"
        await small.close()

    @pytest.mark.slow
    async def test_no_answer_in_time(self, connection, redis_server):
        hasty = RedisConnection(redis_server.url, pool_size=1, command_timeout=0.5)
        key = connection.key("queue")
        with pytest.raises(BackendUnavailableError, match="in time"):
            await hasty.execute("BLPOP", key, 0)
        assert await hasty.run(ECHO, (), ["x"]) == b"x"
        calls = [hasty.execute("BLPOP", key, 0) for _ in range(3)]
        for answer in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(answer, BackendUnavailableError)
        assert await hasty.run(ECHO, (), ["x"]) == b"x"
        await hasty.close()

    async def test_the_server_has_no_connection_left(self):
        with RedisServer(maxclients=4) as server:
            holders = [Redis.from_url(server.url) for _ in range(4)]
            for holder in holders:
                holder.ping()
            checkpointer = RedisCheckpointer(server.url, state_type=None)
            with pytest.raises(BackendUnavailableError):
                await checkpointer.save({}, "t")
            for holder in holders:
                holder.close()
            while True:
                try:
                    await checkpointer.save({"n": 1}, "t", "c0")
                except BackendUnavailableError:
                    # It has to notice yet that the others left.
                    await asyncio.sleep(0.01)
                else:
                    break
            assert await checkpointer.load("t") == {"n": 1}
            await checkpointer.close()

    @pytest.mark.parametrize("make", [RedisServer, ValkeyServer])
    async def test_the_servers_memory_is_full(self, make, raw):
        with make(maxmemory_policy="noeviction") as server:
            async with RedisCheckpointer(server.url, state_type=None) as checkpointer:
                for number in range(6):
                    await checkpointer.save(said(number), "t", f"c{number}")
                raw(server).config_set("maxmemory", 1)
                before = contents(raw(server))
                for call in (
                    checkpointer.save(said(6), "t", "c6"),
                    checkpointer.save(said(6), "t", "c3"),
                    checkpointer.save(said(6), "new"),
                    checkpointer.copy_thread("t", "new"),
                    checkpointer.delete("t", "c2"),
                    checkpointer.prune("t", keep_last=1),
                ):
                    with pytest.raises(BackendWriteError, match=r"makes room, .* larger maxmemory"):
                        await call
                assert contents(raw(server)) == before
                await check(checkpointer, "t", 6)
                assert await checkpointer.list_threads() == ["t"]
                assert await checkpointer.delete("t")
                assert raw(server).keys() == []
                raw(server).config_set("maxmemory", 0)
                await checkpointer.save(said(0), "t", "c0")
                await check(checkpointer, "t", 1)

    @pytest.mark.slow
    async def test_somebody_elses_key(self, redis_server, connection, prefix):
        checkpointer = RedisCheckpointer(client=connection, state_type=None)
        await checkpointer.save({}, "t", "c0")
        keys = [key async for key in _keys(connection, prefix)]
        for key in keys:
            await connection.execute("SET", key, "mine")
        for call in (checkpointer.save({}, "t"), checkpointer.load("t")):
            with pytest.raises(BackendError, match="WRONGTYPE"):
                await call


async def _keys(connection, prefix):
    cursor = b"0"
    while True:
        cursor, found = await connection.execute("SCAN", cursor, "MATCH", f"{prefix}*")
        for key in found:
            yield key
        if cursor == b"0":
            return


# On a busy machine asyncio's debug mode also tells of steps that took long, as a warning.
ABANDONED = """
import asyncio, logging, sys
logging.getLogger("asyncio").setLevel(logging.ERROR)
from locus_memory.backends.redis.checkpoints import RedisCheckpointer
checkpointer = RedisCheckpointer(sys.argv[1], state_type=None, pool_size=4)

async def work():
    tasks = [asyncio.create_task(checkpointer.save({"n": n}, f"t{n}")) for n in range(12)]
    await tasks[0]
    connection = checkpointer.storage._connection
    blocked = asyncio.create_task(connection.execute("BLPOP", "k", 0, again=True))
    for _ in range(3):
        await asyncio.sleep(0)

if sys.argv[2] == "run":
    for _ in range(3):
        asyncio.run(work())
else:
    for _ in range(3):
        loop = asyncio.new_event_loop()
        loop.run_until_complete(checkpointer.save({"n": 0}, "t0"))
        if sys.argv[2] == "close":
            loop.close()

async def end():
    assert await checkpointer.load("t0") == {"n": 0}
    await checkpointer.close()

asyncio.run(end())
print("done")
"""


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["run", "close"])
@pytest.mark.parametrize("kind", ["server", "cluster"])
async def test_an_event_loop_that_ends_with_work_pending(kind, ending, own_server, three_masters):
    url = own_server.url if kind == "server" else three_masters.url
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-X", "dev", "-W", "always", "-c", ABANDONED, url, ending],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert (done.stdout, done.stderr) == ("done\n", "")
