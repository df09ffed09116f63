"""The store's contract, whole, on a wrapper that differs little from one in `tests/conformance`."""

from __future__ import annotations

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.store.wrappers import EncryptingStore
from locus_memory.testing import StoreConformance


class TestEncryptingStoreThatTakesOver(StoreConformance):
    def make_store(self, clock, tmp_path):
        inner = InMemoryStore(clock=clock)
        keys = {"new": b"n" * 32}
        return EncryptingStore(inner, keys, active="new", clock=clock, accept_plain=True)
