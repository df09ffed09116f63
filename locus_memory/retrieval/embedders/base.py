"""The protocol of embedders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

__all__ = ["Embedder"]


@runtime_checkable
class Embedder(Protocol):
    """The protocol of an embedder, which converts texts to vectors.

    Attributes:
        name: The name of the model, so that vectors of different models are never mixed.
        dimension: The length of every vector.
    """

    name: str
    dimension: int

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["document", "query"]
    ) -> Sequence[Sequence[float]]:
        """Return one vector of shape `(dimension,)` for each text, in order.

        Args:
            texts: The texts to embed, if possible in one call of the model.
            kind: Whether the texts are documents or queries; some models treat them differently.
        """
        ...
