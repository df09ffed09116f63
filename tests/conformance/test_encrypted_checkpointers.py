"""Encrypted checkpoints keep the contract; `integration/` has more backends under them."""

from __future__ import annotations

from locus_memory.backends.inmemory.checkpoints import MemoryCheckpointer
from locus_memory.backends.sqlite.checkpoints import SQLiteCheckpointer
from locus_memory.encryption import EncryptingCheckpointer, EncryptionKeys
from locus_memory.testing.checkpoints import CheckpointerConformance

KEYS = EncryptionKeys({"old": b"o" * 16, "new": b"n" * 32}, active="new")


class TestMemory(CheckpointerConformance):
    def make_checkpointer(self, clock, tmp_path, **options):
        return EncryptingCheckpointer(MemoryCheckpointer(clock=clock, **options), KEYS)


class TestSQLite(CheckpointerConformance):
    def make_checkpointer(self, clock, tmp_path, **options):
        inner = SQLiteCheckpointer(tmp_path / "memory.db", clock=clock, **options)
        return EncryptingCheckpointer(inner, KEYS)
