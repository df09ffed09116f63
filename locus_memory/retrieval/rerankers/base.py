"""What a reranker is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

__all__ = ["Reranker"]


@runtime_checkable
class Reranker(Protocol):
    """Reads a query and a text together and says how well they match; bring your own.

    It is slower and sees more than a search does, so it is given the first few dozen hits.

    Attributes:
        name: Names the model.
    """

    name: str

    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one score for each text, in order; the higher, the better the match.

        Scores of one call compare with each other; the scale is the model's own.
        """
        ...
