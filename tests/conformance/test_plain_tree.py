"""A tree keeps its promises on a store without transactions, one write after the other."""

from __future__ import annotations

import asyncio

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.store.item import StoreCapabilities
from locus_memory.store.wrappers.base import StoreWrapper
from locus_memory.testing.memory_tree import MemoryTreeConformance


class Plain(StoreWrapper):
    """A store whose writes are single ones, between which other tasks run."""

    @property
    def capabilities(self):
        return StoreCapabilities(search=True, list_namespaces=True, ttl=True)

    async def write_batch(self, operations):
        self._unsupported("transactions")

    async def get_item(self, namespace, key):
        await asyncio.sleep(0)
        return await super().get_item(namespace, key)

    async def put(self, namespace, key, value, metadata=None, **options):
        await asyncio.sleep(0)
        return await super().put(namespace, key, value, metadata, **options)


class TestPlainTree(MemoryTreeConformance):
    def make_store(self, clock, tmp_path):
        return Plain(InMemoryStore(clock=clock))
