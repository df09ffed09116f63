"""Conformance suites and fakes, for this library's backends and for yours.

A backend is tested with `StoreConformance`, `CheckpointerConformance` and `DocumentConformance` in
a few lines. The suites
need the `test` extra; the fakes of the clock, the model and the embedder need nothing.

Read `store.py`, `checkpoints.py` and `documents.py` first, then the parts in `store_suite/`,
`checkpoint_suite/` and `document_suite/`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.testing.checkpoints import CheckpointerConformance
    from locus_memory.testing.clocks import ServerClockConformance
    from locus_memory.testing.documents import DocumentConformance
    from locus_memory.testing.fakes import FakeClock, FakeEmbedder
    from locus_memory.testing.memory_tree import MemoryTreeConformance
    from locus_memory.testing.model import FakeModel
    from locus_memory.testing.store import StoreConformance
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "CheckpointerConformance": "checkpoints",
            "DocumentConformance": "documents",
            "FakeClock": "fakes",
            "FakeEmbedder": "fakes",
            "FakeModel": "model",
            "MemoryTreeConformance": "memory_tree",
            "ServerClockConformance": "clocks",
            "StoreConformance": "store",
        },
    )

__all__ = [
    "CheckpointerConformance",
    "DocumentConformance",
    "FakeClock",
    "FakeEmbedder",
    "FakeModel",
    "MemoryTreeConformance",
    "ServerClockConformance",
    "StoreConformance",
]
