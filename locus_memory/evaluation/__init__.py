"""Evaluation: how well the evidence for a question is found, and how many answers are right.

`evaluate` indexes the conversations of a dataset and searches for its questions; its report has
recall and nDCG. `questions/` asks a model the questions, with a memory each, and writes a journal
that `read_quality` reports. The sample conversations are part of the package.

Read `run.py` first, then `metrics.py`; of the answers `journal.py`, then `questions/`.
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
    from locus_memory.evaluation.quality.figures import Quality, read_quality
    from locus_memory.evaluation.report import Report, Scores
    from locus_memory.evaluation.run import evaluate
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Conversation": "dataset",
            "Quality": "quality.figures",
            "Question": "dataset",
            "Report": "report",
            "Scores": "report",
            "Session": "dataset",
            "evaluate": "run",
            "load_sample": "dataset",
            "read_dataset": "dataset",
            "read_quality": "quality.figures",
        },
    )

__all__ = [
    "Conversation",
    "Quality",
    "Question",
    "Report",
    "Scores",
    "Session",
    "evaluate",
    "load_sample",
    "read_dataset",
    "read_quality",
]
