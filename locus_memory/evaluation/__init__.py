"""How well retrieval finds what a question needs, measured so that anyone can do it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.evaluation.dataset import (
        Conversation,
        Question,
        Session,
        load_sample,
        read_dataset,
    )
    from locus_memory.evaluation.report import Report, Scores
    from locus_memory.evaluation.run import evaluate
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Conversation": "dataset",
            "Question": "dataset",
            "Report": "report",
            "Scores": "report",
            "Session": "dataset",
            "evaluate": "run",
            "load_sample": "dataset",
            "read_dataset": "dataset",
        },
    )

__all__ = [
    "Conversation",
    "Question",
    "Report",
    "Scores",
    "Session",
    "evaluate",
    "load_sample",
    "read_dataset",
]
