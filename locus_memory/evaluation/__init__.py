"""Evaluation: a repeatable measurement of how well retrieval finds the evidence for a question.

The conversations of a dataset are indexed and its questions are searched. The report gives recall
and nDCG with the cost of a query. The sample conversations are part of the package.

Read `run.py` first, then `metrics.py`.
"""

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
