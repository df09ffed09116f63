"""The store's contract on the protocol of 19c: no pipelines, and no type JSON."""

from __future__ import annotations

import pytest

from integration.oracle_tables import OnOracle, Tables, serving_protocol
from locus_memory.registry import get_store
from locus_memory.testing import StoreConformance


@pytest.fixture(scope="module")
def oracle_tables():
    """Tables on a server of this module."""
    with serving_protocol(release="19c") as url:
        yield Tables(url)


class TestOracleStoreOn19c(OnOracle, StoreConformance):
    def make_store(self, clock, tmp_path):
        return get_store(self.url, table_prefix=self.prefix(tmp_path), clock=clock)
