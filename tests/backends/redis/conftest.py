"""Servers and ways to them that tests of Redis share."""

from __future__ import annotations

import asyncio
import hashlib
import time
from contextlib import ExitStack, contextmanager, suppress

import pytest
from redis import Redis

from locus_memory.backends.redis.connection.connection import RedisConnection
from locus_memory.events import subscribe
from locus_memory.testing.servers import RedisServer, ValkeyServer


@pytest.fixture
def prefix(tmp_path):
    """A key prefix of the test's own."""
    return f"t{hashlib.sha256(str(tmp_path).encode()).hexdigest()[:16]}:"


@pytest.fixture
def own_server():
    """A server that the test may kill, fill and reconfigure."""
    with RedisServer() as server:
        yield server


@pytest.fixture
def raw():
    """Returns a plain client of a server, to look at it and to change it."""
    made = {}
    with ExitStack() as stack:

        def client_of(server):
            if server.url not in made:
                made[server.url] = stack.enter_context(Redis.from_url(server.url))
            return made[server.url]

        yield client_of


@pytest.fixture
def clients_left(raw):
    """Returns how many clients a server has but the one that asks, once it is this number."""

    def count(server, expected):
        for _ in range(500):
            left = len(raw(server).client_list()) - 1
            if left == expected:
                break
            # It may not have noticed yet that somebody left.
            time.sleep(0.01)
        return left

    return count


@pytest.fixture
async def connection(redis_server, prefix):
    """A connection to Redis."""
    async with RedisConnection(redis_server.url, key_prefix=prefix) as opened:
        yield opened


@pytest.fixture
def events():
    """What is emitted."""
    found = []
    unsubscribe = subscribe(found.append)
    yield found
    unsubscribe()


def join(servers):
    """Make a cluster of three servers."""
    with ExitStack() as stack:
        clients = [stack.enter_context(Redis.from_url(server.url)) for server in servers]
        bounds = (0, 5461, 10923, 16384)
        for place, client in enumerate(clients):
            client.execute_command("CLUSTER ADDSLOTSRANGE", bounds[place], bounds[place + 1] - 1)
            client.execute_command("CLUSTER SET-CONFIG-EPOCH", place + 1)
            client.execute_command("CLUSTER MEET", "127.0.0.1", servers[0].port)
        for client in clients:
            while not is_whole(client):
                time.sleep(0.02)


@contextmanager
def masters():
    with ExitStack() as stack:
        settings = {"cluster_enabled": "yes", "cluster_require_full_coverage": "no"}
        servers = [stack.enter_context(ValkeyServer(**settings)) for _ in range(3)]
        join(servers)
        yield servers


@pytest.fixture(scope="session")
def three_masters():
    """One server of a cluster of three."""
    with masters() as servers:
        yield servers[0]


@pytest.fixture
def own_cluster():
    """Three masters that the test may kill."""
    with masters() as servers:
        yield servers


def is_whole(client):
    facts = client.execute_command("CLUSTER INFO")
    # The state is "ok" before everybody knows who has which slots.
    known = (facts["cluster_known_nodes"], facts["cluster_slots_assigned"])
    return facts["cluster_state"] == "ok" and known == ("3", "16384")


class Proxy:
    """Passes on what a client and a server say, until it is told to cut them off.

    What a client says can be late: all that has a mark is held until it is released.
    """

    def __init__(self, target):
        self.target = target
        self.accepted = 0
        self.cuts_next_answer = False
        self.writers = []
        self.mark = None
        self.holds, self.released, self.delivered = (asyncio.Event() for _ in range(3))

    def hold(self, mark):
        self.mark = mark
        self.holds.clear()
        self.released.clear()
        self.delivered.clear()

    def release(self):
        self.released.set()

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.url = f"redis://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_):
        self.server.close()
        self.release()
        self.cut()
        await self.server.wait_closed()

    def cut(self):
        for writer in self.writers:
            writer.transport.abort()
        self.writers.clear()

    async def serve(self, reader, writer):
        self.accepted += 1
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target.port)
        self.writers += [writer, far_writer]
        await asyncio.gather(
            self.copy(reader, far_writer), self.copy(far_reader, writer, answers=True)
        )

    async def copy(self, reader, writer, *, answers=False):
        with suppress(ConnectionError):
            while data := await reader.read(2**16):
                if answers and self.cuts_next_answer:
                    self.cuts_next_answer = False
                    self.cut()
                    return
                is_held = not answers and self.mark is not None and self.mark in data
                if is_held:
                    self.holds.set()
                    await self.released.wait()
                writer.write(data)
                if is_held:
                    self.delivered.set()
        writer.close()


@pytest.fixture
def proxy_to():
    """Makes a proxy in front of a server."""
    return Proxy


@pytest.fixture
def calls(monkeypatch):
    """What scripts were called, without those that are loaded meanwhile."""
    found, execute_many = [], RedisConnection.execute_many

    async def record(self, commands, *, again=False):
        listed = list(commands)
        found.extend(listed)
        return await execute_many(self, listed, again=again)

    monkeypatch.setattr(RedisConnection, "execute_many", record)
    return found
