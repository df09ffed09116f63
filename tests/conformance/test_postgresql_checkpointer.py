"""The PostgreSQL checkpointer keeps the contract."""

from __future__ import annotations

import pytest

from locus_memory.backends.postgresql.checkpoints import PostgreSQLCheckpointer
from locus_memory.testing.checkpoints import CheckpointerConformance


class TestPostgreSQL(CheckpointerConformance):
    @pytest.fixture(autouse=True)
    def server(self, postgresql_server, schema_of):
        self.url = postgresql_server.url
        self.schema_of = schema_of

    def make_checkpointer(self, clock, tmp_path, **options):
        schema = self.schema_of(tmp_path)
        return PostgreSQLCheckpointer(self.url, schema=schema, clock=clock, **options)
