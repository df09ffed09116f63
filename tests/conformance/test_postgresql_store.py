"""The PostgreSQL store keeps the contract."""

from __future__ import annotations

from hashlib import blake2b

import pytest

from locus_memory.backends.postgresql.store import PostgreSQLStore
from locus_memory.testing.store import StoreConformance


class TestPostgreSQLStore(StoreConformance):
    @pytest.fixture(autouse=True)
    def server(self, postgresql_server):
        self.url = postgresql_server.url

    def make_store(self, clock, tmp_path):
        schema = "t_" + blake2b(bytes(tmp_path), digest_size=8).hexdigest()
        return PostgreSQLStore(self.url, schema=schema, clock=clock)
