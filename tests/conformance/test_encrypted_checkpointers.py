"""Encrypted checkpoints keep the contract on every backend that runs here."""

from __future__ import annotations

import hashlib

import pytest

from locus_memory.backends.file.checkpoints import FileCheckpointer
from locus_memory.backends.inmemory.checkpoints import MemoryCheckpointer
from locus_memory.backends.postgresql.checkpoints import PostgreSQLCheckpointer
from locus_memory.backends.redis.checkpoints import RedisCheckpointer
from locus_memory.backends.sqlite.checkpoints import SQLiteCheckpointer
from locus_memory.encryption import EncryptingCheckpointer, EncryptionKeys
from locus_memory.testing.checkpoints import CheckpointerConformance

KEYS = EncryptionKeys({"old": b"o" * 16, "new": b"n" * 32}, active="new")


class TestMemory(CheckpointerConformance):
    def make_checkpointer(self, clock, tmp_path, **options):
        return EncryptingCheckpointer(MemoryCheckpointer(clock=clock, **options), KEYS)


class TestFile(CheckpointerConformance):
    # Each save lists the folder of its thread.
    long_thread = 205

    def make_checkpointer(self, clock, tmp_path, **options):
        inner = FileCheckpointer(tmp_path / "checkpoints", clock=clock, **options)
        return EncryptingCheckpointer(inner, KEYS)


class TestSQLite(CheckpointerConformance):
    def make_checkpointer(self, clock, tmp_path, **options):
        inner = SQLiteCheckpointer(tmp_path / "memory.db", clock=clock, **options)
        return EncryptingCheckpointer(inner, KEYS)


class TestRedis(CheckpointerConformance):
    @pytest.fixture(autouse=True)
    def server(self, redis_server):
        self.url = redis_server.url

    def make_checkpointer(self, clock, tmp_path, **options):
        prefix = "t" + hashlib.sha256(str(tmp_path).encode()).hexdigest()[:16]
        inner = RedisCheckpointer(self.url, key_prefix=f"{prefix}:", clock=clock, **options)
        return EncryptingCheckpointer(inner, KEYS)


class TestPostgreSQL(CheckpointerConformance):
    @pytest.fixture(autouse=True)
    def server(self, postgresql_server, schema_of):
        self.url = postgresql_server.url
        self.schema_of = schema_of

    def make_checkpointer(self, clock, tmp_path, **options):
        schema = self.schema_of(tmp_path)
        inner = PostgreSQLCheckpointer(self.url, schema=schema, clock=clock, **options)
        return EncryptingCheckpointer(inner, KEYS)
