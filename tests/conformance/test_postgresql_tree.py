"""A tree on PostgreSQL keeps its promises."""

from __future__ import annotations

from locus_memory.testing.memory_tree import MemoryTreeConformance
from tests.conformance.test_postgresql_store import TestPostgreSQLStore as Store


class TestPostgreSQLTree(MemoryTreeConformance):
    server = Store.server
    make_store = Store.make_store
