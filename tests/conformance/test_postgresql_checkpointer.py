"""The PostgreSQL checkpointer keeps the contract."""

from __future__ import annotations

from hashlib import blake2b

import pytest

from locus_memory.backends.postgresql.checkpoints import PostgreSQLCheckpointer
from locus_memory.testing.checkpoints import CheckpointerConformance


class TestPostgreSQL(CheckpointerConformance):
    @pytest.fixture(autouse=True)
    def server(self, postgresql_server):
        self.url = postgresql_server.url

    def make_checkpointer(self, clock, tmp_path, **options):
        schema = "t_" + blake2b(bytes(tmp_path), digest_size=8).hexdigest()
        return PostgreSQLCheckpointer(self.url, schema=schema, clock=clock, **options)
