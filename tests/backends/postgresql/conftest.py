"""Databases and disturbances for the tests of PostgreSQL."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from hashlib import blake2b

import pytest

from locus_memory.backends.postgresql.connection.connection import PostgreSQLPool

PATIENCE = 60


@pytest.fixture
def url(postgresql_server):
    return postgresql_server.url


@pytest.fixture
def own_tables():
    """Asked for by tests that make, change or drop tables, or depend on plans: see `schema`."""


@pytest.fixture
def schema(request, tmp_path):
    """An empty schema that has the tables of the test before it, or a new one of the test's own."""
    if "own_tables" in request.fixturenames:
        return "t_" + blake2b(bytes(tmp_path), digest_size=8).hexdigest()
    return request.getfixturevalue("schema_of")(tmp_path)


@pytest.fixture
async def make_pool(url, schema):
    """Makes pools, which are closed with the test."""
    pools = []

    def make(database=url, **options):
        pools.append(PostgreSQLPool(database, **{"schema": schema, **options}))
        return pools[-1]

    yield make
    for pool in pools:
        await pool.close()


@pytest.fixture
async def pool(make_pool):
    return make_pool()


async def wait_until(condition):
    """Wait until an asynchronous condition holds."""
    async with asyncio.timeout(PATIENCE):
        while not await condition():  # noqa: ASYNC110 - the server rings no bell
            await asyncio.sleep(0.01)


@pytest.fixture
def until():
    return wait_until


@pytest.fixture
def run_python():
    """Runs a script in a process of its own; warnings are errors, and are printed."""

    def run(script, *arguments):
        done = subprocess.run(
            [sys.executable, "-X", "dev", "-W", "error", "-c", script, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        # The development mode of asyncio tells of slow steps, which a busy machine has.
        lines = done.stderr.splitlines(keepends=True)
        done.stderr = "".join(line for line in lines if not line.startswith("Executing <"))
        return done

    return run


class Proxy:
    """Between a client and a server; cuts all its connections when told to."""

    def __init__(self, port):
        self.target = port
        self.port = 0
        self.served = 0
        self.refused = 0
        self.writers = set()
        self.refusing = False

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self.server.close()
        self.cut()
        await asyncio.sleep(0)

    async def serve(self, reader, writer):
        if self.refusing:
            self.refused += 1
            writer.transport.abort()
            return
        self.served += 1
        there, back = await asyncio.open_connection("127.0.0.1", self.target)
        self.writers |= {writer, back}
        await asyncio.gather(self.pump(reader, back), self.pump(there, writer))

    async def pump(self, reader, writer):
        try:
            while data := await reader.read(65536):
                writer.write(data)
        except ConnectionError:
            pass
        finally:
            writer.close()

    def cut(self):
        for writer in self.writers:
            writer.transport.abort()
        self.writers.clear()


@pytest.fixture
async def proxy(postgresql_server):
    async with Proxy(postgresql_server.port) as proxy:
        proxy.url = postgresql_server.url.replace(str(postgresql_server.port), str(proxy.port))
        yield proxy
