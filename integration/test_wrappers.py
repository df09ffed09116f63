"""The store's contract, whole, on stores that differ little from one in `tests/conformance`."""

from __future__ import annotations

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.store.wrappers import (
    EncryptingStore,
    MetricsStore,
    ReadOnlyStore,
    RetryingStore,
    StoreWrapper,
)
from locus_memory.store.wrappers.base import READS
from locus_memory.testing import StoreConformance
from tests.conformance.test_checked_store import NoClaims


class ReadThroughStore(StoreWrapper):
    """Writes to the inner store, and reads it through a `ReadOnlyStore`."""

    def __init__(self, store):
        super().__init__(store)
        self.reader = ReadOnlyStore(store)


for _name in READS:

    def _read(self, *args, _name=_name, **kwargs):
        return getattr(self.reader, _name)(*args, **kwargs)

    setattr(ReadThroughStore, _name, _read)


class TestWrappersAroundEachOther(StoreConformance):
    """Each of them hands on whatever the contract asks: one that did not would fail here."""

    def make_store(self, clock, tmp_path):
        return ReadThroughStore(MetricsStore(RetryingStore(InMemoryStore(clock=clock))))


class TestNoClaims(StoreConformance):
    def make_store(self, clock, tmp_path):
        return NoClaims(clock)


class TestEncryptingStoreThatTakesOver(StoreConformance):
    def make_store(self, clock, tmp_path):
        inner = InMemoryStore(clock=clock)
        keys = {"new": b"n" * 32}
        return EncryptingStore(inner, keys, active="new", clock=clock, accept_plain=True)
