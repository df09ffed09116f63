"""A tree on Redis keeps its promises."""

from __future__ import annotations

from locus_memory.testing.memory_tree import MemoryTreeConformance
from tests.conformance.test_redis_store import TestRedisStore as Store


class TestRedisTree(MemoryTreeConformance):
    server = Store.server
    make_store = Store.make_store
