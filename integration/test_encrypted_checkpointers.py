"""Encrypted checkpoints keep the contract on a server; `tests/conformance` has them without one."""

from __future__ import annotations

import pytest

from locus_memory.backends.postgresql.checkpoints import PostgreSQLCheckpointer
from locus_memory.encryption import EncryptingCheckpointer
from locus_memory.testing.checkpoints import CheckpointerConformance
from locus_memory.testing.servers import PostgreSQLServer
from tests.conformance.test_encrypted_checkpointers import KEYS


@pytest.fixture(scope="module")
def postgresql():
    with PostgreSQLServer(max_connections=200) as server:
        yield server


class TestPostgreSQL(CheckpointerConformance):
    @pytest.fixture(autouse=True)
    def server(self, postgresql, name_of):
        self.url, self.name_of = postgresql.url, name_of

    def make_checkpointer(self, clock, tmp_path, **options):
        schema = self.name_of(tmp_path)
        inner = PostgreSQLCheckpointer(self.url, schema=schema, clock=clock, **options)
        return EncryptingCheckpointer(inner, KEYS)
