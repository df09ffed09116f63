"""The PostgreSQL store keeps the contract."""

from __future__ import annotations

from hashlib import blake2b

import pytest

from locus_memory.backends.postgresql.store import PostgreSQLStore
from locus_memory.testing.store import StoreConformance


class TestPostgreSQLStore(StoreConformance):
    @pytest.fixture(autouse=True)
    def server(self, postgresql_server, schema_of, tmp_path):
        self.url = postgresql_server.url
        self.schema_of = schema_of
        self.folder = tmp_path

    def make_store(self, clock, tmp_path):
        # A folder that a test makes is for a store that nobody has opened before.
        own = "t_" + blake2b(bytes(tmp_path), digest_size=8).hexdigest()
        schema = self.schema_of(tmp_path) if tmp_path == self.folder else own
        return PostgreSQLStore(self.url, schema=schema, clock=clock)
