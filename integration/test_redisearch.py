"""The store contract, whole, with texts and vectors in RediSearch wherever a server has it."""

from __future__ import annotations

import hashlib

import pytest

from locus_memory.registry import get_store
from locus_memory.testing import StoreConformance


class TestRediSearchStore(StoreConformance):
    @pytest.fixture(autouse=True)
    def server(self, redisearch_url):
        self.url = redisearch_url

    def make_store(self, clock, tmp_path):
        prefix = "s" + hashlib.sha256(str(tmp_path).encode()).hexdigest()[:16]
        return get_store(self.url, key_prefix=prefix, clock=clock, search_index="redisearch")
