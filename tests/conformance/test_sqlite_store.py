"""The SQLite store keeps the contract."""

from __future__ import annotations

from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.testing.store import StoreConformance


class TestSQLiteStore(StoreConformance):
    def make_store(self, clock, tmp_path):
        return SQLiteStore(tmp_path / "store.db", clock=clock)
