"""One connection object: where it leads, what it tells, who closes it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest
from redis import Redis, exceptions
from redis import asyncio as driver

from locus_memory.backends.redis.connection.connection import RedisConnection, tag
from locus_memory.backends.redis.connection.driver_errors import FAILURES, is_lost, translate
from locus_memory.backends.redis.lua import Script
from locus_memory.errors import (
    NO_ROOM,
    BackendClosedError,
    BackendError,
    BackendUnavailableError,
    BackendWriteError,
    ConfigurationError,
    LocusMemoryError,
)
from locus_memory.testing.servers import RedisServer, ValkeyServer

ECHO = Script("return ARGV[1]")
COUNT = Script("return redis.call('INCR', KEYS[1])")

PLACES = [
    (None, "localhost:6379"),
    ("db", "db:6379"),
    ("db:7000", "db:7000"),
    ("db:7000/2", "db:7000/2"),
    ("[::1]:7000", "[::1]:7000"),
    ("redis://user:hunter2@db/1", "db:6379/1"),
    ("rediss://:hunter2@db:6380", "db:6380"),
    ("valkey://db:7000", "db:7000"),
    ("valkeys://:hunter2@db", "db:6379"),
    ("unix:///run/redis.sock?db=1&password=hunter2", "/run/redis.sock"),
    ("user:hunter2@db:7000", "db:7000"),
    ("redis://db/", "db:6379"),
    ("redis://db/2/", "db:6379/2"),
]


@pytest.mark.parametrize(("url", "place"), PLACES)
def test_what_is_shown_of_a_url(url, place):
    connection = RedisConnection(url)
    assert connection.place == place
    assert "hunter2" not in f"{connection!r} {vars(connection)}"


@pytest.mark.parametrize(
    "url",
    [
        "http://db",
        "redis://:hunter2/x@db:1",
        "redis://:hunter2@db:port",
        "redis://:hunter2@db?unknown=1",
        "redis://db?socket_timeout=hunter2",
        "",
        "redis://:hunter2@[db",
        "redis://db/two",
        "rediss://db/-1",
        "valkey://db:7000/2/3",
        "db:7000/1x",
        "db:7000/0x1",
        "redis://db/%31%32x",
        "redis://db?db=two",
        "unix:///run/redis.sock?db=two",
    ],
)
def test_a_url_that_cannot_be_read(url):
    with pytest.raises(ConfigurationError, match=r"redis: (the url|an option)") as caught:
        RedisConnection(url)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_keys():
    connection = RedisConnection(key_prefix="p:")
    assert connection.key("a", b"\xff", "é") == b"p:a:\xff:\xc3\xa9"
    assert tag("x") == tag(b"x") != tag("y")
    assert tag("}{") == b"{" + tag("}{")[1:-1] + b"}"
    assert not set(b"{}") & set(tag("}{")[1:-1])


@contextmanager
def frozen(server):
    """A server that takes connections and says nothing."""
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield server
    finally:
        os.kill(server.pid, signal.SIGCONT)


class TestAFrozenServer:
    @pytest.mark.slow
    async def test_nobody_waits_for_its_word_on_the_password(self):
        with RedisServer(password="hunter2") as server:
            options = {"connect_timeout": 0.5, "command_timeout": None}
            async with RedisConnection(server.url, **options) as used:
                connection = RedisConnection(server.url, **options)
                with frozen(server):
                    calls = [connection.execute("PING") for _ in range(60)]
                    # One after another they would take half a minute.
                    async with asyncio.timeout(10):
                        failures = await asyncio.gather(*calls, return_exceptions=True)
                assert {type(each) for each in failures} == {BackendUnavailableError}
                for each in (connection, used):
                    assert await each.execute("PING") == b"PONG"
                await connection.close()

    @pytest.mark.slow
    async def test_nobody_waits_for_a_cluster(self):
        with ValkeyServer(password="hunter2", cluster_enabled="yes") as server:
            url = server.url.replace("redis://", "redis+cluster://")
            for command_timeout in (0.5, None):
                options = {"connect_timeout": 0.5, "command_timeout": command_timeout}
                connection = RedisConnection(url, **options)
                with frozen(server):
                    calls = [connection.execute("PING") for _ in range(60)]
                    async with asyncio.timeout(10):
                        failures = await asyncio.gather(*calls, return_exceptions=True)
                assert {type(each) for each in failures} == {BackendUnavailableError}
                await connection.close()

    @pytest.mark.slow
    async def test_nobody_waits_for_the_answer_of_a_callers_client(self):
        with RedisServer(password="hunter2") as server, frozen(server):
            client = driver.Redis.from_url(server.url, socket_timeout=None)
            connection = RedisConnection(client=client, connect_timeout=0.5, command_timeout=None)
            async with asyncio.timeout(10):
                with pytest.raises(BackendUnavailableError):
                    await connection.open()
            await connection.close()
            await client.aclose()


class TestErrors:
    def test_every_error_of_the_driver_becomes_ours(self):
        classes = [
            each
            for each in vars(exceptions).values()
            if isinstance(each, type) and issubclass(each, Exception)
        ]
        assert len(classes) > 30
        for each in classes:
            assert issubclass(each, FAILURES)
            error = each("0 db:1")
            ours = translate(error, "db:6379")
            assert isinstance(ours, LocusMemoryError)
            assert str(ours).startswith("redis db:6379: ")
            assert ours.__cause__ is error
            assert not (is_lost(error) and isinstance(ours, ConfigurationError))

    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            ("LOADING Redis is loading the dataset in memory", BackendUnavailableError),
            ("BUSY Redis is busy running a script", BackendUnavailableError),
            ("CLUSTERDOWN Hash slot not served", BackendUnavailableError),
            ("MASTERDOWN Link with MASTER is down", BackendUnavailableError),
            ("TRYAGAIN Multiple keys request during rehashing", BackendUnavailableError),
            ("ERR max number of clients reached", BackendUnavailableError),
            ("MISCONF Redis is configured to save RDB snapshots", BackendWriteError),
            ("NOREPLICAS Not enough good replicas to write.", BackendWriteError),
            ("OOM command not allowed when used memory > 'maxmemory'.", BackendWriteError),
            ("READONLY You can't write against a read only replica.", BackendWriteError),
            (
                "ERR Error running script (call to f_0): @user_script:3: -READONLY You can't write",
                BackendWriteError,
            ),
            ("NOAUTH Authentication required.", ConfigurationError),
            ("WRONGPASS invalid username-password pair", ConfigurationError),
            ("NOPERM this user has no permissions", ConfigurationError),
            ("ERR DB index is out of range", ConfigurationError),
            ("MOVED 1234 10.0.0.1:6379", ConfigurationError),
            ("WRONGTYPE Operation against a key", BackendError),
            ("ERR unknown command 'BUSYLOOM'", BackendError),
        ],
    )
    def test_every_answer_of_the_server_becomes_ours(self, text, kind):
        error = driver.Connection()._parser.parse_error(text)
        assert type(translate(error, "db")) is kind

    def test_arguments_are_not_quoted(self):
        error = exceptions.ResponseError("unknown command 'X', with args beginning with: 'secret'")
        assert "secret" not in str(translate(error, "db"))
        error = exceptions.RedisClusterException("No way.\nCommand: ('secret',)")
        assert "secret" not in str(translate(error, "db"))


class TestFeatures:
    async def test_of_redis(self, connection):
        assert connection.features.vector_sets
        assert not connection.features.cluster

    async def test_of_valkey(self, valkey_server):
        async with RedisConnection(valkey_server.url) as connection:
            assert not connection.features.vector_sets

    @pytest.mark.slow
    async def test_of_a_cluster(self, three_masters):
        for scheme in ("redis", "redis+cluster"):
            url = f"{scheme}://127.0.0.1:{three_masters.port}"
            async with RedisConnection(url) as connection:
                assert connection.features.cluster
                for number in range(30):
                    assert await connection.run(COUNT, [f"k{number}"]) >= 1

    async def test_where_little_is_allowed(self, own_server, raw):
        raw(own_server).execute_command(
            "ACL SETUSER little on >pass ~* +@all -info -command -vsim -module -config"
        )
        url = f"redis://little:pass@127.0.0.1:{own_server.port}"
        async with RedisConnection(url) as connection:
            assert not connection.features.vector_sets
            with pytest.raises(ConfigurationError, match="permissions"):
                await connection.execute("CONFIG", "GET", "*")

    @pytest.mark.slow
    async def test_a_cluster_taken_for_one_server(self, three_masters):
        connection = RedisConnection(three_masters.url)
        # As behind a proxy that refuses both INFO and HELLO.
        connection._cluster = False
        async with connection:
            calls = [connection.run(COUNT, [f"k{number}"]) for number in range(30)]
            with pytest.raises(ConfigurationError, match=r"connect with redis\+cluster://"):
                await asyncio.gather(*calls)

    async def test_a_cluster_has_one_database(self):
        with pytest.raises(ConfigurationError, match="db"):
            await RedisConnection("redis+cluster://host?db=1").open()

    async def test_a_server_taken_for_a_cluster(self, redis_server):
        with pytest.raises(ConfigurationError, match="Cluster mode is not enabled"):
            await RedisConnection(f"redis+cluster://127.0.0.1:{redis_server.port}").open()


class TestCalls:
    async def test_many_in_one_round_trip(self, connection):
        key = connection.key("n")
        counting = COUNT.call([connection.key("m")])
        commands = [("SET", key, 1.5), ECHO.call((), ["a"]), ("GET", key), counting]
        assert await connection.execute_many(commands) == [b"OK", b"a", b"1.5", 1]
        assert await connection.execute_many([]) == []

    async def test_one_of_many_fails(self, connection):
        key = connection.key("text")
        with pytest.raises(BackendError, match="not an integer"):
            await connection.execute_many([("SET", key, "a"), ("INCR", key), ("SET", key, "b")])
        assert await connection.execute("GET", key) == b"b"
        assert [await connection.run(ECHO, (), [n]) for n in range(3)] == [b"0", b"1", b"2"]

    async def test_scripts_that_the_server_forgot(self, own_server):
        async with RedisConnection(own_server.url) as connection:
            for _ in range(3):
                await connection.execute("SCRIPT FLUSH")
                assert await connection.run(ECHO, (), ["x"]) == b"x"
                await connection.execute("SCRIPT FLUSH")
                calls = [ECHO.call((), ["a"]), ("PING",), ECHO.call((), ["b"])]
                assert await connection.execute_many(calls) == [b"a", b"PONG", b"b"]

    async def test_many_on_a_cluster(self, three_masters):
        async with RedisConnection(three_masters.url) as connection:
            calls = [ECHO.call([f"k{number}"], [number]) for number in range(50)]
            assert await connection.execute_many(calls) == [b"%d" % number for number in range(50)]


class TestLoops:
    async def test_several_at_once(self, own_server, clients_left):
        connection = RedisConnection(own_server.url, pool_size=2)

        async def ask(start):
            answers = [await connection.run(ECHO, (), [start + n]) for n in range(50)]
            assert answers == [b"%d" % (start + n) for n in range(50)]

        threads = [asyncio.to_thread(asyncio.run, ask(1000 * n)) for n in range(4)]
        await asyncio.gather(*threads, ask(5000))
        assert clients_left(own_server, 1) == 1
        await connection.close()
        assert clients_left(own_server, 0) == 0

    async def test_closing_ends_what_another_loop_has(self, own_server, clients_left):
        connection = RedisConnection(own_server.url)
        used = threading.Event()
        other = asyncio.new_event_loop()

        async def use():
            await connection.execute("PING")
            used.set()
            await over

        over = other.create_future()
        thread = asyncio.create_task(asyncio.to_thread(other.run_until_complete, use()))
        await asyncio.to_thread(used.wait)
        await connection.execute("PING")
        await connection.close()
        assert clients_left(own_server, 0) == 0
        other.call_soon_threadsafe(over.set_result, None)
        await thread
        other.close()

    async def test_the_callers_client(self, redis_server, prefix):
        client = driver.Redis.from_url(redis_server.url)
        async with RedisConnection(client=client, key_prefix=prefix) as connection:
            assert await connection.run(ECHO, (), ["x"]) == b"x"
            assert await connection.execute_many([("PING",), ECHO.call((), ["y"])]) == [
                b"PONG",
                b"y",
            ]
            assert f"127.0.0.1:{redis_server.port}" in repr(connection)

            def elsewhere():
                asyncio.run(connection.run(ECHO, (), ["x"]))

            with pytest.raises(ConfigurationError, match="another event loop"):
                await asyncio.to_thread(elsewhere)
        assert await client.ping()
        await client.aclose()

    async def test_the_callers_client_has_few_connections(self, redis_server, three_masters):
        for client in (
            driver.Redis.from_url(redis_server.url, max_connections=3),
            driver.RedisCluster.from_url(three_masters.url, max_connections=3),
        ):
            async with RedisConnection(client=client) as connection:
                calls = [connection.run(ECHO, ["k"], [number]) for number in range(100)]
                assert await asyncio.gather(*calls) == [b"%d" % number for number in range(100)]
            await client.aclose()

    def test_the_callers_client_in_a_second_loop(self, redis_server):
        client = driver.Redis.from_url(redis_server.url)
        connection = RedisConnection(client=client)

        async def once():
            assert await connection.run(ECHO, (), ["x"]) == b"x"
            await client.aclose()

        asyncio.run(once())
        for _ in range(2):
            with pytest.raises(ConfigurationError, match="another event loop"):
                asyncio.run(connection.run(ECHO, (), ["x"]))
        asyncio.run(connection.close())

    @pytest.mark.parametrize("client", [Redis(), "redis://db", driver.ConnectionPool()])
    def test_what_is_no_client(self, client):
        with pytest.raises(ConfigurationError, match=r"redis\.asyncio\.Redis"):
            RedisConnection(client=client)

    async def test_a_client_that_decodes(self, redis_server):
        client = driver.Redis.from_url(redis_server.url, decode_responses=True)
        with pytest.raises(ConfigurationError, match="decode_responses=False"):
            RedisConnection(client=client)
        await client.aclose()


FORK = """
import asyncio, os, sys, time
from locus_memory.backends.redis.connection.connection import RedisConnection
connection = RedisConnection(sys.argv[1])
uses = sys.argv[2] == "uses"

async def child():
    name = await connection.execute("CLIENT", "ID") if uses else None
    started = time.monotonic()
    await connection.close()
    return name, time.monotonic() - started < 5

async def parent():
    ours = await connection.execute("CLIENT", "ID")
    forked = os.fork()
    if forked == 0:
        # As multiprocessing does: a new loop in a new process.
        asyncio.events._set_running_loop(None)
        name, soon = asyncio.run(child())
        sys.stdout.flush()
        os._exit(7 if soon and name != ours else 8)
    _, status = await asyncio.to_thread(os.waitpid, forked, 0)
    assert os.waitstatus_to_exitcode(status) == 7, status
    async with asyncio.timeout(5):
        assert await connection.execute("CLIENT", "ID") == ours
    await connection.close()

asyncio.run(parent())
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("child", ["uses", "closes"])
def test_a_child_of_a_fork_leaves_the_connections_of_its_parent_alone(redis_server, child):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORK, redis_server.url, child],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")


class TestClosing:
    async def test_it_waits_for_what_runs(self, redis_server, connection, prefix):
        closing = RedisConnection(redis_server.url, pool_size=2)
        await closing.open()
        waiting = [
            asyncio.create_task(closing.execute("BLPOP", f"{prefix}{n}", 0)) for n in range(2)
        ]
        await asyncio.sleep(0)
        ended = asyncio.create_task(closing.close())
        await asyncio.sleep(0)
        for number in range(2):
            await connection.execute("RPUSH", f"{prefix}{number}", number)
        answers = await asyncio.gather(*waiting)
        assert [value for _, value in answers] == [b"0", b"1"]
        await ended

    async def test_whoever_stops_waiting_for_the_end_leaves_no_connection(
        self, own_server, raw, prefix, clients_left
    ):
        connection = RedisConnection(own_server.url, pool_size=2)
        await connection.open()
        waiting = asyncio.create_task(connection.execute("BLPOP", f"{prefix}0", 0))
        await asyncio.sleep(0)
        closing = asyncio.create_task(connection.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        async with asyncio.timeout(30):
            with pytest.raises(BackendClosedError):
                await waiting
        assert clients_left(own_server, 0) == 0

    async def test_it_does_not_wait_for_what_was_cancelled_in_the_queue(self, redis_server):
        connection = RedisConnection(redis_server.url, pool_size=1)
        await connection.open()
        for _ in range(3):
            runs = asyncio.create_task(connection.execute("PING"))
            waits = [asyncio.create_task(connection.execute("PING")) for _ in range(9)]
            await asyncio.sleep(0)
            for each in waits:
                each.cancel()
            await runs
        async with asyncio.timeout(5):
            await connection.close()

    @pytest.mark.slow
    async def test_no_connection_is_left(self, own_server, raw, clients_left):
        for _ in range(3):
            connection = RedisConnection(own_server.url, pool_size=8)
            calls = [connection.run(ECHO, (), [n]) for n in range(12)]
            assert await asyncio.gather(*calls) == [b"%d" % n for n in range(12)]
            assert len(raw(own_server).client_list()) <= 9
            await connection.close()
            assert clients_left(own_server, 0) == 0

    async def test_with_a_password_over_tcp_and_a_socket(self, tmp_path):
        path = tmp_path / "s"
        with RedisServer(password="hunter2", unixsocket=path) as server:
            for url in (server.url, f"unix://{path}?password=hunter2"):
                async with RedisConnection(url) as connection:
                    assert await connection.execute("PING") == b"PONG"
            with pytest.raises(ConfigurationError) as caught:
                await RedisConnection(f"redis://:wr0ng@127.0.0.1:{server.port}").open()
            assert "wr0ng" not in str(caught.value)
            for url in (f"127.0.0.1:{server.port}", f"unix://{path}"):
                with pytest.raises(ConfigurationError, match=r"[Aa]uthentication"):
                    await RedisConnection(url).open()
            with pytest.raises(ConfigurationError, match="DB index"):
                await RedisConnection(f"{server.url}/99").open()


def test_a_full_server_says_what_helps():
    words = "MISCONF Redis is configured to save RDB snapshots, but it is unable to persist to disk"
    assert str(translate(exceptions.ResponseError(words), "db")).endswith(f"; {NO_ROOM}")
    full = exceptions.OutOfMemoryError("command not allowed when used memory > 'maxmemory'.")
    assert "deleting items and whole threads makes room" in str(translate(full, "db"))
