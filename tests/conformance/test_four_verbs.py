from __future__ import annotations

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.store.base import BaseStore
from locus_memory.store.item import StoreCapabilities
from locus_memory.testing import StoreConformance


class FourVerbs(BaseStore):
    """The least a backend may write."""

    capabilities = StoreCapabilities(ttl=True)

    def __init__(self, clock):
        inner = InMemoryStore(clock=clock)
        self.calls = inner.put, inner.get_item, inner.delete, inner.scan, inner.close

    async def put(self, *args, **kwargs):
        return await self.calls[0](*args, **kwargs)

    async def get_item(self, *args, **kwargs):
        return await self.calls[1](*args, **kwargs)

    async def delete(self, *args, **kwargs):
        return await self.calls[2](*args, **kwargs)

    async def scan(self, *args, **kwargs):
        return await self.calls[3](*args, **kwargs)

    async def close(self):
        await self.calls[4]()


class TestFourVerbs(StoreConformance):
    def make_store(self, clock, tmp_path):
        return FourVerbs(clock)
