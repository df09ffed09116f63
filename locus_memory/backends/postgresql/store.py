"""The PostgreSQL store: items as `jsonb`, text search by BM25, vectors by pgvector."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, Literal, Unpack

from typing_extensions import override

from locus_memory._internal.options import checked
from locus_memory.backends.postgresql.connection.connection import (
    ConnectionOptions,
    PostgreSQLPool,
    pool_for,
)
from locus_memory.backends.postgresql.connection.driver import Pool
from locus_memory.backends.postgresql.items import items, queries
from locus_memory.backends.postgresql.items.namespaces import list_namespaces
from locus_memory.backends.postgresql.items.naming import Address
from locus_memory.backends.postgresql.items.ranges import KeyRange, Page, Scope
from locus_memory.backends.postgresql.items.rows import Columns, Row
from locus_memory.backends.postgresql.search.texts import search_text
from locus_memory.backends.postgresql.search.vectors import (
    VectorQuery,
    VectorSearch,
    read_vector,
    vector_text,
)
from locus_memory.backends.postgresql.search.words import query_stems
from locus_memory.errors import (
    BackendError,
    BackendUnavailableError,
    ConfigurationError,
    StoreCapabilityError,
)
from locus_memory.events import emit
from locus_memory.store.base import BaseStore, as_names, as_operations, as_puts
from locus_memory.store.filters import parse_filter
from locus_memory.store.item import (
    Delete,
    Namespace,
    Put,
    SemanticSearchResult,
    StoreCapabilities,
    StoreItem,
    check_limit,
    check_text,
    check_threshold,
    timestamp,
)
from locus_memory.store.listing import Listing
from locus_memory.store.long_texts import are_long, from_query, prepared

__all__ = ["PostgreSQLStore"]

_PURGE_EVERY: Final = 1_024
"""Rows written between two purges of what has expired; the first write of a store is one."""

_PURGED: Final = 4_096
"""The most that a purge takes away: more than can expire meanwhile."""


class PostgreSQLStore(BaseStore):
    """Items in a PostgreSQL database, safe for any number of tasks, loops and processes.

    Text search is BM25 with stemming; its word statistics are those of the namespace that is
    searched. Vectors need the extension `vector`: without it, and before the store is open,
    `capabilities` does not claim semantic search. The search of a small namespace is exact, that
    of a large one goes by an index, and never returns fewer hits than there are.

    Args:
        database: A name, or a URL (`postgresql://...`).
        pool: A pool of asyncpg's, or a `PostgreSQLPool`, to use instead; it is not closed here.
        clock: Returns seconds since the epoch.
        embedding_dimension: The only vector length to take, or `None` for any.
        vector_index: `"hnsw"` keeps an index for each vector length; `None` none, and every
            vector search is exact.
        exact_below: A search among fewer vectors than this is exact.
        options: See `PostgreSQLPool`; ignored with a `PostgreSQLPool`.

    Raises:
        ConfigurationError: An option that cannot work.
    """

    @checked
    def __init__(
        self,
        database: str | None = None,
        *,
        pool: Pool | PostgreSQLPool | None = None,
        clock: Callable[[], float] = time.time,
        embedding_dimension: int | None = None,
        vector_index: Literal["hnsw"] | None = "hnsw",
        exact_below: int = 10_000,
        **options: Unpack[ConnectionOptions],
    ) -> None:
        if embedding_dimension is not None and embedding_dimension < 1:
            raise ConfigurationError("postgresql: needs embedding_dimension >= 1")
        if vector_index not in ("hnsw", None) or exact_below < 0:
            raise ConfigurationError(
                "postgresql: vector_index is 'hnsw' or None, and exact_below at least 0"
            )
        self._pool, self._owned = pool_for(database, pool, options)
        self._clock = clock
        self._dimension = embedding_dimension
        self._vectors = VectorSearch(
            self._pool, indexed=vector_index is not None, exact_below=exact_below
        )
        self._until_purge = 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._pool!r})"

    @property
    @override
    def capabilities(self) -> StoreCapabilities:
        """What the database can do; before the store is open, what any database can."""
        vectors = False
        with suppress(BackendUnavailableError):
            vectors = self._pool.features.has_vector
        return StoreCapabilities(
            search=True,
            semantic_search=vectors,
            embedding_dimension=self._dimension if vectors else None,
            ttl=True,
            list_namespaces=True,
            batch_operations=True,
            transactions=True,
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
        if are_long([value], [text]):
            put = Put(
                namespace=namespace,
                key=key,
                value=value,
                metadata=metadata,
                ttl=ttl,
                if_version=if_version,
                text=text,
            )
            return (await self._write_all([put]))[0]
        address = Address.of(namespace, key, if_version)
        return (await self._write([Row.of(address, value, metadata, ttl=ttl, text=text)]))[0]

    @override
    async def get(self, namespace: Namespace, key: str) -> Any:
        return await items.read_value(self._pool, Address.of(namespace, key), self._now())

    @override
    async def get_item(self, namespace: Namespace, key: str) -> StoreItem | None:
        return await items.read_item(self._pool, Address.of(namespace, key), self._now())

    @override
    async def exists(self, namespace: Namespace, key: str) -> bool:
        address = Address.of(namespace, key)
        return await self._pool.fetchval(queries.EXISTS, address.name, self._now()) is not None

    @override
    async def delete(
        self, namespace: Namespace, key: str, *, if_version: int | None = None
    ) -> bool:
        return bool((await self._write([Address.of(namespace, key, if_version)]))[0])

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
        scope, rows = self._scope(namespace), Page.of(limit).limit
        keys = KeyRange(check_text(prefix, "prefix"), check_text(after, "after"), descending)
        return await items.scan(self._pool, scope, keys, rows)

    @override
    async def list_keys(
        self,
        namespace: Namespace,
        limit: int = 100,
        *,
        prefix: str | None = None,
        after: str | None = None,
    ) -> list[str]:
        scope, rows = self._scope(namespace), Page.of(limit).limit
        keys = KeyRange(check_text(prefix, "prefix"), check_text(after, "after"))
        return await items.scan_keys(self._pool, scope, keys, rows)

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
        return await list_namespaces(self._pool, listing, check_limit(limit), self._now())

    @override
    async def clear_namespace(self, namespace: Namespace, *, recursive: bool = False) -> int:
        return await items.clear(self._pool, self._scope(namespace, recursive=recursive))

    @override
    async def compact(self) -> None:
        # Until then a deleted row, and its words, are still in the files.
        await self._pool.execute(queries.VACUUM_ITEMS)
        if self._pool.features.has_vector:
            await self._pool.execute(queries.VACUUM_VECTORS)

    @override
    async def put_batch(self, items: Iterable[Put | tuple[Any, ...]]) -> list[int]:
        given = list(items)
        if len(given) > 1 and _are_plain(given):
            fields: list[Sequence[Any]] = list(zip(*given, strict=True))
            if not are_long(fields[2]) and (columns := Columns.of(*fields)).is_distinct:
                return await self._put_columns(columns)
        return await self._write_all(as_puts(given))

    @override
    async def get_batch(
        self, keys: Iterable[tuple[Namespace, str]]
    ) -> dict[tuple[Namespace, str], Any]:
        addresses = {Address.of(*name): name for name in as_names(keys)}
        names = {address.name: name for address, name in addresses.items()}
        values = await items.get_values(self._pool, list(addresses), self._now())
        return {names[each]: value for each, value in values.items()}

    @override
    async def delete_batch(self, keys: Iterable[tuple[Namespace, str]]) -> int:
        addresses = [Address.of(namespace, key) for namespace, key in as_names(keys)]
        return sum(await self._write(addresses))

    @override
    async def write_batch(self, operations: Iterable[Put | Delete]) -> list[int | bool]:
        given = as_operations(operations)
        return [
            bool(result) if isinstance(each, Delete) else result
            for each, result in zip(given, await self._write_all(given), strict=True)
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
        scope = self._scope(namespace, recursive=recursive)
        condition, page = parse_filter(filter), Page.of(limit, offset)
        if query is None:
            return await items.newest(self._pool, scope, condition, page)
        words = await from_query(query_stems, query)
        return await search_text(self._pool, scope, words, condition, page)

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
        await self._need_vectors()
        # None, which is no embedding, would pass for a plain put.
        vector_text(embedding, self._dimension)
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
        return (await self._write(await prepared(self._rows, [put])))[0]

    @override
    async def get_embedding(self, namespace: Namespace, key: str) -> list[float] | None:
        await self._need_vectors()
        sent = await items.read_vector(self._pool, Address.of(namespace, key), self._now())
        return None if sent is None else read_vector(sent)

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
        await self._need_vectors()
        scope = self._scope(namespace, recursive=recursive)
        query = VectorQuery(
            vector=vector_text(query_embedding, self._dimension),
            threshold=check_threshold(threshold),
            condition=parse_filter(metadata_filter),
        )
        return await self._vectors.find(scope, query, Page.of(limit, offset))

    @override
    async def open(self) -> None:
        await self._pool.open()

    @override
    async def close(self) -> None:
        if self._owned:
            await self._pool.close()

    def _now(self) -> datetime:
        return timestamp(self._clock())

    def _scope(self, namespace: Namespace, *, recursive: bool = False) -> Scope:
        return Scope.of(namespace, self._now(), recursive=recursive)

    async def _need_vectors(self) -> None:
        await self._pool.open()
        if not self._pool.features.has_vector:
            raise StoreCapabilityError(
                "semantic_search",
                type(self).__name__,
                "The database lacks the extension vector: CREATE EXTENSION vector",
            )

    async def _write_all(self, operations: Sequence[Put | Delete]) -> list[int]:
        plain = [
            each
            for each in operations
            if isinstance(each, Put) and each.if_version is None and each.embedding is None
        ]
        if 1 < len(plain) == len(operations):
            columns = await prepared(_columns, plain)
            if columns.is_distinct:
                return await self._put_columns(columns)
        if any(isinstance(each, Put) and each.embedding is not None for each in operations):
            await self._need_vectors()
        return await self._write(await prepared(self._rows, operations))

    async def _put_columns(self, columns: Columns) -> list[int]:
        await self._pool.open()
        now = self._now()
        versions = await items.put_columns(self._pool, columns, now)
        await self._purge(now, len(versions))
        return versions

    def _rows(self, operations: Sequence[Put | Delete]) -> list[Row | Address]:
        return list(map(self._row, operations))

    def _row(self, operation: Put | Delete) -> Row | Address:
        address = Address.of(operation.namespace, operation.key, operation.if_version)
        if isinstance(operation, Delete):
            return address
        given = operation.embedding
        return Row.of(
            address,
            operation.value,
            operation.metadata,
            ttl=operation.ttl,
            text=operation.text,
            embedding=None if given is None else vector_text(given, self._dimension),
        )

    async def _write(self, operations: Sequence[Row | Address]) -> list[int]:
        # It knows by then whether there are vectors that a put makes stale.
        await self._pool.open()
        vectors = [
            each.embedding for each in operations if isinstance(each, Row) and each.embedding
        ]
        if vectors:
            await self._vectors.make_indexes(vectors)
        now = self._now()
        results = await items.write(self._pool, operations, now) if operations else []
        await self._purge(now, len(operations))
        return results

    async def _purge(self, now: datetime, written: int) -> None:
        """Clear some expired items away, once in a while."""
        self._until_purge -= written
        if self._until_purge > 0:
            return
        self._until_purge = _PURGE_EVERY
        try:
            await items.purge(self._pool, now, _PURGED)
        except BackendError as error:
            # What the caller asked for is done.
            emit("postgresql.purge_failed", error=error)


def _columns(operations: Sequence[Put | Delete]) -> Columns:
    return Columns.of_puts([each for each in operations if isinstance(each, Put)])


def _are_plain(items: list[Any]) -> bool:
    """Whether all are tuples of the same fields, none of them with an option."""
    return set(map(type, items)) == {tuple} and set(map(len, items)) in ({3}, {4})
