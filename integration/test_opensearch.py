"""All four contracts, whole, on OpenSearch 3 and 2."""

from __future__ import annotations

import hashlib

import pytest

from locus_memory.backends.opensearch import OpenSearchConnection
from locus_memory.registry import get_checkpointer, get_store
from locus_memory.testing import (
    CheckpointerConformance,
    DocumentConformance,
    MemoryTreeConformance,
    ServerClockConformance,
    StoreConformance,
)


def prefix_of(tmp_path):
    return "t" + hashlib.sha256(str(tmp_path).encode()).hexdigest()[:16] + "-"


class OnOpenSearch:
    @pytest.fixture(autouse=True)
    async def server(self, opensearch_url, tmp_path):
        """A node takes 1,000 indexes, so a test removes its own."""
        self.url = opensearch_url
        yield
        async with OpenSearchConnection(opensearch_url.partition(":")[2]) as connection:
            await connection.request("DELETE", f"/{prefix_of(tmp_path)}*")


class TestOpenSearchStore(OnOpenSearch, StoreConformance):
    def make_store(self, clock, tmp_path):
        return get_store(self.url, index_prefix=prefix_of(tmp_path), clock=clock)


class TestOpenSearchCheckpointer(OnOpenSearch, CheckpointerConformance):
    def make_checkpointer(self, clock, tmp_path, **options):
        return get_checkpointer(self.url, index_prefix=prefix_of(tmp_path), clock=clock, **options)


class TestOpenSearchDocuments(OnOpenSearch, DocumentConformance):
    make_store = TestOpenSearchStore.make_store


class TestOpenSearchTree(OnOpenSearch, MemoryTreeConformance):
    make_store = TestOpenSearchStore.make_store


class TestOpenSearchClock(OnOpenSearch, ServerClockConformance):
    def where(self, tmp_path):
        return self.url, {"index_prefix": prefix_of(tmp_path)}
