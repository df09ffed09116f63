"""Document indexes keep their rules on every store."""

from __future__ import annotations

import hashlib

import pytest

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.backends.postgresql.store import PostgreSQLStore
from locus_memory.backends.redis.store import RedisStore
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.testing import DocumentConformance


class TestInMemoryDocuments(DocumentConformance):
    def make_store(self, clock, tmp_path):
        return InMemoryStore(clock=clock)


class TestSQLiteDocuments(DocumentConformance):
    def make_store(self, clock, tmp_path):
        return SQLiteStore(tmp_path / "store.db", clock=clock)


class TestPostgreSQLDocuments(DocumentConformance):
    @pytest.fixture(autouse=True)
    def server(self, postgresql_server, schema_of):
        self.url = postgresql_server.url
        self.schema_of = schema_of

    def make_store(self, clock, tmp_path):
        return PostgreSQLStore(self.url, schema=self.schema_of(tmp_path), clock=clock)


class TestRedisDocuments(DocumentConformance):
    @pytest.fixture(autouse=True)
    def server(self, redis_server):
        self.url = redis_server.url

    def make_store(self, clock, tmp_path):
        prefix = hashlib.sha256(str(tmp_path).encode()).hexdigest()[:16]
        return RedisStore(self.url, key_prefix=f"t{prefix}:", clock=clock)
