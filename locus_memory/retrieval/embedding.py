"""Calls of an embedder, with a check of its vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from locus_memory.errors import InvalidEmbeddingError
from locus_memory.retrieval.embedders.base import Embedder

__all__ = ["embed"]


async def embed(
    embedder: Embedder, texts: Sequence[str], kind: Literal["document", "query"]
) -> list[Sequence[float]]:
    """Return one vector for each text; without texts, the model is not called.

    Raises:
        InvalidEmbeddingError: The embedder returned a wrong number or length of vectors.
    """
    vectors = list(await embedder.embed(texts, kind=kind)) if texts else []
    lengths = {len(vector) for vector in vectors}
    if len(vectors) != len(texts) or not lengths <= {embedder.dimension}:
        raise InvalidEmbeddingError(
            f"{embedder.name} returned {len(vectors)} vectors of lengths {sorted(lengths)} "
            f"for {len(texts)} texts of {embedder.dimension} dimensions"
        )
    return vectors
