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
from locus_memory.backends.selection import Page, Past, Selection, VectorQuery
from locus_memory.backends.sqlite import items, queries
from locus_memory.backends.sqlite.connection.connection import SQLiteDatabase
from locus_memory.backends.sqlite.connection.opening import roll_back
from locus_memory.backends.sqlite.items import Address, OutdatedError, Row, Scope
from locus_memory.backends.sqlite.search.caches import Caches, CurrentCaches, Found
from locus_memory.backends.sqlite.search.texts import newest
from locus_memory.backends.table_store import TableStore, Verb, Verbs
from locus_memory.errors import ConfigurationError
from locus_memory.store.candidates import Candidates, CandidateStore
from locus_memory.store.item import (
    Namespace,
    Put,
    Restored,
    SemanticSearchResult,
    StoreCapabilities,
    StoreItem,
    check_embedding,
)
from locus_memory.store.json_values import encode_json, encode_metadata
from locus_memory.store.text import searchable
from locus_memory.store.words.long_texts import from_query

__all__ = ["SQLiteStore"]

T = TypeVar("T")


class SQLiteStore(TableStore[SQLiteDatabase, Row | Address], CandidateStore):
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

    # They run in a thread of the database, and are no coroutines.
    _verbs = Verbs(
        **dict[str, Any](
            address=Address.of,
            scope=Scope.of,
            read_item=items.read_item,
            exists=items.exists,
            get_values=items.get_values,
            read_items=items.read_items,
            scan=items.scan,
            scan_keys=items.scan_keys,
            list_namespaces=items.namespaces,
            clear=items.clear,
            newest=newest,
            read_vector=items.read_vector,
        )
    )

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
            prefix_search=True,
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
    def _row(self, address: Address, operation: Put, vector: bytes | None) -> Row:
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
    async def compact(self) -> None:
        """Leave no word of what is gone, neither in the text index nor in the log."""
        await self._connection.write(lambda c: c.execute(queries.COMPACT_TEXTS))
        await self._connection.empty_log()

    @override
    async def _search_text(
        self, selection: Selection, page: Page, words: list[str]
    ) -> list[StoreItem]:
        scope, condition = await self._scope_of(selection), selection.condition

        def find(connection: sqlite3.Connection, caches: Caches) -> list[StoreItem]:
            found = caches.matches(connection, scope, words, condition, page)
            return items.items_of_matches(connection, found)

        return await self._find(find)

    @override
    async def _search_vectors(
        self, selection: Selection, page: Page, vector: bytes, threshold: float | None
    ) -> list[SemanticSearchResult]:
        from locus_memory.backends.sqlite.search import vectors  # noqa: PLC0415 - it loads numpy

        scope = await self._scope_of(selection)
        query = VectorQuery(vector, selection.condition)
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
        scope, condition = await self._scope_of(selection), selection.condition
        look_for = [] if words is None else await from_query(self._query_words, words)
        near = None if embedding is None else await self._near(selection, embedding, page)

        def find(connection: sqlite3.Connection, caches: Caches) -> Candidates:
            rows = caches.matches(connection, scope, look_for, condition, page) if look_for else []
            by_text = list(map(Found._make, rows))
            by_vector = [] if near is None else near(connection, caches)
            return caches.items.candidates(connection, by_text, by_vector)

        return await self._find(find)

    async def _find(self, find: Callable[[sqlite3.Connection, Caches], T]) -> T:
        """Return what is found in a state of the file that is as late as that of the caches."""

        def read(connection: sqlite3.Connection) -> T:
            while True:
                with suppress(OutdatedError):
                    return find(connection, self._caches.of(connection))
                roll_back(connection)
                connection.execute("BEGIN")

        return await self._connection.read(read)

    async def _near(
        self, selection: Selection, embedding: Sequence[float], page: Page
    ) -> Callable[[sqlite3.Connection, Caches], list[Found]]:
        """Return what finds the nearest vectors on a connection."""
        from locus_memory.backends.sqlite.search import vectors  # noqa: PLC0415 - it loads numpy

        vector = check_embedding(embedding, self._dimension)
        query = VectorQuery(vector, selection.condition)
        scope = await self._scope_of(selection)
        return lambda c, caches: [
            Found(place, place, max(0.0, cosine))
            for place, cosine in vectors.find_vectors(c, caches.vectors, scope, query, page)
        ]

    @override
    async def _ask(self, verb: Verb[T], *arguments: Any) -> T:
        return await self._connection.read(_of_thread(verb, *arguments))

    @override
    async def _change(self, verb: Verb[T], *arguments: Any) -> T:
        return await self._connection.write(_of_thread(verb, *arguments))

    @override
    async def _now(self) -> float:
        return self._clock()


def _of_thread(verb: Verb[T], *arguments: Any) -> Callable[[sqlite3.Connection], T]:
    """Return a verb, which waits for nothing, as a function for a thread of the database."""
    function: Callable[..., Any] = verb
    return lambda connection: function(connection, *arguments)
