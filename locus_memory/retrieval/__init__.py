"""Retrieval: text search and vector search together, on any store.

`HybridSearch` fetches candidates from a store and ranks them; the ranking is pure. Embedders and
rerankers are models of the caller's choice, behind one protocol each.

Read `hybrid.py` first, then `candidates.py` and `ranking/`; `embedders/` and `rerankers/` hold the
models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.retrieval.hybrid import HybridSearch
    from locus_memory.retrieval.options import SearchOptions
    from locus_memory.retrieval.turns import Turn, index_turns
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "HybridSearch": "hybrid",
            "SearchOptions": "options",
            "Turn": "turns",
            "index_turns": "turns",
        },
    )

__all__ = [
    "HybridSearch",
    "SearchOptions",
    "Turn",
    "index_turns",
]
