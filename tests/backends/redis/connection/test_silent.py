"""Several hosts, some of which are silent: they are reached, and never answer."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack, asynccontextmanager, contextmanager

import pytest

from locus_memory.backends.redis.connection.connection import RedisConnection
from locus_memory.errors import BackendUnavailableError

SERVICE = "mymaster"


@contextmanager
def silence():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@asynccontextmanager
async def answering(answers):
    """A server with these answers to commands; yields its port and what it is asked."""
    asked, tasks = [], []

    async def serve(reader, writer):
        tasks.append(asyncio.current_task())
        try:
            while count := await reader.readline():
                words = []
                for _ in range(int(count[1:])):
                    size = int((await reader.readline())[1:])
                    words.append((await reader.readexactly(size + 2))[:-2].decode().upper())
                asked.append(" ".join(words[:2]))
                writer.write(answers(words))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], asked
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def sentinel_of(port):
    """Return the answers of a sentinel whose primary has this port."""
    told = ["name", SERVICE, "ip", "127.0.0.1", "port", f"{port}", "flags", "master"]
    told += ["num-other-sentinels", "2"]
    parts = "".join(f"${len(part)}\r\n{part}\r\n" for part in told)
    masters = f"*1\r\n*{len(told)}\r\n{parts}".encode()
    return lambda words: masters if words[0] == "SENTINEL" else b"+OK\r\n"


async def test_silent_sentinels_take_their_part_of_the_time_once(redis_server):
    loop = asyncio.get_running_loop()
    async with answering(sentinel_of(redis_server.port)) as (port, asked):
        with silence() as first, silence() as second:
            hosts = f"127.0.0.1:{first},127.0.0.1:{second},127.0.0.1:{port}"
            url = f"redis+sentinel://{hosts}/{SERVICE}"
            connection = RedisConnection(url, connect_timeout=2, pool_size=4)
            try:
                assert await connection.execute("ECHO", "a", again=True) == b"a"
                begun, count = loop.time(), len(asked)
                waits = (connection.execute("WAIT", "1", "50", again=True) for _ in range(4))
                await asyncio.gather(*waits)
                # More connections were made, and the one that answered was asked first.
                assert len(asked) > count
                assert loop.time() - begun < 0.9
            finally:
                await connection.close()


async def test_where_all_sentinels_are_silent_the_error_comes_in_time():
    with silence() as first, silence() as second:
        url = f"redis+sentinel://127.0.0.1:{first},127.0.0.1:{second}/{SERVICE}"
        connection = RedisConnection(url, connect_timeout=0.3)
        with pytest.raises(BackendUnavailableError):
            async with asyncio.timeout(10):
                await connection.execute("PING", again=True)
        await connection.close()


@pytest.mark.parametrize("number", range(6))
async def test_a_silent_seed_of_a_cluster_is_no_failure(number):
    """The driver asks the seeds in any order."""
    async with answering(lambda words: answer_of_node(words, port)) as (port, _):
        with ExitStack() as stack:
            silent = [stack.enter_context(silence()) for _ in range(2)]
            hosts = ",".join(f"127.0.0.1:{each}" for each in (*silent, port))
            connection = RedisConnection(f"redis+cluster://{hosts}", connect_timeout=0.6)
            try:
                async with asyncio.timeout(20):
                    assert await connection.execute("GET", "key", again=True) == b"a"
            finally:
                await connection.close()


def answer_of_node(words, port):
    """Return the answer of the only node of a cluster."""
    if words[:2] == ["CLUSTER", "SLOTS"]:
        node = f"*3\r\n$9\r\n127.0.0.1\r\n:{port}\r\n${40}\r\n{'a' * 40}\r\n"
        return f"*1\r\n*3\r\n:0\r\n:16383\r\n{node}".encode()
    if words[0] == "COMMAND":
        return b"*0\r\n"
    if words[0] == "INFO":
        told = b"redis_version:8.0.0\r\nredis_mode:cluster\r\ncluster_enabled:1\r\n"
        return b"$%d\r\n%s\r\n" % (len(told), told)
    return b"$1\r\na\r\n" if words[0] == "GET" else b"+OK\r\n"
