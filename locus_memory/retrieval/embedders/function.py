"""An embedder from a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from locus_memory._internal.offload import call
from locus_memory.errors import ConfigurationError, InvalidEmbeddingError

__all__ = ["CallableEmbedder"]


class CallableEmbedder:
    """An embedder with your own function, sync or async; a sync one runs in a worker thread.

    Args:
        function: Takes a list of texts and returns as many vectors: sequences of floats or the
            rows of an array.
        name: The name of the model, so that vectors of different models are never mixed.
        dimension: The length of every vector.
        query_function: The function for queries, if it is another one.

    Attributes:
        name: The name of the model.
        dimension: The length of every vector.

    Raises:
        ConfigurationError: No name or no dimension.
    """

    def __init__(
        self,
        function: Callable[[list[str]], Any],
        *,
        name: str,
        dimension: int,
        query_function: Callable[[list[str]], Any] | None = None,
    ) -> None:
        if not name or dimension < 1:
            raise ConfigurationError(
                "CallableEmbedder takes the model's name and the vectors' dimension"
            )
        self.name = name
        self.dimension = dimension
        self._functions = {"document": function, "query": query_function or function}

    def __repr__(self) -> str:
        return f"CallableEmbedder({self.name!r})"

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document"
    ) -> list[list[float]]:
        """Return one vector of shape `(dimension,)` for each text, in order.

        Raises:
            InvalidEmbeddingError: The function did not return such vectors.
        """
        if not texts:
            return []
        returned = await call(self._functions[kind], list(texts))
        try:
            vectors = [[float(part) for part in vector] for vector in returned]
        except (TypeError, ValueError) as error:
            raise InvalidEmbeddingError(
                f"{self.name} returned no vectors of numbers for {len(texts)} texts"
            ) from error
        lengths = sorted({len(vector) for vector in vectors})
        if len(vectors) != len(texts) or lengths != [self.dimension]:
            raise InvalidEmbeddingError(
                f"{self.name} returned {len(vectors)} vectors of lengths {lengths} for "
                f"{len(texts)} texts; expected {self.dimension} dimensions"
            )
        return vectors
