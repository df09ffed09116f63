"""The scales of rerankers; `tests/benchmarks/scales.py` measures them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from locus_memory.retrieval.embedders.scale import Scale, ScaleTable

__all__ = ["register_reranker_scale", "reranker_scale"]

_TABLE: Final = ScaleTable(
    {
        "answerai-colbert-small-v1": Scale(unrelated=0.697, paraphrase=0.907),
        "ms-marco-MiniLM-L-12-v2": Scale(unrelated=-11.208, paraphrase=4.906),
    }
)


def reranker_scale(model: str) -> Scale | None:
    """Return the scale of a reranker's scores; `None`: it was not measured.

    Args:
        model: The reranker's `name`.
    """
    return _TABLE.of(model)


def register_reranker_scale(
    model: str, *, unrelated: float, paraphrase: float
) -> Callable[[], None]:
    """Set the scale of a reranker's scores.

    Args:
        model: The reranker's `name`.
        unrelated: The median score of unrelated texts.
        paraphrase: The median score of paraphrases.

    Returns:
        A function that restores the former scale.

    Raises:
        ConfigurationError: The points are not two finite numbers in ascending order.
    """
    return _TABLE.register(model, Scale(unrelated=unrelated, paraphrase=paraphrase))
