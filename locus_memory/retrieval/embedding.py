"""Calls of an embedder, with a check of its vectors, and puts that have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from locus_memory.errors import InvalidEmbeddingError
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.embedders.marks import embedded_put
from locus_memory.store.item import PutT

__all__ = ["embed", "embedded_puts"]


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


async def embedded_puts(
    puts: Sequence[PutT],
    embedder: Embedder,
    texts: Sequence[str],
    sources: Sequence[str | None] | None = None,
    *,
    keep_text: bool = True,
) -> list[PutT]:
    """Return the puts, each that has a text with its vector and its mark.

    Args:
        puts: The puts to store.
        embedder: The embedder.
        texts: The text of each put; one of nothing but spaces has no vector.
        sources: The text that each mark keeps, see `embedded_put`.
        keep_text: Whether the marks keep the texts of the puts, see `embedded_put`.

    Raises:
        InvalidEmbeddingError: As for `embed`.
    """
    vectors = iter(await embed(embedder, [each for each in texts if each.strip()], "document"))
    told = zip(puts, texts, sources or [None] * len(puts), strict=True)
    return [
        embedded_put(put, next(vectors), embedder, source=source, keep_text=keep_text)
        if text.strip()
        else put
        for put, text, source in told
    ]
