from __future__ import annotations

from locus_memory.backends.file.checkpoints import FileCheckpointer
from locus_memory.backends.inmemory.checkpoints import MemoryCheckpointer
from locus_memory.backends.sqlite.checkpoints import SQLiteCheckpointer
from locus_memory.testing.checkpoints import CheckpointerConformance


class TestMemory(CheckpointerConformance):
    def make_checkpointer(self, clock, tmp_path, **options):
        return MemoryCheckpointer(clock=clock, **options)


class TestFile(CheckpointerConformance):
    def make_checkpointer(self, clock, tmp_path, **options):
        return FileCheckpointer(tmp_path / "checkpoints", clock=clock, **options)


class TestSQLite(CheckpointerConformance):
    def make_checkpointer(self, clock, tmp_path, **options):
        return SQLiteCheckpointer(tmp_path / "memory.db", clock=clock, **options)
