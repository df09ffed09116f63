"""The PostgreSQL store: items as `jsonb`, text search by BM25, vectors by pgvector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, TypeVar, Unpack

from typing_extensions import override

from locus_memory._internal.options import checked
from locus_memory.backends.checked_store import Purging
from locus_memory.backends.postgresql.connection.connection import (
    PostgreSQLPool,
)
from locus_memory.backends.postgresql.connection.driver import Pool
from locus_memory.backends.postgresql.connection.standbys import reading
from locus_memory.backends.postgresql.items import items, queries
from locus_memory.backends.postgresql.items.naming import Address
from locus_memory.backends.postgresql.items.ranges import Scope
from locus_memory.backends.postgresql.items.rows import Row
from locus_memory.backends.postgresql.options import (
    PostgreSQLKeywords,
    PostgreSQLOptions,
)
from locus_memory.backends.postgresql.search.texts import search_text
from locus_memory.backends.postgresql.search.vectors import (
    VectorSearch,
    vector_text,
)
from locus_memory.backends.postgresql.search.words import query_stems
from locus_memory.backends.selection import Page, Selection, VectorQuery
from locus_memory.backends.table_store import TableStore, Verb, Verbs
from locus_memory.errors import BackendUnavailableError, ConfigurationError
from locus_memory.events import emit
from locus_memory.store.item import (
    Put,
    SemanticSearchResult,
    StoreCapabilities,
    timestamp,
)

__all__ = ["PostgreSQLStore"]

T = TypeVar("T")


class PostgreSQLStore(TableStore[PostgreSQLPool, Row | Address]):
    """Items in a PostgreSQL database, safe for any number of tasks, loops and processes.

    Text search is BM25 with stemming; its word statistics are those of the namespace that is
    searched. Vectors need the extension `vector`: without it, and before the store is open,
    `capabilities` does not claim semantic search. The search of a small namespace is exact. The
    search of a large one uses an index, and never returns fewer hits than there are.

    Args:
        database: A name, or a URL (`postgresql://...`).
        pool: A pool of asyncpg's, or a `PostgreSQLPool`, to use instead; it is not closed here.
        options: How to connect, and where the tables are; ignored with a `PostgreSQLPool`.
        clock: Returns seconds since the epoch; `None`: the server's clock.
        embedding_dimension: The only vector length to take, or `None` for any.
        vector_index: `"hnsw"` keeps an index for each vector length; `None` none, and every
            vector search is exact.
        exact_below: A search among fewer vectors than this is exact.
        namespace_indexes: How many large namespaces may have a vector index of their own.
        **keywords: The fields of `PostgreSQLOptions` by name, in place of `options`.

    Raises:
        ConfigurationError: An option that cannot work.
    """

    _remedies = MappingProxyType(
        {
            "semantic_search": "The database lacks the extension vector: CREATE EXTENSION vector",
        }
    )

    _verbs = Verbs(
        address=Address.of,
        scope=Scope.of,
        read_item=items.read_item,
        read_value=items.read_value,
        exists=items.exists,
        get_values=items.get_values,
        read_items=items.read_items,
        scan=items.scan,
        scan_keys=items.scan_keys,
        list_namespaces=items.list_namespaces,
        clear=items.clear,
        newest=items.newest,
        search_text=search_text,
        read_vector=items.read_vector,
    )

    @checked
    def __init__(
        self,
        database: str | None = None,
        *,
        pool: Pool | PostgreSQLPool | None = None,
        options: PostgreSQLOptions | None = None,
        clock: Callable[[], float] | None = None,
        embedding_dimension: int | None = None,
        vector_index: Literal["hnsw"] | None = "hnsw",
        exact_below: int = 10_000,
        namespace_indexes: int = 16,
        **keywords: Unpack[PostgreSQLKeywords],
    ) -> None:
        if embedding_dimension is not None and embedding_dimension < 1:
            raise ConfigurationError("postgresql: needs embedding_dimension >= 1")
        if vector_index not in ("hnsw", None) or min(exact_below, namespace_indexes) < 0:
            raise ConfigurationError(
                "postgresql: vector_index is 'hnsw' or None, exact_below and namespace_indexes "
                "at least 0"
            )
        self._connect(PostgreSQLPool, PostgreSQLOptions, database, options, keywords, pool=pool)
        self._clock = clock
        self._dimension = embedding_dimension
        self._vectors = VectorSearch(
            self._connection,
            indexed=vector_index is not None,
            exact_below=exact_below,
            most_own=namespace_indexes,
        )
        self._purging = Purging(
            partial(items.purge, self._connection),
            most=4_096,
            failed=lambda error: emit("postgresql.purge_failed", error=error),
        )

    @property
    @override
    def capabilities(self) -> StoreCapabilities:
        """The capabilities of the database; before the store is open, those of every database."""
        vectors = False
        with suppress(BackendUnavailableError):
            vectors = self._connection.features.has_vector
        return StoreCapabilities(
            search=True,
            prefix_search=True,
            semantic_search=vectors,
            embedding_dimension=self._dimension if vectors else None,
            ttl=True,
            list_namespaces=True,
            batch_operations=True,
            transactions=True,
        )

    @override
    def _row(self, address: Address, operation: Put, vector: bytes | None) -> Row:
        return Row.of(address, operation, None if vector is None else vector_text(vector))

    @override
    async def _write(self, operations: Sequence[Row | Address]) -> list[int]:
        # It knows by then whether there are vectors that a put makes stale.
        await self._connection.open()
        now = await self._now()
        results = await items.write(self._connection, operations, now)
        await self._purging.wrote(len(operations), now)
        return results

    @override
    async def compact(self) -> None:
        await self._connection.open()
        if self._connection.features.has_vector:
            # First: while an index is built, a vacuum waits.
            await self._vectors.make_indexes()
            await self._connection.execute(queries.VACUUM_VECTORS)
        # Until then a deleted row, and its words, are still in the files.
        await self._connection.execute(queries.VACUUM_ITEMS)

    @override
    def _query_words(self, query: str) -> list[str]:
        return query_stems(query)

    @override
    async def _search_vectors(
        self, selection: Selection, page: Page, vector: bytes, threshold: float | None
    ) -> list[SemanticSearchResult]:
        query = VectorQuery(vector, selection.condition)
        with reading(of_standbys=True):
            return await self._vectors.find(await self._scope_of(selection), query, page)

    @override
    async def _ask(self, verb: Verb[T], *arguments: Any) -> T:
        with reading(of_standbys=True):
            return await verb(self._connection, *arguments)

    @override
    async def close(self) -> None:
        await self._vectors.close()
        await super().close()

    @override
    async def _now(self) -> str:
        return "now" if self._clock is None else str(timestamp(self._clock()))
