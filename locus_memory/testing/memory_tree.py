"""The conformance suite of trees of `memory://` resources."""

from __future__ import annotations

from locus_memory.testing.tree_suite.entries import EntryTests, LevelTests, SessionTests
from locus_memory.testing.tree_suite.model import TreeModelTests
from locus_memory.testing.tree_suite.races import RaceTests

__all__ = ["MemoryTreeConformance"]


class MemoryTreeConformance(EntryTests, LevelTests, SessionTests, TreeModelTests, RaceTests):
    """The promises of `MemoryTree` on a store, as tests: subclass it and define `make_store`.

    ```python
    class TestMyTree(MemoryTreeConformance):
        def make_store(self, clock, tmp_path):
            return MyStore(tmp_path / "store", clock=clock)
    ```

    `make_store` is that of `StoreConformance`. A test is skipped only if the `capabilities` of the
    store lack what it needs.
    """
