"""The contracts of the store, of documents and of trees, over the driver of Oracle Database."""

from __future__ import annotations

from integration.oracle_tables import OnOracle
from locus_memory.registry import get_store
from locus_memory.testing import (
    DocumentConformance,
    MemoryTreeConformance,
    ServerClockConformance,
    StoreConformance,
)


class TestOracleStore(OnOracle, StoreConformance):
    def make_store(self, clock, tmp_path):
        return get_store(self.url, table_prefix=self.prefix(tmp_path), clock=clock)


class TestOracleDocuments(OnOracle, DocumentConformance):
    make_store = TestOracleStore.make_store


class TestOracleTree(OnOracle, MemoryTreeConformance):
    make_store = TestOracleStore.make_store


class TestOracleClock(OnOracle, ServerClockConformance):
    def where(self, tmp_path):
        return self.url, {"table_prefix": self.prefix(tmp_path)}
