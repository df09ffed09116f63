"""A tree on the store in memory keeps its promises."""

from __future__ import annotations

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.testing.memory_tree import MemoryTreeConformance


class TestInMemoryTree(MemoryTreeConformance):
    def make_store(self, clock, tmp_path):
        return InMemoryStore(clock=clock)
