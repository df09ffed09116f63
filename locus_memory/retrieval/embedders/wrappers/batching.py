"""A wrapper that embeds many texts in calls of a bounded size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from typing_extensions import override

from locus_memory.errors import InvalidArgumentError
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.embedders.wrappers.base import EmbedderWrapper

__all__ = ["BatchingEmbedder"]


class BatchingEmbedder(EmbedderWrapper):
    """A wrapper that passes a bounded number of texts to the inner embedder at a time.

    Texts of similar length share a batch, so that a model which pads its batches pads little. The
    vectors are returned in the order of the texts.

    Args:
        embedder: The inner embedder.
        batch_size: At most this many texts in one call.

    Raises:
        InvalidArgumentError: A batch size below 1.
    """

    def __init__(self, embedder: Embedder, *, batch_size: int = 128) -> None:
        super().__init__(embedder)
        if batch_size < 1:
            raise InvalidArgumentError(f"batch_size is at least 1, not {batch_size}")
        self._batch_size = batch_size

    @override
    async def embed(
        self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document"
    ) -> list[Sequence[float]]:
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        found: dict[int, Sequence[float]] = {}
        for start in range(0, len(order), self._batch_size):
            batch = order[start : start + self._batch_size]
            vectors = await self.inner.embed([texts[index] for index in batch], kind=kind)
            found.update(zip(batch, vectors, strict=True))
        return [found[index] for index in range(len(texts))]
