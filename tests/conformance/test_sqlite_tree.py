"""A tree on SQLite keeps its promises."""

from __future__ import annotations

from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.testing.memory_tree import MemoryTreeConformance


class TestSQLiteTree(MemoryTreeConformance):
    def make_store(self, clock, tmp_path):
        return SQLiteStore(tmp_path / "store.db", clock=clock)
