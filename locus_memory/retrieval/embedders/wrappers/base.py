"""The base class of the wrappers, which changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from typing_extensions import override

from locus_memory._internal.resource import Resource
from locus_memory.retrieval.embedders.base import Embedder

__all__ = ["EmbedderWrapper"]


class EmbedderWrapper(Resource):
    """A wrapper of an embedder; closing it closes the inner one, if that can be closed.

    Args:
        embedder: The inner embedder.

    Attributes:
        inner: The inner embedder.
        name: The inner embedder's name.
        dimension: The inner embedder's dimension.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.inner = embedder
        self.name = embedder.name
        self.dimension = embedder.dimension

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document"
    ) -> Sequence[Sequence[float]]:
        """Return one vector of shape `(dimension,)` for each text, in order."""
        return await self.inner.embed(texts, kind=kind)

    @override
    async def open(self) -> None:
        """Open the inner embedder, if it can be opened."""
        if isinstance(self.inner, Resource):
            await self.inner.open()

    @override
    async def close(self) -> None:
        """Close the inner embedder, if it can be closed."""
        if isinstance(self.inner, Resource):
            await self.inner.close()
