from __future__ import annotations

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.testing import StoreConformance


class TestInMemoryStore(StoreConformance):
    def make_store(self, clock, tmp_path):
        return InMemoryStore(clock=clock)
