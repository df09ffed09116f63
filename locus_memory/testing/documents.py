"""The conformance suite of document indexes."""

from __future__ import annotations

from locus_memory.testing.document_suite.adding import AddingTests
from locus_memory.testing.document_suite.finding import FindingTests
from locus_memory.testing.document_suite.folders import FolderTests

__all__ = ["DocumentConformance"]


class DocumentConformance(AddingTests, FindingTests, FolderTests):
    """The rules of document indexes over your store as tests: define `make_store`.

    ```python
    class TestMyDocuments(DocumentConformance):
        def make_store(self, clock, tmp_path):
            return MyStore(tmp_path / "store", clock=clock)
    ```

    `make_store` returns a new, empty store, as for `StoreConformance`. Each test runs for the kinds
    `text`, `dense` and `hybrid`; one is skipped only if `capabilities` lacks its capability.
    """
