from __future__ import annotations

from locus_memory.backends.file.checkpoints import FileCheckpointer
from locus_memory.backends.inmemory.checkpoints import InMemoryDeltaStorage, MemoryCheckpointer
from locus_memory.backends.sqlite.checkpoints import SQLiteCheckpointer
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.checkpoint.storage import DeltaStorage
from locus_memory.testing.checkpoints import CheckpointerConformance


class TestMemory(CheckpointerConformance):
    def make_checkpointer(self, clock, tmp_path, **options):
        return MemoryCheckpointer(clock=clock, **options)


class TestFile(CheckpointerConformance):
    # Each save lists the folder of its thread.
    long_thread = 205

    def make_checkpointer(self, clock, tmp_path, **options):
        return FileCheckpointer(tmp_path / "checkpoints", clock=clock, **options)


class TestSQLite(CheckpointerConformance):
    def make_checkpointer(self, clock, tmp_path, **options):
        return SQLiteCheckpointer(tmp_path / "memory.db", clock=clock, **options)


class Plain(InMemoryDeltaStorage):
    """A storage with no more than a backend must supply: the rest is the contract's own."""

    find = DeltaStorage.find
    retrieve_chain = DeltaStorage.retrieve_chain
    copy_thread = DeltaStorage.copy_thread
    query_by_metadata = DeltaStorage.query_by_metadata


class TestDefaults(CheckpointerConformance):
    def make_checkpointer(self, clock, tmp_path, **options):
        return DeltaCheckpointer(Plain(), clock=clock, **options)
