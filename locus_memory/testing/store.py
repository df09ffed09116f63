"""The conformance suite of stores."""

from __future__ import annotations

from locus_memory.testing.store_suite.batches import BatchTests
from locus_memory.testing.store_suite.expiry import ExpiryTests
from locus_memory.testing.store_suite.filters import FilterTests
from locus_memory.testing.store_suite.items import ItemTests, NameTests, ValueTests
from locus_memory.testing.store_suite.life import CapabilityTests, LifeTests
from locus_memory.testing.store_suite.listing import ClearTests, KeyOrderTests, NamespaceListTests
from locus_memory.testing.store_suite.model import ModelTests
from locus_memory.testing.store_suite.restoring import RestoreTests
from locus_memory.testing.store_suite.search import NewestTests, TextSearchTests
from locus_memory.testing.store_suite.vectors import VectorTests

__all__ = ["StoreConformance"]


class StoreConformance(
    ItemTests,
    NameTests,
    ValueTests,
    KeyOrderTests,
    ClearTests,
    NamespaceListTests,
    ExpiryTests,
    BatchTests,
    FilterTests,
    NewestTests,
    TextSearchTests,
    VectorTests,
    RestoreTests,
    CapabilityTests,
    LifeTests,
    ModelTests,
):
    """The rules of the store contract as tests: subclass it and define `make_store`.

    ```python
    class TestMyStore(StoreConformance):
        def make_store(self, clock, tmp_path):
            return MyStore(tmp_path / "store", clock=clock)
    ```

    `make_store` returns a new, empty store, which is its own async context manager, or another
    context manager of one. A test is skipped only if `capabilities` lacks its capability. Override
    a test if a store differs by design.
    """
