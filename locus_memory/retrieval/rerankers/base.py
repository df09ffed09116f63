"""The protocol of rerankers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

__all__ = ["Reranker"]


@runtime_checkable
class Reranker(Protocol):
    """The protocol of a reranker, which scores how well a text matches a query.

    A reranker is slower and more precise than a search, so it gets only the first few dozen hits.

    Attributes:
        name: The name of the model.
    """

    name: str

    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one score for each text, in order; the higher, the better the match.

        Scores of one call can be compared with each other; the scale is the model's own.
        """
        ...
