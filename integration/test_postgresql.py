"""Both contracts, whole, on each PostgreSQL there is."""

from __future__ import annotations

import pytest

from locus_memory.registry import get_checkpointer, get_store
from locus_memory.testing import CheckpointerConformance, StoreConformance


class OnPostgreSQL:
    @pytest.fixture(autouse=True)
    def server(self, postgresql_url, name_of):
        self.url, self.name_of = postgresql_url, name_of


class TestPostgreSQLStore(OnPostgreSQL, StoreConformance):
    def make_store(self, clock, tmp_path):
        return get_store(self.url, schema=self.name_of(tmp_path), clock=clock)


class TestPostgreSQLCheckpointer(OnPostgreSQL, CheckpointerConformance):
    def make_checkpointer(self, clock, tmp_path, **options):
        return get_checkpointer(self.url, schema=self.name_of(tmp_path), clock=clock, **options)
