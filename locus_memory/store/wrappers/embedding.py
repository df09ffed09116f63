"""Semantic search over plain text: the store embeds what it is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from typing_extensions import override

from locus_memory.errors import ConfigurationError, InvalidEmbeddingError
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.store.base import BaseStore, as_operations, as_puts, has_semantic_search
from locus_memory.store.item import (
    Delete,
    Namespace,
    Put,
    StoreCapabilities,
    StoreItem,
    check_key,
    check_namespace,
    check_text,
    encode_json,
)
from locus_memory.store.text import index_text
from locus_memory.store.wrappers.base import StoreWrapper

__all__ = ["EmbeddingStore"]


class EmbeddingStore(StoreWrapper):
    """Stores each item with the vector of its text, and searches by meaning.

    A put without a vector gets one, made from `text` if it is given, else from the value; an
    item without any text is stored without a vector. `search` with a query finds the nearest
    items, best first; without a query it is the inner store's. Everything else passes through.

    Args:
        store: The inner store.
        embedder: What turns texts into vectors.
        text_of: What to embed of a value; by default all its strings.

    Raises:
        ConfigurationError: The store holds another vector length; as it opens, or at its first
            use: it has no semantic search.
    """

    def __init__(
        self,
        store: BaseStore,
        embedder: Embedder,
        *,
        text_of: Callable[[Any], str] = index_text,
    ) -> None:
        super().__init__(store)
        held = store.capabilities.embedding_dimension
        if held not in (None, embedder.dimension):
            raise ConfigurationError(
                f"{embedder.name} makes vectors of {embedder.dimension} dimensions, "
                f"{store!r} holds {held}"
            )
        self._embedder = embedder
        self._text_of = text_of

    @property
    @override
    def capabilities(self) -> StoreCapabilities:
        return replace(self.inner.capabilities, search=True)

    @override
    async def open(self) -> None:
        await super().open()
        await self._need_vectors()

    async def _need_vectors(self) -> None:
        if not await has_semantic_search(self.inner):
            raise ConfigurationError(f"{self.inner!r} has no semantic search to embed for")

    @override
    async def put(
        self,
        namespace: Namespace,
        key: str,
        value: Any,
        metadata: Mapping[str, Any] | None = None,
        *,
        ttl: float | None = None,
        if_version: int | None = None,
        text: str | None = None,
    ) -> int:
        put = Put(
            namespace=namespace,
            key=key,
            value=value,
            metadata=metadata,
            ttl=ttl,
            if_version=if_version,
            text=text,
        )
        [embedded] = await self._embedded([put])
        if embedded.embedding is None:
            return await super().put(
                namespace, key, value, metadata, ttl=ttl, if_version=if_version, text=text
            )
        return await super().put_with_embedding(
            namespace,
            key,
            value,
            embedded.embedding,
            metadata,
            ttl=ttl,
            if_version=if_version,
            text=text,
        )

    @override
    async def put_batch(self, items: Iterable[Put | tuple[Any, ...]]) -> list[int]:
        return await super().put_batch(await self._embedded(as_puts(items)))

    @override
    async def write_batch(self, operations: Iterable[Put | Delete]) -> list[int | bool]:
        listed = as_operations(operations)
        puts = await self._embedded([each for each in listed if isinstance(each, Put)])
        remaining = iter(puts)
        return await super().write_batch(
            [next(remaining) if isinstance(each, Put) else each for each in listed]
        )

    @override
    async def search(
        self,
        namespace: Namespace,
        query: str | None = None,
        limit: int = 10,
        *,
        filter: Mapping[str, Any] | None = None,
        offset: int = 0,
        recursive: bool = False,
    ) -> list[StoreItem]:
        if query is None:
            return await super().search(
                namespace, None, limit, filter=filter, offset=offset, recursive=recursive
            )
        if not (check_text(query, "a query") or "").strip():
            return []
        [vector] = await self._vectors([query], "query")
        hits = await super().search_by_embedding(
            namespace, vector, limit, None, filter, offset=offset, recursive=recursive
        )
        return [hit.item for hit in hits]

    async def _embedded(self, puts: list[Put]) -> list[Put]:
        """Return the puts with a vector for each that has a text and none of its own."""
        texts = [self._text(put) for put in puts]
        chosen = [index for index, text in enumerate(texts) if text.strip()]
        vectors = await self._vectors([texts[index] for index in chosen], "document")
        made = dict(zip(chosen, vectors, strict=True))
        return [
            replace(put, embedding=made.get(index, put.embedding)) for index, put in enumerate(puts)
        ]

    def _text(self, put: Put) -> str:
        # Refuse what the inner store would refuse before the model is asked.
        check_namespace(put.namespace)
        check_key(put.key)
        check_text(put.text, "text")
        encode_json(put.value)
        if put.embedding is not None:
            return ""
        return self._text_of(put.value) if put.text is None else put.text

    async def _vectors(
        self, texts: Sequence[str], kind: Literal["document", "query"]
    ) -> list[Sequence[float]]:
        await self._need_vectors()
        vectors = list(await self._embedder.embed(texts, kind=kind)) if texts else []
        lengths = {len(vector) for vector in vectors}
        if len(vectors) != len(texts) or not lengths <= {self._embedder.dimension}:
            raise InvalidEmbeddingError(
                f"{self._embedder.name} returned {len(vectors)} vectors of lengths "
                f"{sorted(lengths)} for {len(texts)} texts"
            )
        return vectors
