"""The Redis store: items, text search and vector search on any Redis, alone or in a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Unpack

from redis.asyncio import Redis, RedisCluster
from typing_extensions import override

from locus_memory._internal.options import checked
from locus_memory.backends.base import OverConnection
from locus_memory.backends.checked_store import CheckedStore
from locus_memory.backends.loops import LoopLocal
from locus_memory.backends.redis.connection.connection import RedisConnection
from locus_memory.backends.redis.items.former import move_from_redisearch
from locus_memory.backends.redis.items.items import (
    Operation,
    decode_item,
    decode_vector,
    encoded,
    expires,
)
from locus_memory.backends.redis.items.namespaces import list_namespaces
from locus_memory.backends.redis.items.reading import read_values, scan
from locus_memory.backends.redis.items.spaces import Space, Spaces, named
from locus_memory.backends.redis.lua import script
from locus_memory.backends.redis.options import RedisKeywords, RedisOptions
from locus_memory.backends.redis.search.newest import newest
from locus_memory.backends.redis.search.texts import search_text
from locus_memory.backends.redis.search.vectors import search_vectors
from locus_memory.backends.selection import KeyRange, Page, Selection, VectorQuery
from locus_memory.errors import BackendError, BackendWriteError, ConfigurationError
from locus_memory.events import emit
from locus_memory.store.item import (
    Delete,
    Namespace,
    Put,
    SemanticSearchResult,
    StoreCapabilities,
    StoreItem,
)
from locus_memory.store.listing import Listing

__all__ = ["RedisStore"]


class RedisStore(OverConnection[RedisConnection], CheckedStore[Operation]):
    """Items in Redis 6 or later, or Valkey, safe for any number of tasks and processes.

    Text search ranks by BM25, over an index that the store keeps itself. Vector search takes the
    vector sets of Redis 8; on other servers, it compares all vectors of the namespaces. Expired
    items go by themselves, the latest a minute or two after their time.

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
        clock: Returns seconds since the epoch; `None`: the server's clock.
        embedding_dimension: The only vector length to take, or `None` for any.
        text_index: Whether to index texts; without it there is no text search, and a put is
            cheaper.
        **keywords: The fields of `RedisOptions` by name, in place of `options`.

    Raises:
        ConfigurationError: An option that cannot work.
    """

    _remedies = MappingProxyType(
        {
            "transactions": "on a cluster, use put_batch and delete_batch",
            "search": "make the store with text_index=True",
        }
    )

    @checked
    def __init__(
        self,
        url: str | None = None,
        *,
        client: Redis | RedisCluster | RedisConnection | None = None,
        options: RedisOptions | None = None,
        clock: Callable[[], float] | None = None,
        embedding_dimension: int | None = None,
        text_index: bool = True,
        **keywords: Unpack[RedisKeywords],
    ) -> None:
        if embedding_dimension is not None and embedding_dimension < 1:
            raise ConfigurationError("redis: needs embedding_dimension >= 1")
        self._connect(RedisConnection, RedisOptions, url, options, keywords, client=client)
        self._spaces = Spaces(self._connection, clock)
        self._dimension = embedding_dimension
        self._has_text = text_index
        self._moving: LoopLocal[asyncio.Lock] = LoopLocal()
        self._is_moved = False

    @property
    @override
    def capabilities(self) -> StoreCapabilities:
        """The capabilities of the server; before the store is open, those of every server."""
        atomic = False
        with suppress(BackendError):
            atomic = not self._connection.features.cluster
        return StoreCapabilities(
            search=self._has_text,
            semantic_search=True,
            embedding_dimension=self._dimension,
            ttl=True,
            list_namespaces=True,
            batch_operations=atomic,
            transactions=atomic,
        )

    @override
    def _encode(self, operation: Put | Delete, vector: bytes | None) -> Operation:
        return encoded(operation, vector, has_text=self._has_text)

    @override
    async def _write(self, operations: Sequence[Operation]) -> list[int]:
        await self._move()
        return await self._spaces.write(operations)

    async def _move(self) -> None:
        """Move what an earlier version kept in RediSearch, once."""
        if self._is_moved:
            return
        async with self._moving.get(asyncio.Lock):
            if not self._is_moved:
                await move_from_redisearch(self._spaces)
                self._is_moved = True

    @override
    async def _get_item(self, namespace: Namespace, key: str) -> StoreItem | None:
        name = self._spaces.item_name(self._spaces.space(namespace), key.encode())
        found = await self._connection.execute("HMGET", name, "h", "v", "m", again=True)
        if found[0] is not None and expires(found[0]):
            return await self._get_expiring(namespace, key)
        if found[0] is None:
            return None
        return decode_item(namespace, [key.encode(), *(each or b"" for each in found)])

    async def _get_expiring(self, namespace: Namespace, key: str) -> StoreItem | None:
        """Return an item that expires, unless it has by the clock that decides."""
        space = self._spaces.space(namespace)
        args = [self._spaces.now(), 0, 1, 0, key]
        with named([space]):
            row = await self._connection.run(script("fetch"), [space.base], args)
        return decode_item(namespace, row) if row[1] else None

    @override
    async def _get_values(
        self, names: Sequence[tuple[Namespace, str]]
    ) -> dict[tuple[Namespace, str], Any]:
        return await read_values(self._spaces, names)

    @override
    async def _scan(self, namespace: Namespace, keys: KeyRange, limit: int) -> list[StoreItem]:
        space = self._spaces.space(namespace)
        found = await scan(self._spaces, space, keys, limit, whole=True)
        return [decode_item(namespace, row) for row in found]

    @override
    async def _list_keys(self, namespace: Namespace, keys: KeyRange, limit: int) -> list[str]:
        space = self._spaces.space(namespace)
        found = await scan(self._spaces, space, keys, limit, whole=False)
        return [key.decode() for (key,) in found]

    @override
    async def _list_namespaces(self, listing: Listing, limit: int) -> list[Namespace]:
        await self._connection.open()
        return await list_namespaces(self._spaces, listing, limit)

    @override
    async def _clear(self, namespace: Namespace, *, recursive: bool) -> int:
        return await self._spaces.clear(await self._spaces.within(namespace, recursive=recursive))

    @override
    async def compact(self) -> None:
        """Remove what has expired, and the words of what is gone from the text index."""
        await self._move()
        low = b""
        while page := await self._spaces.registered(low, None):
            await self._spaces.purge_expired(page, merge=True)
            low = page[-1].path + b"\x00"

    @override
    async def _newest(self, selection: Selection, page: Page) -> list[StoreItem]:
        targets = await self._targets_of(selection)
        return await newest(self._spaces, targets, selection.condition, page)

    @override
    async def _search_text(
        self, selection: Selection, page: Page, words: list[str]
    ) -> list[StoreItem]:
        await self._move()
        targets = await self._targets_of(selection)
        return await search_text(self._spaces, targets, words, selection.condition, page)

    @override
    async def _get_embedding(self, namespace: Namespace, key: str) -> list[float] | None:
        space = self._spaces.space(namespace)
        await self._move()
        with named([space]):
            found = await self._connection.run(
                script("vector"), [space.base], [self._spaces.now(), key]
            )
        return None if found is None else decode_vector(namespace, key, found)

    @override
    async def _search_vectors(
        self, selection: Selection, page: Page, vector: bytes, threshold: float | None
    ) -> list[SemanticSearchResult]:
        await self._move()
        targets = await self._targets_of(selection)
        query = VectorQuery(vector, selection.condition, threshold)
        return await search_vectors(self._spaces, targets, query, page)

    @override
    async def open(self) -> None:
        await self._connection.open()
        try:
            await self._move()
        except BackendWriteError as error:
            # A replica is read all the same, but for what has to be moved.
            emit("redis.not_moved", error=error, place=self.place)

    async def _targets_of(self, selection: Selection) -> list[Space]:
        return await self._spaces.within(selection.namespace, recursive=selection.recursive)
