"""Rerankers: models that read the query and each of the first hits together.

A reranker gives each hit a new score; `HybridSearch` passes it only the first hits. Both classes
run on this machine's processor.

Read `base.py` first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.retrieval.rerankers.base import Reranker
    from locus_memory.retrieval.rerankers.cross_encoder import CrossEncoderReranker
    from locus_memory.retrieval.rerankers.late_interaction import LateInteractionReranker
    from locus_memory.retrieval.rerankers.registry import (
        get_reranker,
        list_rerankers,
        register_reranker,
    )

__all__ = [
    "CrossEncoderReranker",
    "LateInteractionReranker",
    "Reranker",
    "get_reranker",
    "list_rerankers",
    "register_reranker",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "CrossEncoderReranker": "cross_encoder",
        "LateInteractionReranker": "late_interaction",
        "Reranker": "base",
        "get_reranker": "registry",
        "list_rerankers": "registry",
        "register_reranker": "registry",
    },
)
