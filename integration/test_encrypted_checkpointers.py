"""Encrypted checkpoints keep the contract on the backends that `tests/conformance` leaves out."""

from __future__ import annotations

import pytest

from locus_memory.backends.file.checkpoints import FileCheckpointer
from locus_memory.backends.postgresql.checkpoints import PostgreSQLCheckpointer
from locus_memory.backends.redis.checkpoints import RedisCheckpointer
from locus_memory.encryption import EncryptingCheckpointer
from locus_memory.testing.checkpoints import CheckpointerConformance
from locus_memory.testing.servers import PostgreSQLServer, RedisServer
from tests.conformance.test_encrypted_checkpointers import KEYS


@pytest.fixture(scope="module")
def redis():
    with RedisServer() as server:
        yield server


@pytest.fixture(scope="module")
def postgresql():
    with PostgreSQLServer(max_connections=200) as server:
        yield server


class TestFile(CheckpointerConformance):
    # Each save lists the folder of its thread.
    long_thread = 205

    def make_checkpointer(self, clock, tmp_path, **options):
        inner = FileCheckpointer(tmp_path / "checkpoints", clock=clock, **options)
        return EncryptingCheckpointer(inner, KEYS)


class TestRedis(CheckpointerConformance):
    @pytest.fixture(autouse=True)
    def server(self, redis, name_of):
        self.url, self.name_of = redis.url, name_of

    def make_checkpointer(self, clock, tmp_path, **options):
        prefix = f"{self.name_of(tmp_path)}:"
        inner = RedisCheckpointer(self.url, key_prefix=prefix, clock=clock, **options)
        return EncryptingCheckpointer(inner, KEYS)


class TestPostgreSQL(CheckpointerConformance):
    @pytest.fixture(autouse=True)
    def server(self, postgresql, name_of):
        self.url, self.name_of = postgresql.url, name_of

    def make_checkpointer(self, clock, tmp_path, **options):
        schema = self.name_of(tmp_path)
        inner = PostgreSQLCheckpointer(self.url, schema=schema, clock=clock, **options)
        return EncryptingCheckpointer(inner, KEYS)
