"""The memory manager: it extracts memories from conversations, and recalls them in later runs.

A run is shown what is known before it calls the model (`reading/`), and queues its new
messages for extraction when it ends. The ledger keeps every version, so any change can be undone.

Read `base.py` and `models.py` first, then `manager.py`, which calls the folders: `queue/`,
`extraction/`, `phrases/`, `sessions/`, `ledger/`, `layers/`, `recall/`, `reading/`, `tending/`,
`forgetting/`, `secrets/`, `verbs/`.
`providers/` is a second way to a memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.memory.base import BaseMemoryManager, NoopMemoryManager
    from locus_memory.memory.extraction.distillate import Distillate, NoteDraft
    from locus_memory.memory.extraction.extractors import (
        FunctionExtractor,
        LLMExtractor,
        as_extractor,
    )
    from locus_memory.memory.forgetting.forget import ForgetReport, ForgottenMemory, forget
    from locus_memory.memory.layers.episodes import Episode, Note
    from locus_memory.memory.layers.identity import Identity, Override
    from locus_memory.memory.layers.runs import SeenRun
    from locus_memory.memory.layers.vitals import Vitals
    from locus_memory.memory.manager import LLMMemoryManager
    from locus_memory.memory.models import (
        ExtractFn,
        Extractor,
        Memory,
        MemoryChange,
        MemorySearchResult,
        MemoryType,
        Origin,
    )
    from locus_memory.memory.options import (
        ExtractionOptions,
        MemoryOptions,
        RecallOptions,
        TendingOptions,
    )
    from locus_memory.memory.phrases.extractor import HeuristicExtractor
    from locus_memory.memory.providers.settings import MemorySettings
    from locus_memory.memory.secrets.detection import find_secret
    from locus_memory.memory.tending.facts import consolidate_facts
    from locus_memory.memory.tending.report import (
        ConsolidationReport,
        FactsChange,
        FactsReport,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "BaseMemoryManager": "base",
            "ConsolidationReport": "tending.report",
            "Distillate": "extraction.distillate",
            "Episode": "layers.episodes",
            "ExtractionOptions": "options",
            "ExtractFn": "models",
            "Extractor": "models",
            "FactsChange": "tending.report",
            "FactsReport": "tending.report",
            "ForgetReport": "forgetting.forget",
            "ForgottenMemory": "forgetting.forget",
            "FunctionExtractor": "extraction.extractors",
            "HeuristicExtractor": "phrases.extractor",
            "Identity": "layers.identity",
            "LLMExtractor": "extraction.extractors",
            "LLMMemoryManager": "manager",
            "Memory": "models",
            "MemoryChange": "models",
            "MemorySearchResult": "models",
            "MemorySettings": "providers.settings",
            "MemoryType": "models",
            "Origin": "models",
            "NoopMemoryManager": "base",
            "Override": "layers.identity",
            "MemoryOptions": "options",
            "Note": "layers.episodes",
            "NoteDraft": "extraction.distillate",
            "RecallOptions": "options",
            "SeenRun": "layers.runs",
            "TendingOptions": "options",
            "Vitals": "layers.vitals",
            "as_extractor": "extraction.extractors",
            "consolidate_facts": "tending.facts",
            "find_secret": "secrets.detection",
            "forget": "forgetting.forget",
        },
    )

__all__ = [
    "BaseMemoryManager",
    "ConsolidationReport",
    "Distillate",
    "Episode",
    "ExtractFn",
    "ExtractionOptions",
    "Extractor",
    "FactsChange",
    "FactsReport",
    "ForgetReport",
    "ForgottenMemory",
    "FunctionExtractor",
    "HeuristicExtractor",
    "Identity",
    "LLMExtractor",
    "LLMMemoryManager",
    "Memory",
    "MemoryChange",
    "MemoryOptions",
    "MemorySearchResult",
    "MemorySettings",
    "MemoryType",
    "NoopMemoryManager",
    "Note",
    "NoteDraft",
    "Origin",
    "Override",
    "RecallOptions",
    "SeenRun",
    "TendingOptions",
    "Vitals",
    "as_extractor",
    "consolidate_facts",
    "find_secret",
    "forget",
]
