"""The store's contract, whole, on stores that differ little from one in `tests/conformance`."""

from __future__ import annotations

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.store.wrappers import EncryptingStore, StoreWrapper
from locus_memory.testing import StoreConformance
from tests.conformance.test_checked_store import NoClaims


class TestStoreWrapper(StoreConformance):
    def make_store(self, clock, tmp_path):
        return StoreWrapper(InMemoryStore(clock=clock))


class TestNoClaims(StoreConformance):
    def make_store(self, clock, tmp_path):
        return NoClaims(clock)


class TestEncryptingStoreThatTakesOver(StoreConformance):
    def make_store(self, clock, tmp_path):
        inner = InMemoryStore(clock=clock)
        keys = {"new": b"n" * 32}
        return EncryptingStore(inner, keys, active="new", clock=clock, accept_plain=True)
