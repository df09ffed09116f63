"""Both contracts, whole, behind PgBouncer in transaction mode."""

from __future__ import annotations

import pytest

from integration.machines.postgresql_servers import PgBouncer
from locus_memory.registry import get_checkpointer, get_store
from locus_memory.testing import CheckpointerConformance, StoreConformance
from locus_memory.testing.servers import PostgreSQLServer

CLEAR = """
DO $$ DECLARE statement text; BEGIN
  FOR statement IN SELECT format('TRUNCATE %s CASCADE', oid::regclass) FROM pg_class
    WHERE relnamespace = to_regnamespace('{schema}') AND relkind = 'r'
      AND relname NOT LIKE '%migrations'
  LOOP EXECUTE statement; END LOOP;
END $$
"""
"""Empties a schema; to make one takes longer than most tests."""


@pytest.fixture(scope="module")
def bouncer():
    if PgBouncer.program is None:
        pytest.skip("pgbouncer is not installed: apt-get install pgbouncer")
    with PostgreSQLServer(max_connections=50) as server, PgBouncer(server) as pooler:
        yield pooler


class BehindPgBouncer:
    @pytest.fixture(autouse=True)
    def pooled(self, bouncer):
        self.bouncer, self.folders = bouncer, []

    @property
    def url(self):
        return self.bouncer.url

    def options(self, folder):
        """Return the options of a folder: its schema, empty at first."""
        if folder not in self.folders:
            self.folders.append(folder)
            schema = f"t{len(self.folders)}"
            self.bouncer.server.run(CLEAR.replace("{schema}", schema))
        schema = f"t{self.folders.index(folder) + 1}"
        return {"schema": schema, "pooler": not self.bouncer.keeps_statements}


class TestStore(BehindPgBouncer, StoreConformance):
    def make_store(self, clock, tmp_path):
        return get_store(self.url, clock=clock, **self.options(tmp_path))


class TestCheckpointer(BehindPgBouncer, CheckpointerConformance):
    def make_checkpointer(self, clock, tmp_path, **options):
        return get_checkpointer(self.url, clock=clock, **self.options(tmp_path), **options)
