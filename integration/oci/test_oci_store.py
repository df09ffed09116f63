"""The store of OCI Object Storage keeps the contract."""

from __future__ import annotations

import pytest
from served import prefix_of

from locus_memory.registry import get_store
from locus_memory.testing import StoreConformance


class TestOCIStore(StoreConformance):
    @pytest.fixture(autouse=True)
    def server(self, bucket):
        self.where, self.options = bucket

    def make_store(self, clock, tmp_path):
        return get_store(self.where, prefix=prefix_of(tmp_path), clock=clock, **self.options)
