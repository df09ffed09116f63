"""The PostgreSQL store: items as `jsonb`, text search by BM25, vectors by pgvector."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Literal, Unpack

from typing_extensions import override

from locus_memory._internal.options import Keywords, checked
from locus_memory.backends.base import OverConnection
from locus_memory.backends.checked_store import CheckedStore, Purging, needed
from locus_memory.backends.postgresql.connection.connection import (
    PostgreSQLPool,
    pool_for,
)
from locus_memory.backends.postgresql.connection.driver import Pool
from locus_memory.backends.postgresql.connection.standbys import reads
from locus_memory.backends.postgresql.items import items, queries, restoring
from locus_memory.backends.postgresql.items.items import list_namespaces
from locus_memory.backends.postgresql.items.naming import Address
from locus_memory.backends.postgresql.items.ranges import Scope
from locus_memory.backends.postgresql.items.rows import Row
from locus_memory.backends.postgresql.options import (
    PostgreSQLKeywords,
    PostgreSQLOptions,
)
from locus_memory.backends.postgresql.search.texts import TextSearch
from locus_memory.backends.postgresql.search.vectors import (
    VectorQuery,
    VectorSearch,
    read_vector,
    vector_text,
)
from locus_memory.backends.postgresql.search.words import query_stems
from locus_memory.backends.selection import KeyRange, Page, Selection
from locus_memory.errors import BackendUnavailableError, ConfigurationError
from locus_memory.events import emit
from locus_memory.store.batches import as_restored
from locus_memory.store.item import (
    Delete,
    Namespace,
    Put,
    Restored,
    SemanticSearchResult,
    StoreCapabilities,
    StoreItem,
    timestamp,
)
from locus_memory.store.listing import Listing
from locus_memory.store.words.long_texts import prepared

__all__ = ["PostgreSQLStore"]

_read = reads(of_standbys=True)


class PostgreSQLStore(OverConnection[PostgreSQLPool], CheckedStore[Row | Address]):
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
        options = Keywords(self, keywords).all_into(PostgreSQLOptions, options=options)
        self._connection, self._owned = pool_for(database, pool, options)
        self._clock = clock
        self._dimension = embedding_dimension
        self._texts = TextSearch(self._connection)
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
            semantic_search=vectors,
            embedding_dimension=self._dimension if vectors else None,
            ttl=True,
            list_namespaces=True,
            batch_operations=True,
            transactions=True,
        )

    @override
    def _encode(self, operation: Put | Delete, vector: bytes | None) -> Row | Address:
        address = Address.of(operation.namespace, operation.key, operation.if_version)
        if isinstance(operation, Delete):
            return address
        return Row.of(
            address,
            operation.value,
            operation.metadata,
            ttl=operation.ttl,
            text=operation.text,
            embedding=None if vector is None else vector_text(vector),
        )

    @override
    async def _write(self, operations: Sequence[Row | Address]) -> list[int]:
        # It knows by then whether there are vectors that a put makes stale.
        await self._connection.open()
        now = self._now()
        results = await items.write(self._connection, operations, now)
        await self._purging.wrote(len(operations), now)
        return results

    @override
    @_read
    async def _get_value(self, namespace: Namespace, key: str) -> Any:
        address = Address.of(namespace, key)
        row = await self._connection.fetchrow(queries.GET_VALUE, address.name, self._now())
        return None if row is None else items.value_of(row, address)

    @override
    @_read
    async def _get_item(self, namespace: Namespace, key: str) -> StoreItem | None:
        name = Address.of(namespace, key).name
        row = await self._connection.fetchrow(queries.GET, name, self._now())
        return None if row is None else items.item_of(row)

    @override
    @_read
    async def _exists(self, namespace: Namespace, key: str) -> bool:
        address = Address.of(namespace, key)
        return (
            await self._connection.fetchval(queries.EXISTS, address.name, self._now()) is not None
        )

    @override
    @_read
    async def _get_values(
        self, names: Sequence[tuple[Namespace, str]]
    ) -> dict[tuple[Namespace, str], Any]:
        addresses = {Address.of(*name): name for name in names}
        given = {address.name: name for address, name in addresses.items()}
        values = await items.get_values(self._connection, list(addresses), self._now())
        return {given[each]: value for each, value in values.items()}

    @override
    @_read
    async def _scan(self, namespace: Namespace, keys: KeyRange, limit: int) -> list[StoreItem]:
        return await items.scan(self._connection, self._scope(namespace), keys, limit)

    @override
    @_read
    async def _list_keys(self, namespace: Namespace, keys: KeyRange, limit: int) -> list[str]:
        return await items.scan_keys(self._connection, self._scope(namespace), keys, limit)

    @override
    @_read
    async def _list_namespaces(self, listing: Listing, limit: int) -> list[Namespace]:
        return await list_namespaces(self._connection, listing, limit, self._now())

    @override
    async def _clear(self, namespace: Namespace, *, recursive: bool) -> int:
        return await items.clear(self._connection, self._scope(namespace, recursive=recursive))

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
    async def restore(self, items: Iterable[Restored]) -> None:
        await self._restore(as_restored(items))

    async def _restore(self, given: list[Restored]) -> None:
        encoded = await prepared(self._encode_all, given)
        rows = [each for each in encoded if isinstance(each, Row)]
        for capability in needed(given):
            await self._need(capability)
        await self._connection.open()
        if rows:
            await restoring.restore(self._connection, rows, given)
            await self._purging.wrote(len(rows), self._now())

    @override
    @_read
    async def _newest(self, selection: Selection, page: Page) -> list[StoreItem]:
        scope = self._scope_of(selection)
        return await items.newest(self._connection, scope, selection.condition, page)

    @override
    def _query_words(self, query: str) -> list[str]:
        return query_stems(query)

    @override
    @_read
    async def _search_text(
        self, selection: Selection, page: Page, words: list[str]
    ) -> list[StoreItem]:
        scope = self._scope_of(selection)
        return await self._texts.find(scope, words, selection.condition, page)

    @override
    @_read
    async def _get_embedding(self, namespace: Namespace, key: str) -> list[float] | None:
        sent = await items.read_vector(self._connection, Address.of(namespace, key), self._now())
        return None if sent is None else read_vector(sent)

    @override
    @_read
    async def _search_vectors(
        self, selection: Selection, page: Page, vector: bytes, threshold: float | None
    ) -> list[SemanticSearchResult]:
        query = VectorQuery(vector_text(vector), threshold, selection.condition)
        return await self._vectors.find(self._scope_of(selection), query, page)

    @override
    async def close(self) -> None:
        await self._vectors.close()
        await super().close()

    def _now(self) -> str:
        return "now" if self._clock is None else str(timestamp(self._clock()))

    def _scope(self, namespace: Namespace, *, recursive: bool = False) -> Scope:
        return Scope.of(namespace, self._now(), recursive=recursive)

    def _scope_of(self, selection: Selection) -> Scope:
        return self._scope(selection.namespace, recursive=selection.recursive)

    @override
    def _remedy(self, capability: str) -> str | None:
        if capability == "semantic_search":
            return "The database lacks the extension vector: CREATE EXTENSION vector"
        return super()._remedy(capability)
