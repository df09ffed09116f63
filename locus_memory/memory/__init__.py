"""The memory manager: it extracts memories from conversations, and recalls them in later runs.

A run recalls memories before it calls the model (`recall.py`, `inject.py`), and queues its new
messages for extraction when it ends. The ledger keeps every version, so any change can be undone.

Read `base.py` and `models.py` first, then `manager.py`, which calls the folders: `queue/`,
`extraction/`, `ledger/`, `forgetting/`, `secrets/`. `providers/` is a second way to a memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.memory.base import BaseMemoryManager, NoopMemoryManager
    from locus_memory.memory.extraction.extractors import (
        FunctionExtractor,
        LLMExtractor,
        as_extractor,
    )
    from locus_memory.memory.forgetting.forget import ForgetReport, ForgottenMemory, forget
    from locus_memory.memory.heuristic.extractor import HeuristicExtractor
    from locus_memory.memory.manager import LLMMemoryManager
    from locus_memory.memory.models import (
        Extractor,
        Memory,
        MemoryChange,
        MemorySearchResult,
        MemoryType,
    )
    from locus_memory.memory.options import ExtractionOptions, RecallOptions
    from locus_memory.memory.providers.settings import MemorySettings
    from locus_memory.memory.secrets.detection import find_secret
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "BaseMemoryManager": "base",
            "ExtractionOptions": "options",
            "Extractor": "models",
            "ForgetReport": "forgetting.forget",
            "ForgottenMemory": "forgetting.forget",
            "FunctionExtractor": "extraction.extractors",
            "HeuristicExtractor": "heuristic.extractor",
            "LLMExtractor": "extraction.extractors",
            "LLMMemoryManager": "manager",
            "Memory": "models",
            "MemoryChange": "models",
            "MemorySearchResult": "models",
            "MemorySettings": "providers.settings",
            "MemoryType": "models",
            "NoopMemoryManager": "base",
            "RecallOptions": "options",
            "as_extractor": "extraction.extractors",
            "find_secret": "secrets.detection",
            "forget": "forgetting.forget",
        },
    )

__all__ = [
    "BaseMemoryManager",
    "ExtractionOptions",
    "Extractor",
    "ForgetReport",
    "ForgottenMemory",
    "FunctionExtractor",
    "HeuristicExtractor",
    "LLMExtractor",
    "LLMMemoryManager",
    "Memory",
    "MemoryChange",
    "MemorySearchResult",
    "MemorySettings",
    "MemoryType",
    "NoopMemoryManager",
    "RecallOptions",
    "as_extractor",
    "find_secret",
    "forget",
]
