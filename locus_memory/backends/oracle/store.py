"""The Oracle store: exact JSON in BLOBs, text search by BM25, vectors of the database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar, Unpack

from typing_extensions import override

from locus_memory._internal.options import checked
from locus_memory.backends.checked_store import Purging
from locus_memory.backends.loops import ServerClock
from locus_memory.backends.oracle.connection.connection import OraclePool
from locus_memory.backends.oracle.connection.driver import Pool
from locus_memory.backends.oracle.items import items
from locus_memory.backends.oracle.items.namespaces import list_namespaces
from locus_memory.backends.oracle.items.naming import Address
from locus_memory.backends.oracle.items.ranges import Scope
from locus_memory.backends.oracle.items.rows import ItemRow
from locus_memory.backends.oracle.options import (
    MOST_DIMENSIONS,
    OracleKeywords,
    OracleOptions,
)
from locus_memory.backends.oracle.search.texts import query_stems, search_text
from locus_memory.backends.oracle.search.vectors import search_vectors
from locus_memory.backends.selection import Page, Selection, VectorQuery
from locus_memory.backends.table_store import TableStore, Verb, Verbs
from locus_memory.errors import (
    BackendUnavailableError,
    ConfigurationError,
    InvalidEmbeddingError,
)
from locus_memory.events import emit
from locus_memory.store.item import (
    Put,
    SemanticSearchResult,
    StoreCapabilities,
)

__all__ = ["OracleStore"]

T = TypeVar("T")


class OracleStore(TableStore[OraclePool, ItemRow | Address]):
    """Items in an Oracle Database, safe for any number of tasks, loops and processes.

    Text search is BM25 with stemming; its word statistics are those of the namespace that is
    searched. Vectors need release 23.4 or newer: before it, and before the store is open,
    `capabilities` does not claim semantic search.

    Args:
        dsn: See `OraclePool`.
        pool: A pool of oracledb, or an `OraclePool`, to use instead; it is not closed here.
        options: How to connect, and where the tables are; ignored with an `OraclePool`.
        clock: Returns seconds since the epoch; `None`: the server's clock.
        embedding_dimension: The only vector length to accept; by default `vector_dimension` of
            the options.
        **keywords: The fields of `OracleOptions` by name, in place of `options`.

    Raises:
        ConfigurationError: An option that cannot work.
    """

    _remedies = MappingProxyType(
        {"semantic_search": "The type VECTOR needs Oracle Database 23.4 or newer"}
    )

    _verbs = Verbs(
        address=Address.of,
        scope=Scope.of,
        read_item=items.read_item,
        get_values=items.get_values,
        scan=items.scan,
        scan_keys=items.scan_keys,
        list_namespaces=list_namespaces,
        clear=items.clear,
        newest=items.newest,
        search_text=search_text,
        read_vector=items.read_vector_at,
    )

    @checked
    def __init__(
        self,
        dsn: str | None = None,
        *,
        pool: Pool | OraclePool | None = None,
        options: OracleOptions | None = None,
        clock: Callable[[], float] | None = None,
        embedding_dimension: int | None = None,
        **keywords: Unpack[OracleKeywords],
    ) -> None:
        self._connect(OraclePool, OracleOptions, dsn, options, keywords, pool=pool)
        fixed = self._connection.options.vector_dimension
        if embedding_dimension is not None and (
            embedding_dimension < 1 or fixed not in (None, embedding_dimension)
        ):
            raise ConfigurationError(
                "oracle: needs embedding_dimension >= 1, and the same as vector_dimension"
            )
        self._clock = clock
        self._server = ServerClock(partial(items.read_clock, self._connection))
        self._dimension = fixed if embedding_dimension is None else embedding_dimension
        self._purging = Purging(
            partial(items.purge, self._connection),
            most=2_048,
            failed=lambda error: emit("oracle.purge_failed", error=error),
        )

    @property
    @override
    def capabilities(self) -> StoreCapabilities:
        """The capabilities of the database; before the store is open, those of every database."""
        vectors = False
        with suppress(BackendUnavailableError):
            vectors = self._connection.features.has_vectors
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
    def _row(self, address: Address, operation: Put, vector: bytes | None) -> ItemRow:
        if vector is not None and len(vector) > 4 * MOST_DIMENSIONS:
            raise InvalidEmbeddingError(
                f"the embedding has {len(vector) // 4} dimensions, Oracle holds {MOST_DIMENSIONS:,}"
            )
        return ItemRow.of(address, operation, vector)

    @override
    async def _write(self, operations: Sequence[ItemRow | Address]) -> list[int]:
        # It is known by then whether there are vectors that a put makes stale.
        await self._connection.open()
        self._check_dimension(operations)
        now = await self._now()
        results = await items.write(self._connection, operations, now)
        await self._purging.wrote(len(operations), now)
        return results

    def _check_dimension(self, operations: Sequence[ItemRow | Address]) -> None:
        """Refuse vectors that the column does not take."""
        wanted = self._connection.features.dimension
        for each in operations:
            vector = each.vector if isinstance(each, ItemRow) else None
            if wanted is not None and vector is not None and len(vector) != 4 * wanted:
                raise InvalidEmbeddingError(
                    f"the embedding has {len(vector) // 4} dimensions, the tables hold {wanted}"
                )

    @override
    def _query_words(self, query: str) -> list[str]:
        return query_stems(query)

    @override
    async def _search_vectors(
        self, selection: Selection, page: Page, vector: bytes, threshold: float | None
    ) -> list[SemanticSearchResult]:
        scope, query = await self._scope_of(selection), VectorQuery(vector, selection.condition)
        return await search_vectors(self._connection, scope, query, page)

    @override
    async def _seek(self, verb: Verb[T], *arguments: Any) -> T:
        # Its statement depends on the features of the database.
        await self._connection.open()
        return await super()._seek(verb, *arguments)

    @override
    async def _now(self) -> datetime:
        return await self._server.now(self._clock)
