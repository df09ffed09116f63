"""LangGraph's `index`: the texts of a value that get a vector, and their embedder."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

from langchain_core.embeddings import Embeddings
from langgraph.store.base import (
    IndexConfig,
    PutOp,
    ensure_embeddings,
    get_text_at_path,
    tokenize_path,
)

from locus_memory.errors import ConfigurationError, InvalidEmbeddingError
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.store.item import check_embedding

__all__ = ["Vector", "VectorIndex"]

Vector: TypeAlias = list[float]
_Path: TypeAlias = str | list[str]


class VectorIndex:
    """Selects the texts of a value and embeds them.

    Args:
        config: LangGraph's `IndexConfig`; `embed` may also be an `Embedder` of the library.

    Raises:
        ConfigurationError: No `embed`, or `dims` that are not the embedder's.
        ValueError: An `embed` string, and LangChain or its provider is not installed.
    """

    def __init__(self, config: IndexConfig | Mapping[str, Any]) -> None:
        settings = dict(cast("Mapping[str, Any]", config))
        self.dims: int | None = settings.get("dims")
        self._embedder, self._embeddings = _embedder_of(settings.get("embed"))
        if self._embedder is not None:
            if self.dims not in (None, self._embedder.dimension):
                raise ConfigurationError(
                    f"{self._embedder.name} makes vectors of {self._embedder.dimension} "
                    f"dimensions, dims is {self.dims}"
                )
            self.dims = self._embedder.dimension
        self._fields = _paths(settings.get("fields") or ["$"])

    def texts(self, op: PutOp) -> list[str]:
        """Return the distinct texts of a put, in the order of the fields."""
        if op.index is False:
            return []
        paths = self._fields if op.index is None else _paths(op.index)
        found = [text for path in paths for text in get_text_at_path(op.value, path)]
        return [text for text in dict.fromkeys(found) if text.strip()]

    async def vectors(
        self, texts: Sequence[str], kind: Literal["document", "query"]
    ) -> dict[str, Vector | None]:
        """Return the vectors of texts to store, or of queries; `None`: the text has none.

        Raises:
            InvalidEmbeddingError: The embedder returned too few vectors, or invalid ones.
        """
        distinct = list(dict.fromkeys(texts))
        if not distinct:
            return {}
        made: Sequence[Sequence[float]]
        if self._embedder is not None:
            made = await self._embedder.embed(distinct, kind=kind)
        elif kind == "document":
            made = await self._embeddings.aembed_documents(distinct)
        else:
            made = await asyncio.gather(*map(self._embeddings.aembed_query, distinct))
        checked = [self._vector(vector) for vector in made]
        if len(checked) != len(distinct):
            raise InvalidEmbeddingError(
                f"embed returned {len(checked)} vectors, not {len(distinct)}"
            )
        return dict(zip(distinct, checked, strict=True))

    def _vector(self, given: Sequence[float]) -> Vector | None:
        if len(given) and not any(given):
            # It has no direction, so it is similar to no vector.
            return None
        check_embedding(given, self.dims)
        return [float(number) for number in given]


def _embedder_of(embed: Any) -> tuple[Embedder | None, Embeddings]:
    if embed is None:
        raise ConfigurationError("index needs 'embed', which converts texts to vectors")
    if isinstance(embed, Embedder):
        return embed, cast("Embeddings", None)
    return None, ensure_embeddings(embed)


def _paths(fields: str | Sequence[str]) -> list[_Path]:
    listed = [fields] if isinstance(fields, str) else fields
    return [field if field == "$" else tokenize_path(field) for field in listed]
