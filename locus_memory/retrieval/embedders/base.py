"""What an embedder is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

__all__ = ["Embedder"]


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors; bring your own.

    Attributes:
        name: Names the model, so that vectors of different models are never mixed unseen.
        dimension: The length of every vector.
    """

    name: str
    dimension: int

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["document", "query"]
    ) -> Sequence[Sequence[float]]:
        """Return one vector of shape `(dimension,)` for each text, in order.

        Args:
            texts: What to embed, in one call to the model where it can be.
            kind: Whether the texts are stored or searched with; some models care.
        """
        ...
