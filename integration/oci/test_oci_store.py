"""The store of OCI Object Storage keeps the contract."""

from __future__ import annotations

from served import prefix_of

from locus_memory.registry import get_store
from locus_memory.testing import StoreConformance


class TestOCIStore(StoreConformance):
    def make_store(self, clock, tmp_path):
        where, options = self.bucket
        return get_store(where, prefix=prefix_of(tmp_path), clock=clock, **options)
