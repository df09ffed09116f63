"""The Redis store: items, text search and vector search on any Redis, alone or in a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final, Unpack

from redis.asyncio import Redis, RedisCluster
from typing_extensions import override

from locus_memory._internal.options import Keywords, checked
from locus_memory.backends.redis.connection.connection import RedisConnection, connection_for
from locus_memory.backends.redis.connection.lost_keys import named
from locus_memory.backends.redis.items.items import (
    KeyRange,
    Operation,
    Preparer,
    decode_item,
    decode_vector,
    is_expired,
)
from locus_memory.backends.redis.items.namespaces import list_namespaces
from locus_memory.backends.redis.items.reading import read_values, scan
from locus_memory.backends.redis.items.scripts import script
from locus_memory.backends.redis.items.spaces import Spaces
from locus_memory.backends.redis.options import RedisKeywords, RedisOptions
from locus_memory.backends.redis.search.hits import Page
from locus_memory.backends.redis.search.indexed import (
    Target,
    search_indexed_text,
    search_indexed_vectors,
)
from locus_memory.backends.redis.search.layout import (
    Layout,
    LayoutChangedError,
    Layouts,
    SearchIndex,
    ours,
)
from locus_memory.backends.redis.search.newest import newest
from locus_memory.backends.redis.search.texts import search_text
from locus_memory.backends.redis.search.vectors import VectorQuery, search_vectors
from locus_memory.errors import BackendError, ConfigurationError
from locus_memory.store.base import BaseStore, as_names, as_operations, as_puts
from locus_memory.store.filters import parse_filter
from locus_memory.store.item import (
    Delete,
    Namespace,
    Put,
    SemanticSearchResult,
    StoreCapabilities,
    StoreItem,
    check_embedding,
    check_key,
    check_limit,
    check_namespace,
    check_text,
    check_threshold,
)
from locus_memory.store.listing import Listing
from locus_memory.store.long_texts import from_query, prepared
from locus_memory.store.text import query_words

__all__ = ["RedisStore"]

_ATTEMPTS: Final = 5
"""How often a write looks for the layout again, that somebody else has changed."""


class RedisStore(BaseStore):
    """Items in Redis 6 or later, or Valkey, safe for any number of tasks and processes.

    Text search ranks by BM25, over an index that the store keeps itself or, if that is asked for,
    by RediSearch. Vector search takes the vector sets of Redis 8, or RediSearch. Expired items go
    by themselves, the latest a minute or two after their time.

    On a cluster, a namespace is on one server and all its verbs are as elsewhere, but what
    concerns several namespaces is not atomic: `put_batch` is for each of them, and there is no
    `write_batch`.

    The server does nothing else while it writes a batch, so a batch has at most 20,000 operations
    in 10,000 namespaces, 2,000 embeddings with 200,000 numbers in all of them (520 of 384), and
    32 MiB of words to index. A large one is merged into the text index afterwards, in steps.

    The server must not evict: `maxmemory-policy` is `noeviction`. The `volatile` ones do as long
    as nothing has a TTL.

    Args:
        url: See `RedisConnection`.
        client: A client of redis-py, or a `RedisConnection`, to use instead; the store closes
            neither.
        options: How to connect, and what the keys begin with; ignored with a `RedisConnection`.
        clock: Returns seconds since the epoch.
        embedding_dimension: The only vector length to take, or `None` for any.
        text_index: Whether to index texts; without it there is no text search, and a put is
            cheaper.
        search_index: What holds texts and vectors, decided when the key prefix is first used:
            `"redisearch"`, or `"own"` for an index of our own and vector sets. `"auto"` takes what
            was decided; of nothing yet, an index of our own for texts, and for vectors what the
            server has, vector sets or RediSearch.
        **keywords: The fields of `RedisOptions` by name, in place of `options`.

    Raises:
        ConfigurationError: An option that cannot work.
    """

    @checked
    def __init__(
        self,
        url: str | None = None,
        *,
        client: Redis | RedisCluster | RedisConnection | None = None,
        options: RedisOptions | None = None,
        clock: Callable[[], float] = time.time,
        embedding_dimension: int | None = None,
        text_index: bool = True,
        search_index: SearchIndex = "auto",
        **keywords: Unpack[RedisKeywords],
    ) -> None:
        if embedding_dimension is not None and embedding_dimension < 1:
            raise ConfigurationError("redis: needs embedding_dimension >= 1")
        options = Keywords(self, keywords).all_into(RedisOptions, options=options)
        self._connection, self._owned = connection_for(url, client, options)
        self._clock = clock
        self._spaces = Spaces(self._connection, clock)
        self._layouts = Layouts(self._connection, search_index)
        self._prepared = Preparer(embedding_dimension, has_text=text_index)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._connection.place!r})"

    @property
    @override
    def capabilities(self) -> StoreCapabilities:
        """What the server can do; before the store is open, what any server can."""
        atomic, layout = False, self._layouts.latest or Layout()
        with suppress(BackendError):
            features = self._connection.features
            atomic, layout = not features.cluster, self._layouts.latest or ours(features)
        vectors = layout.has_vectors
        return StoreCapabilities(
            search=self._prepared.has_text and not layout.text_problem,
            semantic_search=vectors,
            embedding_dimension=self._prepared.dimension if vectors else None,
            ttl=True,
            list_namespaces=True,
            batch_operations=atomic,
            transactions=atomic,
        )

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
        return (await self._write([put]))[0]

    @override
    async def get_item(self, namespace: Namespace, key: str) -> StoreItem | None:
        name = self._item_name(namespace, key)
        found = await self._connection.execute("HMGET", name, "h", "v", "m", again=True)
        if self._is_gone(found[0]):
            return None
        return decode_item(namespace, [key.encode(), *(each or b"" for each in found)])

    @override
    async def exists(self, namespace: Namespace, key: str) -> bool:
        name = self._item_name(namespace, key)
        return not self._is_gone(await self._connection.execute("HGET", name, "h", again=True))

    @override
    async def delete(
        self, namespace: Namespace, key: str, *, if_version: int | None = None
    ) -> bool:
        operation = Operation.delete(namespace, key, if_version)
        return bool((await self._spaces.write([operation]))[0])

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
        space = self._spaces.space(namespace)
        keys = KeyRange(check_text(prefix, "prefix"), check_text(after, "after"), descending)
        found = await scan(self._spaces, space, keys, check_limit(limit), whole=True)
        return [decode_item(namespace, row) for row in found]

    @override
    async def list_keys(
        self,
        namespace: Namespace,
        limit: int = 100,
        *,
        prefix: str | None = None,
        after: str | None = None,
    ) -> list[str]:
        space = self._spaces.space(namespace)
        keys = KeyRange(check_text(prefix, "prefix"), check_text(after, "after"))
        found = await scan(self._spaces, space, keys, check_limit(limit), whole=False)
        return [key.decode() for (key,) in found]

    @override
    async def list_namespaces(
        self,
        prefix: Namespace | None = None,
        limit: int = 100,
        *,
        suffix: Namespace | None = None,
        max_depth: int | None = None,
        after: Namespace | None = None,
    ) -> list[Namespace]:
        listing = Listing.of(prefix, suffix, max_depth, after)
        check_limit(limit)
        await self._connection.open()
        return await list_namespaces(self._spaces, listing, limit)

    @override
    async def clear_namespace(self, namespace: Namespace, *, recursive: bool = False) -> int:
        return await self._spaces.clear(await self._spaces.within(namespace, recursive=recursive))

    @override
    async def compact(self) -> None:
        """Remove what has expired, and the words of what is gone from the text index."""
        await self._connection.open()
        low = b""
        while page := await self._spaces.registered(low, None):
            await self._spaces.purge_expired(page, merge=True)
            low = page[-1].path + b"\x00"

    @override
    async def put_batch(self, items: Iterable[Put | tuple[Any, ...]]) -> list[int]:
        return await self._write(as_puts(items))

    @override
    async def get_batch(
        self, keys: Iterable[tuple[Namespace, str]]
    ) -> dict[tuple[Namespace, str], Any]:
        names = dict.fromkeys(
            (check_namespace(namespace), check_key(key)) for namespace, key in as_names(keys)
        )
        return await read_values(self._spaces, list(names))

    @override
    async def delete_batch(self, keys: Iterable[tuple[Namespace, str]]) -> int:
        names = as_names(keys)
        return sum(await self._spaces.write([Operation.delete(*name) for name in names]))

    @override
    async def write_batch(self, operations: Iterable[Put | Delete]) -> list[int | bool]:
        given = as_operations(operations)
        await self._connection.open()
        if not self.capabilities.transactions:
            self._unsupported("transactions", "on a cluster, use put_batch and delete_batch")
        results = await self._write(given)
        return [
            bool(result) if isinstance(each, Delete) else result
            for each, result in zip(given, results, strict=True)
        ]

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
        condition = parse_filter(filter)
        page = Page(check_limit(limit), check_limit(offset, "offset"), condition)
        check_namespace(namespace)
        words = None if query is None else await from_query(query_words, query)
        layout = Layout() if words is None else await self._need_texts()
        targets = await self._spaces.within(namespace, recursive=recursive)
        if words is None:
            return await newest(self._spaces, targets, page)
        if layout.text == "own":
            return await search_text(self._spaces, targets, words, page)
        target = Target(namespace, targets, recursive=recursive)
        return await search_indexed_text(self._layouts, self._spaces, target, words, page)

    @override
    async def put_with_embedding(
        self,
        namespace: Namespace,
        key: str,
        value: Any,
        embedding: Sequence[float],
        metadata: Mapping[str, Any] | None = None,
        *,
        ttl: float | None = None,
        if_version: int | None = None,
        text: str | None = None,
    ) -> int:
        # None, which is no embedding, would pass for a plain put.
        check_embedding(embedding, self._prepared.dimension)
        put = Put(
            namespace=namespace,
            key=key,
            value=value,
            metadata=metadata,
            ttl=ttl,
            if_version=if_version,
            text=text,
            embedding=embedding,
        )
        return (await self._write([put]))[0]

    @override
    async def get_embedding(self, namespace: Namespace, key: str) -> list[float] | None:
        space, name = self._spaces.space(namespace), check_key(key)
        layout = await self._need_vectors()
        args = [self._spaces.now(), name, int(layout.vectors == "redisearch")]
        with named([space]):
            found = await self._connection.run(script("vector"), [space.base], args)
        return None if found is None else decode_vector(namespace, name, *found)

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
        condition = parse_filter(metadata_filter)
        page = Page(check_limit(limit), check_limit(offset, "offset"), condition)
        vector = check_embedding(query_embedding, self._prepared.dimension)
        query = VectorQuery(vector, check_threshold(threshold))
        check_namespace(namespace)
        layout = await self._need_vectors()
        targets = await self._spaces.within(namespace, recursive=recursive)
        if layout.vectors == "own":
            return await search_vectors(self._spaces, targets, query, page)
        target = Target(namespace, targets, recursive=recursive)
        return await search_indexed_vectors(self._layouts, self._spaces, target, query, page)

    @override
    async def open(self) -> None:
        await self._connection.open()
        await self._layouts.current()

    @override
    async def close(self) -> None:
        if self._owned:
            await self._connection.close()

    def _item_name(self, namespace: Namespace, key: str) -> bytes:
        return self._spaces.item_name(self._spaces.space(namespace), check_key(key).encode())

    def _is_gone(self, head: bytes | None) -> bool:
        return head is None or is_expired(head, self._clock())

    async def _need_texts(self) -> Layout:
        if not self._prepared.has_text:
            self._unsupported("search", "make the store with text_index=True")
        layout = await self._layouts.current()
        if layout.text_problem:
            self._unsupported("search", layout.text_problem)
        return layout

    async def _need_vectors(self, dimensions: Collection[int] = ()) -> Layout:
        layout = await self._layouts.current(dimensions)
        if not layout.has_vectors:
            missing = "it takes the vector sets of Redis 8, or RediSearch"
            self._unsupported("semantic_search", layout.vector_problem or missing)
        return layout

    async def _write(self, given: Sequence[Put | Delete]) -> list[int]:
        """Write what is given, made for the layout that the data have by then."""
        layout = self._layouts.latest or Layout()
        operations = await prepared(partial(self._operations, layout=layout), given)
        dimensions = {each.dimension for each in operations} - {0}
        for _ in range(_ATTEMPTS):
            known, layout = layout, await self._layouts.current(dimensions)
            if dimensions:
                await self._need_vectors()
            if (known.text, known.vectors) != (layout.text, layout.vectors):
                operations = await prepared(partial(self._operations, layout=layout), given)
            try:
                return await self._spaces.write(operations, layout)
            except LayoutChangedError:
                self._layouts.forget(layout)
        return await self._spaces.write(operations, layout)

    def _operations(self, given: Sequence[Put | Delete], layout: Layout) -> list[Operation]:
        preparer = replace(
            self._prepared,
            searched_text=layout.text == "redisearch",
            searched_vectors=layout.vectors == "redisearch",
        )
        return [preparer.operation(each) for each in given]
