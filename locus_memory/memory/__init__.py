"""The memory manager: it extracts memories from conversations, and recalls them in later runs.

A run recalls memories before it calls the model (`recall.py`, `inject.py`), and queues its new
messages for extraction when it ends. The ledger keeps every version, so any change can be undone.

Read `base.py` and `models.py` first, then `manager.py`, which calls the folders: `queue/`,
`extraction/`, `sessions/`, `ledger/`, `layers/`, `forgetting/`, `secrets/`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.memory.base import BaseMemoryManager, NoopMemoryManager
    from locus_memory.memory.extraction.distillate import Distillate, EpisodeDraft, IdentityClaim
    from locus_memory.memory.extraction.extractors import (
        FunctionExtractor,
        LLMExtractor,
        as_extractor,
    )
    from locus_memory.memory.forgetting.forget import ForgetReport, ForgottenMemory, forget
    from locus_memory.memory.heuristic.extractor import HeuristicExtractor
    from locus_memory.memory.layers.episodes import Episode
    from locus_memory.memory.layers.identity import Identity, IdentityFact, Override
    from locus_memory.memory.layers.vitals import Vitals
    from locus_memory.memory.manager import LLMMemoryManager
    from locus_memory.memory.models import Extractor, Memory, MemoryChange, MemoryType
    from locus_memory.memory.options import ExtractionOptions, RecallOptions, TendingOptions
    from locus_memory.memory.secrets.detection import find_secret
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "BaseMemoryManager": "base",
            "Distillate": "extraction.distillate",
            "Episode": "layers.episodes",
            "EpisodeDraft": "extraction.distillate",
            "ExtractionOptions": "options",
            "Extractor": "models",
            "ForgetReport": "forgetting.forget",
            "ForgottenMemory": "forgetting.forget",
            "FunctionExtractor": "extraction.extractors",
            "HeuristicExtractor": "heuristic.extractor",
            "Identity": "layers.identity",
            "IdentityClaim": "extraction.distillate",
            "IdentityFact": "layers.identity",
            "LLMExtractor": "extraction.extractors",
            "LLMMemoryManager": "manager",
            "Memory": "models",
            "MemoryChange": "models",
            "MemoryType": "models",
            "NoopMemoryManager": "base",
            "Override": "layers.identity",
            "RecallOptions": "options",
            "TendingOptions": "options",
            "Vitals": "layers.vitals",
            "as_extractor": "extraction.extractors",
            "find_secret": "secrets.detection",
            "forget": "forgetting.forget",
        },
    )

__all__ = [
    "BaseMemoryManager",
    "Distillate",
    "Episode",
    "EpisodeDraft",
    "ExtractionOptions",
    "Extractor",
    "ForgetReport",
    "ForgottenMemory",
    "FunctionExtractor",
    "HeuristicExtractor",
    "Identity",
    "IdentityClaim",
    "IdentityFact",
    "LLMExtractor",
    "LLMMemoryManager",
    "Memory",
    "MemoryChange",
    "MemoryType",
    "NoopMemoryManager",
    "Override",
    "RecallOptions",
    "TendingOptions",
    "Vitals",
    "as_extractor",
    "find_secret",
    "forget",
]
