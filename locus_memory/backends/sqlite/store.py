"""The SQLite store: items, text search and exact vector search in one file."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, TypeVar

from typing_extensions import override

from locus_memory._internal.options import checked
from locus_memory.backends.base import OverConnection
from locus_memory.backends.checked_store import CheckedStore
from locus_memory.backends.selection import KeyRange, Page, Selection
from locus_memory.backends.sqlite import items, queries
from locus_memory.backends.sqlite.connection.connection import SQLiteDatabase
from locus_memory.backends.sqlite.connection.opening import roll_back
from locus_memory.backends.sqlite.items import Address, OutdatedError, Past, Row, Scope
from locus_memory.backends.sqlite.search.caches import Caches, CurrentCaches, Found
from locus_memory.backends.sqlite.search.texts import newest
from locus_memory.errors import ConfigurationError
from locus_memory.store.candidates import Candidates, CandidateStore
from locus_memory.store.item import (
    Delete,
    Namespace,
    Put,
    Restored,
    SemanticSearchResult,
    StoreCapabilities,
    StoreItem,
    check_embedding,
    embedding_numbers,
)
from locus_memory.store.json_values import encode_json, encode_metadata
from locus_memory.store.listing import Listing
from locus_memory.store.text import searchable
from locus_memory.store.words.long_texts import from_query

__all__ = ["SQLiteStore"]

_Result = TypeVar("_Result")


class SQLiteStore(OverConnection[SQLiteDatabase], CheckedStore[Row | Address], CandidateStore):
    """Items in a SQLite file, safe for any number of tasks, threads and processes.

    Text search is FTS5's, with stemming and BM25; its word statistics are those of the whole
    file. Vector search is exact up to a number of vectors, and uses codes beyond it. Deleted and
    expired items leave nothing behind.

    Args:
        path: The file, made on first use, or `":memory:"`.
        database: An open or unopened database to use instead; the store does not close it.
        clock: Returns seconds since the epoch.
        vector_cache_bytes: How much memory vectors and their codes may take. A search of vectors
            that take up to a quarter of it is exact; a search of more selects candidates by codes.
            If the codes take more than three quarters, all vectors are read from the file.
            Text search may take a sixteenth of it beside, for the items of common words.
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
        self._connection = database or SQLiteDatabase(
            path, busy_timeout=busy_timeout, synchronous=synchronous
        )
        self._clock = clock
        self._dimension = embedding_dimension
        self._caches = CurrentCaches(vector_cache_bytes)
        self._capabilities = StoreCapabilities(
            search=True,
            semantic_search=True,
            embedding_dimension=embedding_dimension,
            ttl=True,
            list_namespaces=True,
            batch_operations=True,
            transactions=True,
        )

    @property
    @override
    def capabilities(self) -> StoreCapabilities:
        """Everything."""
        return self._capabilities

    @override
    def _encode(self, operation: Put | Delete, vector: bytes | None) -> Row | Address:
        address = Address.of(operation.namespace, operation.key, operation.if_version)
        if isinstance(operation, Delete):
            return address
        return Row(
            address,
            encode_json(operation.value),
            encode_metadata(operation.metadata),
            searchable(operation.value, operation.text),
            operation.ttl,
            vector,
            Past.of(operation) if isinstance(operation, Restored) else None,
        )

    @override
    async def _write(self, operations: Sequence[Row | Address]) -> list[int]:
        now = self._clock()
        return await self._connection.write(lambda c: items.write(c, operations, now))

    @override
    async def _get_item(self, namespace: Namespace, key: str) -> StoreItem | None:
        address, now = Address.of(namespace, key), self._clock()
        return await self._connection.read(lambda c: items.read_item(c, address, now))

    @override
    async def _exists(self, namespace: Namespace, key: str) -> bool:
        address = Address.of(namespace, key)
        values = {"path": address.path, "key": address.key, "now": self._clock()}
        return await self._connection.read(
            lambda c: c.execute(queries.EXISTS, values).fetchone() is not None
        )

    @override
    async def _get_values(
        self, names: Sequence[tuple[Namespace, str]]
    ) -> dict[tuple[Namespace, str], Any]:
        addresses, now = [Address.of(*name) for name in names], self._clock()

        def read(connection: sqlite3.Connection) -> list[StoreItem | None]:
            return [items.read_item(connection, address, now) for address in addresses]

        found = await self._connection.read(read)
        return {(item.namespace, item.key): item.value for item in found if item is not None}

    @override
    async def _scan(self, namespace: Namespace, keys: KeyRange, limit: int) -> list[StoreItem]:
        scope = self._scope(namespace)
        return await self._connection.read(lambda c: items.scan(c, scope, keys, limit))

    @override
    async def _list_keys(self, namespace: Namespace, keys: KeyRange, limit: int) -> list[str]:
        scope = self._scope(namespace)
        return await self._connection.read(lambda c: items.scan_keys(c, scope, keys, limit))

    @override
    async def _list_namespaces(self, listing: Listing, limit: int) -> list[Namespace]:
        now = self._clock()
        return await self._connection.read(lambda c: items.namespaces(c, listing, limit, now))

    @override
    async def _clear(self, namespace: Namespace, *, recursive: bool) -> int:
        scope = self._scope(namespace, recursive=recursive)
        return await self._connection.write(lambda c: items.clear(c, scope))

    @override
    async def compact(self) -> None:
        """Leave no word of what is gone, neither in the text index nor in the log."""
        await self._connection.write(lambda c: c.execute(queries.COMPACT_TEXTS))
        await self._connection.empty_log()

    @override
    async def _newest(self, selection: Selection, page: Page) -> list[StoreItem]:
        scope, condition = self._scope_of(selection), selection.condition
        return await self._connection.read(lambda c: newest(c, scope, condition, page))

    @override
    async def _search_text(
        self, selection: Selection, page: Page, words: list[str]
    ) -> list[StoreItem]:
        scope, condition = self._scope_of(selection), selection.condition

        def find(connection: sqlite3.Connection, caches: Caches) -> list[StoreItem]:
            found = caches.matches(connection, scope, words, condition, page)
            return items.items_of_matches(connection, found)

        return await self._find(find)

    @override
    async def _get_embedding(self, namespace: Namespace, key: str) -> list[float] | None:
        address, now = Address.of(namespace, key), self._clock()
        vector = await self._connection.read(lambda c: items.read_vector(c, address, now))
        return None if vector is None else embedding_numbers(vector)

    @override
    async def _search_vectors(
        self, selection: Selection, page: Page, vector: bytes, threshold: float | None
    ) -> list[SemanticSearchResult]:
        from locus_memory.backends.sqlite.search import vectors  # noqa: PLC0415 - it loads numpy

        scope = self._scope_of(selection)
        query = vectors.VectorQuery(vector, threshold, selection.condition)
        return await self._find(
            lambda c, caches: vectors.search_vectors(c, caches.vectors, scope, query, page)
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
        selection, page = Selection.of(namespace, filter, recursive=recursive), Page.of(limit)
        scope, condition = self._scope_of(selection), selection.condition
        look_for = [] if words is None else await from_query(self._query_words, words)
        near = None if embedding is None else self._near(selection, embedding, page)

        def find(connection: sqlite3.Connection, caches: Caches) -> Candidates:
            rows = caches.matches(connection, scope, look_for, condition, page) if look_for else []
            by_text = list(map(Found._make, rows))
            by_vector = [] if near is None else near(connection, caches)
            return caches.items.candidates(connection, by_text, by_vector)

        return await self._find(find)

    async def _find(self, find: Callable[[sqlite3.Connection, Caches], _Result]) -> _Result:
        """Return what is found in a state of the file that is as late as that of the caches."""

        def read(connection: sqlite3.Connection) -> _Result:
            while True:
                with suppress(OutdatedError):
                    return find(connection, self._caches.of(connection))
                roll_back(connection)
                connection.execute("BEGIN")

        return await self._connection.read(read)

    def _near(
        self, selection: Selection, embedding: Sequence[float], page: Page
    ) -> Callable[[sqlite3.Connection, Caches], list[Found]]:
        """Return what finds the nearest vectors on a connection."""
        from locus_memory.backends.sqlite.search import vectors  # noqa: PLC0415 - it loads numpy

        vector = check_embedding(embedding, self._dimension)
        query = vectors.VectorQuery(vector, None, selection.condition)
        scope = self._scope_of(selection)
        return lambda c, caches: [
            Found(each.id, each.id, each.score)
            for each in vectors.find_vectors(c, caches.vectors, scope, query, page)
        ]

    def _scope(self, namespace: Namespace, *, recursive: bool = False) -> Scope:
        return Scope.of(namespace, self._clock(), recursive=recursive)

    def _scope_of(self, selection: Selection) -> Scope:
        return self._scope(selection.namespace, recursive=selection.recursive)
