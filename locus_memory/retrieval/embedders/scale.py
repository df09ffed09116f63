"""Scales: the two points that make a model's scores comparable with those of another model.

The cosine of two unrelated texts is about 0 with one model and about 0.4 with another. So a cosine
is no measure of relevance before two points of the model's own scale are known: the median of
unrelated texts, and the median of paraphrases. `tests/benchmarks/scales.py` measures them.
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from locus_memory._internal.providers.names import register
from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError

__all__ = ["Scale", "known_scale", "register_scale", "scale_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Two points of a model's scale.

    Attributes:
        unrelated: The median score of unrelated texts.
        paraphrase: The median score of a text and its paraphrase.

    Raises:
        ConfigurationError: The points are not two finite numbers in ascending order.
    """

    unrelated: float
    paraphrase: float

    def __post_init__(self) -> None:
        points: tuple[object, ...] = (self.unrelated, self.paraphrase)
        numbers = all(isinstance(each, int | float) for each in points)
        if not numbers or not -math.inf < self.unrelated < self.paraphrase < math.inf:
            raise ConfigurationError(
                "a scale has two finite numbers, unrelated < paraphrase, "
                f"not {quote(points[0])} and {quote(points[1])}"
            )

    def place(self, score: float) -> float:
        """Return the score on a line from unrelated, 0, to paraphrase, 1; never outside."""
        # In this order, a score that is not a number is 0.
        return min(1.0, max(0.0, (score - self.unrelated) / (self.paraphrase - self.unrelated)))


_TABLE: Final = ChainMap[str, Scale](
    {},
    {
        "bge-small-en-v1.5": Scale(unrelated=0.383, paraphrase=0.821),
        "universal-sentence-encoder-multilingual-v3": Scale(unrelated=0.077, paraphrase=0.765),
        "answerai-colbert-small-v1": Scale(unrelated=0.697, paraphrase=0.907),
        "ms-marco-minilm-l-12-v2": Scale(unrelated=-11.208, paraphrase=4.906),
    },
)
"""Measured with a query and a document of each pair, as a search compares them; the last two models
are rerankers."""

_UNKNOWN: Final = Scale(unrelated=0.3, paraphrase=0.8)


def scale_of(model: str) -> Scale:
    """Return the scale of the cosines of an embedder; of an unknown one, from 0.3 to 0.8.

    Args:
        model: The embedder's `name`.
    """
    return known_scale(model) or _UNKNOWN


def known_scale(model: str) -> Scale | None:
    """Return the scale of an embedder or a reranker; `None`: it was not measured.

    Args:
        model: Its `name`. The owner of the model may stand in front, and case does not count:
            `BAAI/bge-small-en-v1.5` is `bge-small-en-v1.5`.
    """
    return _TABLE.get(_known_as(model))


def register_scale(model: str, *, unrelated: float, paraphrase: float) -> Callable[[], None]:
    """Set the scale of the cosines of an embedder, or of the scores of a reranker.

    Args:
        model: Its `name`.
        unrelated: The median score of unrelated texts.
        paraphrase: The median score of paraphrases.

    Returns:
        A function that takes the scale back; a built-in one holds again then.

    Raises:
        ConfigurationError: The points are not two finite numbers in ascending order.
    """
    scale = Scale(unrelated=unrelated, paraphrase=paraphrase)
    return register(_TABLE.maps[0], _known_as(model), scale)


def _known_as(model: str) -> str:
    return model.rpartition("/")[2].casefold()
