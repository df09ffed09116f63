"""The store of OCI Object Storage keeps the contracts of stores, documents and trees."""

from __future__ import annotations

from served import prefix_of

from locus_memory.registry import get_store
from locus_memory.testing import (
    DocumentConformance,
    MemoryTreeConformance,
    ServerClockConformance,
    StoreConformance,
)


class TestOCIStore(StoreConformance):
    def make_store(self, clock, tmp_path):
        where, options = self.bucket
        return get_store(where, prefix=prefix_of(tmp_path), clock=clock, **options)


class TestOCIDocuments(DocumentConformance):
    make_store = TestOCIStore.make_store


class TestOCITree(MemoryTreeConformance):
    make_store = TestOCIStore.make_store


class TestOCIClock(ServerClockConformance):
    # The service refuses a request whose date differs by 300 seconds.
    shift = 240.0
    # It tells its time in whole seconds.
    precision = 1.1

    def where(self, tmp_path):
        where, options = self.bucket
        return where, {**options, "prefix": prefix_of(tmp_path)}
