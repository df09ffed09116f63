"""Semantic search over plain text: a store that embeds the texts of its items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError, InvalidEmbeddingError
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.embedders.marks import check_marks, check_newest_mark, without_mark
from locus_memory.retrieval.embedding import embed, embedded_puts
from locus_memory.store.base import BaseStore, has_semantic_search, put_one
from locus_memory.store.batches import as_operations, as_puts, as_restored
from locus_memory.store.item import (
    Delete,
    Namespace,
    Put,
    PutT,
    Restored,
    SemanticSearchResult,
    StoreCapabilities,
    StoreItem,
    check_key,
    check_namespace,
    check_text,
)
from locus_memory.store.json_values import encode_json, encode_metadata
from locus_memory.store.text import index_text, query_prefix
from locus_memory.store.wrappers.base import StoreWrapper

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend

__all__ = ["EmbeddingStore"]

_MOST_CHECKED = 10_000


class EmbeddingStore(StoreWrapper):
    """A store that keeps each item with the vector of its text, and searches these vectors.

    An item that is put without a vector gets the vector of its `text`, or of its value if there
    is no `text`; an item without any text is stored without a vector. `search` with a query finds
    the nearest items, best first; without a query, it is the search of the inner store.
    Everything else is passed to the inner store.

    Each vector that this store computes is marked with the embedder's name and dimension, in the
    metadata of the inner store's item (see `locus_memory.retrieval.embedders.marks`). Items read
    through this store do not show the mark. Vectors of another embedder are neither added to nor
    searched: this raises a `ConfigurationError` that names both embedders, and `reembed`
    recomputes the vectors. The `text` of a put is kept in the mark, so that it can be embedded
    again, unless the inner store has no text search: an `EncryptingStore`, for example, must not
    see it.

    Args:
        store: The inner store, a backend that has one, or a provider string.
        embedder: Computes the vectors of texts.
        text_of: Returns the text of a value to embed; by default, all its strings.

    Raises:
        ConfigurationError: The store holds vectors of another length (raised as it opens, or at
            its first use), or it has no semantic search.
    """

    def __init__(
        self,
        store: str | BaseStore | Backend,
        embedder: Embedder,
        *,
        text_of: Callable[[Any], str] = index_text,
    ) -> None:
        super().__init__(store)
        held = self.inner.capabilities.embedding_dimension
        if held not in (None, embedder.dimension):
            raise ConfigurationError(
                f"{embedder.name} makes vectors of {embedder.dimension} dimensions, "
                f"{quote(self.inner)} holds {held}"
            )
        self._embedder = embedder
        self._text_of = text_of
        self._checked: set[Namespace] = set()

    @property
    @override
    def capabilities(self) -> StoreCapabilities:
        return replace(self.inner.capabilities, search=True, prefix_search=False)

    @override
    async def open(self) -> None:
        await super().open()
        await self._need_vectors()

    async def _need_vectors(self) -> None:
        if not await has_semantic_search(self.inner):
            raise ConfigurationError(f"{quote(self.inner)} has no semantic search to embed for")

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
        put = Put(namespace, key, value, metadata, ttl=ttl, if_version=if_version, text=text)
        [embedded] = await self._embedded([put])
        return await put_one(self.inner, embedded)

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
    async def restore(self, items: Iterable[Restored]) -> None:
        await super().restore(await self._embedded(as_restored(items)))

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
            items = await super().search(
                namespace, None, limit, filter=filter, offset=offset, recursive=recursive
            )
            return [without_mark(item) for item in items]
        if not (check_text(query, "a query") or "").strip():
            return []
        if query_prefix(query):
            self._unsupported("prefix_search", "search for whole words, or the inner store")
        await self._need_vectors()
        [vector] = await embed(self._embedder, [query], "query")
        try:
            hits = await super().search_by_embedding(
                namespace, vector, limit, None, filter, offset=offset, recursive=recursive
            )
        except InvalidEmbeddingError:
            await check_newest_mark(self.inner, self._embedder, namespace, recursive=recursive)
            raise
        check_marks([hit.item for hit in hits], self._embedder, namespace)
        return [without_mark(hit.item) for hit in hits]

    @override
    async def search_by_embedding(
        self,
        namespace: Namespace,
        query_embedding: Sequence[float],
        limit: int = 10,
        threshold: float | None = None,
        metadata_filter: Mapping[str, Any] | None = None,
        *,
        offset: int = 0,
        recursive: bool = False,
    ) -> list[SemanticSearchResult]:
        hits = await super().search_by_embedding(
            namespace,
            query_embedding,
            limit,
            threshold,
            metadata_filter,
            offset=offset,
            recursive=recursive,
        )
        return [replace(hit, item=without_mark(hit.item)) for hit in hits]

    @override
    async def get_item(self, namespace: Namespace, key: str) -> StoreItem | None:
        item = await super().get_item(namespace, key)
        return None if item is None else without_mark(item)

    @override
    async def scan(
        self,
        namespace: Namespace,
        limit: int = 100,
        *,
        prefix: str | None = None,
        after: str | None = None,
        descending: bool = False,
    ) -> list[StoreItem]:
        items = await super().scan(
            namespace, limit, prefix=prefix, after=after, descending=descending
        )
        return [without_mark(item) for item in items]

    async def _check_once(self, namespace: Namespace) -> None:
        if namespace in self._checked:
            return
        await check_newest_mark(self.inner, self._embedder, namespace)
        if len(self._checked) >= _MOST_CHECKED:
            self._checked.clear()
        self._checked.add(namespace)

    async def _embedded(self, puts: list[PutT]) -> list[PutT]:
        """Return the puts, with a vector for each that has a text but no vector."""
        texts = [self._text(put) for put in puts]
        read = zip(puts, texts, strict=True)
        for namespace in {put.namespace for put, text in read if text.strip()}:
            await self._check_once(namespace)
        await self._need_vectors()
        keep = self.inner.capabilities.search
        return await embedded_puts(puts, self._embedder, texts, keep_text=keep)

    def _text(self, put: Put) -> str:
        # Refuse what the inner store would refuse, before the model is called.
        check_namespace(put.namespace)
        check_key(put.key)
        check_text(put.text, "text")
        encode_json(put.value)
        encode_metadata(put.metadata)
        if put.embedding is not None:
            return ""
        return self._text_of(put.value) if put.text is None else put.text
