"""The SQLite store: items, text search and exact vector search in one file."""

from __future__ import annotations

import os
import sqlite3
import struct
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from typing_extensions import override

from locus_memory._internal.options import checked
from locus_memory.backends.sqlite import items, queries
from locus_memory.backends.sqlite.connection.connection import SQLiteDatabase
from locus_memory.backends.sqlite.items import (
    Address,
    KeyRange,
    Page,
    Row,
    Scope,
    prepare,
)
from locus_memory.backends.sqlite.search.candidates import Found, Held, ItemCache
from locus_memory.backends.sqlite.search.texts import TextSearch
from locus_memory.errors import ConfigurationError
from locus_memory.store.base import BaseStore, as_names, as_operations, as_puts
from locus_memory.store.candidates import Candidates, CandidateStore
from locus_memory.store.filters import Condition, parse_filter
from locus_memory.store.item import (
    Delete,
    Namespace,
    Put,
    SemanticSearchResult,
    StoreCapabilities,
    StoreItem,
    check_embedding,
    check_limit,
    check_text,
    check_threshold,
)
from locus_memory.store.listing import Listing
from locus_memory.store.long_texts import are_long, from_query, prepared
from locus_memory.store.text import query_words

if TYPE_CHECKING:
    from locus_memory.backends.sqlite.search.vectors import VectorCache

__all__ = ["SQLiteStore"]

# SQLite has no larger integers.
_MOST: Final = 2**62


class SQLiteStore(BaseStore, CandidateStore):
    """Items in a SQLite file, safe for any number of tasks, threads and processes.

    Text search is FTS5's, with stemming and BM25; its word statistics are those of the whole
    file. Vector search is exact. Deleted and expired items leave nothing behind.

    Args:
        path: The file, made on first use, or `":memory:"`.
        database: An open or unopened database to use instead; the store does not close it.
        clock: Returns seconds since the epoch.
        vector_cache_bytes: How much memory vectors may take; a namespace with more than that
            is read from the file at each search.
        embedding_dimension: The only vector length to take, or `None` for any, but then one
            for each namespace that is searched.
        busy_timeout: See `SQLiteDatabase`.
        synchronous: See `SQLiteDatabase`.

    Raises:
        ConfigurationError: An option that cannot work.
    """

    @checked
    def __init__(
        self,
        path: str | os.PathLike[str] = "./locus.db",
        *,
        database: SQLiteDatabase | None = None,
        clock: Callable[[], float] = time.time,
        vector_cache_bytes: int = 256 * 2**20,
        embedding_dimension: int | None = None,
        busy_timeout: float = 30.0,
        synchronous: Literal["normal", "full"] = "normal",
    ) -> None:
        if vector_cache_bytes < 0 or (embedding_dimension is not None and embedding_dimension < 1):
            raise ConfigurationError(
                "sqlite: needs vector_cache_bytes >= 0 and embedding_dimension >= 1"
            )
        self._owned = database is None
        self._database = database or SQLiteDatabase(
            path, busy_timeout=busy_timeout, synchronous=synchronous
        )
        self._clock = clock
        self._cache_bytes = vector_cache_bytes
        self._dimension = embedding_dimension
        self._cache: VectorCache | None = None
        self._texts = TextSearch()
        self._items = ItemCache()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._database.path!r})"

    @property
    @override
    def capabilities(self) -> StoreCapabilities:
        """Everything."""
        return StoreCapabilities(
            search=True,
            semantic_search=True,
            embedding_dimension=self._dimension,
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
        row = Row.of(address, value, metadata, ttl=ttl, text=text)
        return (await self._write([row]))[0]

    @override
    async def get_item(self, namespace: Namespace, key: str) -> StoreItem | None:
        address, now = Address.of(namespace, key), self._clock()
        return await self._database.read(lambda c: items.read_item(c, address, now))

    @override
    async def exists(self, namespace: Namespace, key: str) -> bool:
        address = Address.of(namespace, key)
        values = {"path": address.path, "key": address.key, "now": self._clock()}
        return await self._database.read(
            lambda c: c.execute(queries.EXISTS, values).fetchone() is not None
        )

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
        scope, rows = self._scope(namespace), _at_most(limit)
        keys = KeyRange(check_text(prefix, "prefix"), check_text(after, "after"), descending)
        return await self._database.read(lambda c: items.scan(c, scope, keys, rows))

    @override
    async def list_keys(
        self,
        namespace: Namespace,
        limit: int = 100,
        *,
        prefix: str | None = None,
        after: str | None = None,
    ) -> list[str]:
        scope, rows = self._scope(namespace), _at_most(limit)
        keys = KeyRange(check_text(prefix, "prefix"), check_text(after, "after"))
        return await self._database.read(lambda c: items.scan_keys(c, scope, keys, rows))

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
        rows, now = check_limit(limit), self._clock()
        return await self._database.read(lambda c: items.namespaces(c, listing, rows, now))

    @override
    async def clear_namespace(self, namespace: Namespace, *, recursive: bool = False) -> int:
        scope = self._scope(namespace, recursive=recursive)
        return await self._database.write(lambda c: items.clear(c, scope))

    @override
    async def compact(self) -> None:
        """Leave no word of what is gone, neither in the text index nor in the log."""
        await self._database.write(lambda c: c.execute(queries.COMPACT_TEXTS))
        await self._database.empty_log()

    @override
    async def put_batch(self, items: Iterable[Put | tuple[Any, ...]]) -> list[int]:
        return await self._write_all(as_puts(items))

    @override
    async def get_batch(
        self, keys: Iterable[tuple[Namespace, str]]
    ) -> dict[tuple[Namespace, str], Any]:
        addresses = [Address.of(namespace, key) for namespace, key in as_names(keys)]
        now = self._clock()

        def read(connection: sqlite3.Connection) -> list[StoreItem | None]:
            return [items.read_item(connection, address, now) for address in addresses]

        found = await self._database.read(read)
        return {(item.namespace, item.key): item.value for item in found if item is not None}

    @override
    async def delete_batch(self, keys: Iterable[tuple[Namespace, str]]) -> int:
        addresses = [Address.of(namespace, key) for namespace, key in as_names(keys)]
        return sum(await self._write(addresses))

    @override
    async def write_batch(self, operations: Iterable[Put | Delete]) -> list[int | bool]:
        return await self._write_all(as_operations(operations))

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
        condition = parse_filter(filter)
        page = Page(_at_most(limit), _at_most(offset, "offset"))
        if query is None:
            return await self._database.read(lambda c: items.newest(c, scope, condition, page))
        words = await from_query(query_words, query)
        if not words:
            return []
        return await self._database.read(
            lambda c: list(map(items.scored, self._texts.find(c, scope, words, condition, page)))
        )

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
        check_embedding(embedding, self._dimension)
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
        return (await self._write_all([put]))[0]

    @override
    async def get_embedding(self, namespace: Namespace, key: str) -> list[float] | None:
        address, now = Address.of(namespace, key), self._clock()
        vector = await self._database.read(lambda c: items.read_vector(c, address, now))
        return None if vector is None else list(struct.unpack(f"<{len(vector) // 4}f", vector))

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
        from locus_memory.backends.sqlite.search import vectors  # noqa: PLC0415 - it loads numpy

        scope = self._scope(namespace, recursive=recursive)
        query = vectors.VectorQuery(
            vector=check_embedding(query_embedding, self._dimension),
            threshold=check_threshold(threshold),
            condition=parse_filter(metadata_filter),
        )
        page = Page(_at_most(limit), _at_most(offset, "offset"))
        cache = self._vectors()
        return await self._database.read(
            lambda c: vectors.search_vectors(c, cache, scope, query, page)
        )

    @override
    async def candidates(
        self,
        namespace: Namespace,
        limit: int,
        *,
        words: str | None = None,
        embedding: Sequence[float] | None = None,
        filter: Mapping[str, Any] | None = None,
        recursive: bool = False,
    ) -> Candidates:
        scope = self._scope(namespace, recursive=recursive)
        condition, page = parse_filter(filter), Page(_at_most(limit))
        look_for = [] if words is None else await from_query(query_words, words)
        near = None if embedding is None else self._near(scope, embedding, condition, page)

        def find(connection: sqlite3.Connection) -> tuple[Candidates, Mapping[int, Held]]:
            rows: list[Any] = []
            if look_for:
                rows = self._texts.find(connection, scope, look_for, condition, page, whole=False)
            by_text = list(map(Found._make, rows))
            by_vector = [] if near is None else near(connection)
            return self._items.candidates(connection, by_text, by_vector)

        found, new = await self._database.read(find)
        self._items.hold(new)
        return found

    def _near(
        self, scope: Scope, embedding: Sequence[float], condition: Condition, page: Page
    ) -> Callable[[sqlite3.Connection], list[Found]]:
        """Return what finds the nearest vectors on a connection."""
        from locus_memory.backends.sqlite.search import vectors  # noqa: PLC0415 - it loads numpy

        query = vectors.VectorQuery(check_embedding(embedding, self._dimension), None, condition)
        cache = self._vectors()
        return lambda c: [
            Found(each.id, each.id, each.score)
            for each in vectors.find_vectors(c, cache, scope, query, page)
        ]

    def _vectors(self) -> VectorCache:
        from locus_memory.backends.sqlite.search import vectors  # noqa: PLC0415 - it loads numpy

        if self._cache is None:
            self._cache = vectors.VectorCache(self._cache_bytes)
        return self._cache

    @override
    async def open(self) -> None:
        await self._database.open()

    @override
    async def close(self) -> None:
        if self._owned:
            await self._database.close()

    def _scope(self, namespace: Namespace, *, recursive: bool = False) -> Scope:
        return Scope.of(namespace, self._clock(), recursive=recursive)

    async def _write_all(self, operations: Sequence[Put | Delete]) -> list[int | bool]:
        return await self._write(await prepared(self._rows, operations))

    def _rows(self, operations: Sequence[Put | Delete]) -> list[Row | Address]:
        return [prepare(each, self._dimension) for each in operations]

    async def _write(self, operations: Sequence[Row | Address]) -> list[int]:
        now = self._clock()
        return await self._database.write(lambda c: items.write(c, operations, now))


def _at_most(limit: object, what: str = "limit") -> int:
    return min(check_limit(limit, what), _MOST)
