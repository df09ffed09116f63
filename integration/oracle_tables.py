"""Tables of Oracle Database for tests, and the servers that hold them."""

from __future__ import annotations

import gc
import os
import secrets
import warnings
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

import docker
import pytest
from docker.errors import DockerException

from locus_memory.backends.oracle import OraclePool
from locus_memory.backends.oracle.connection.connection import Session
from locus_memory.errors import BackendError, MissingDriverError
from locus_memory.testing.servers import OracleServer

IMAGE = "gvenzl/oracle-free:23-slim-faststart"
DROPS = (
    *(
        f"DROP TABLE {{{table}}} PURGE"
        for table in ("words", "vectors", "items", "checkpoints", "threads", "migrations")
    ),
    *(f"DROP SEQUENCE {{{sequence}}}" for sequence in ("revisions", "sequences")),
)


def docker_has_the_image():
    with warnings.catch_warnings():
        # Where nobody answers, the client of Docker leaves its socket to the collector.
        warnings.simplefilter("ignore", ResourceWarning)
        found = images()
        gc.collect()
    return bool(found)


def images():
    try:
        client = docker.from_env()
    except DockerException:
        return []
    try:
        return client.images.list(IMAGE)
    except DockerException:
        return []
    finally:
        client.close()


@contextmanager
def of_docker():
    from testcontainers.oracle import OracleDbContainer  # noqa: PLC0415 - only with Docker

    options = {"username": "agent", "password": "secret", "dbname": "FREEPDB1"}
    with OracleDbContainer(IMAGE, **options) as server:
        host, port = server.get_container_host_ip(), server.get_exposed_port(1521)
        yield f"oracle://agent:secret@{host}:{port}/FREEPDB1"


@contextmanager
def serving_oracle():
    """Give the URL of a server, or skip what needs it and say why."""
    with ExitStack() as stack:
        if url := os.environ.get("LOCUS_TEST_ORACLE_URL"):
            yield url
        elif docker_has_the_image():
            yield stack.enter_context(of_docker())
        else:
            yield stack.enter_context(serving_protocol())


@contextmanager
def serving_protocol(**options):
    """Give the URL of a server of Oracle's protocol, or skip what needs it and say why."""
    with ExitStack() as stack:
        try:
            server = stack.enter_context(OracleServer(**options))
        except MissingDriverError as error:
            pytest.skip(str(error))
        yield server.url


class Tables:
    """Tables that tests use one after the other: to create them takes longer than most tests.

    Args:
        url: The database.
    """

    def __init__(self, url):
        self.url = url
        self._run, self._count = secrets.token_hex(4).upper(), 0
        self._own, self._used = [], {}

    def prefix(self, folder, tmp_path):
        """Return the prefix of empty tables for a folder; of new ones, unless it is the test's."""
        if folder not in self._used:
            is_own = folder == tmp_path and self._own
            self._used[folder] = self._own.pop() if is_own else self._new()
        return self._used[folder]

    def _new(self):
        self._count += 1
        return f"T{self._run}_{self._count}_"

    async def empty(self):
        """Empty the tables of a test that has ended, for the next ones."""
        for prefix in self._used.values():
            async with OraclePool(self.url, table_prefix=prefix) as pool:
                await pool.transact(delete_all)
            self._own.append(prefix)
        self._used.clear()

    async def drop(self):
        for prefix in self._own:
            async with OraclePool(self.url, table_prefix=prefix) as pool:
                for statement in DROPS:
                    # Not every release has a table of vectors.
                    with suppress(BackendError):
                        await pool.transact(partial(Session.execute, template=statement, binds={}))


async def delete_all(session):
    # Words and vectors go with their items.
    for table in ("items", "checkpoints", "threads"):
        await session.execute(f"DELETE FROM {{{table}}}", {})
    await session.commit()


class OnOracle:
    @pytest.fixture(autouse=True)
    async def server(self, oracle_tables, tmp_path):
        self.url = oracle_tables.url
        self.prefix = lambda folder: oracle_tables.prefix(folder, tmp_path)
        yield
        await oracle_tables.empty()
