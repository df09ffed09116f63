"""The OpenSearch store: items as documents, text search by BM25, vectors by k-NN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar, Unpack

from typing_extensions import override

from locus_memory._internal.options import checked
from locus_memory.backends.checked_store import Purging
from locus_memory.backends.loops import Locks, ServerClock
from locus_memory.backends.opensearch.connection.connection import (
    OpenSearchConnection,
)
from locus_memory.backends.opensearch.connection.driver import Client
from locus_memory.backends.opensearch.items import items
from locus_memory.backends.opensearch.items.documents import Address, Document
from locus_memory.backends.opensearch.items.mapping import ITEMS
from locus_memory.backends.opensearch.items.scopes import Scope
from locus_memory.backends.opensearch.items.writing import Operation, write
from locus_memory.backends.opensearch.options import OpenSearchKeywords, OpenSearchOptions
from locus_memory.backends.opensearch.search.texts import search_text
from locus_memory.backends.opensearch.search.vectors import VectorSearch
from locus_memory.backends.selection import Page, Selection, VectorQuery
from locus_memory.backends.table_store import TableStore, Verb, Verbs
from locus_memory.errors import (
    BackendCorruptError,
    ConfigurationError,
    LocusMemoryError,
)
from locus_memory.events import emit
from locus_memory.store.item import (
    Put,
    SemanticSearchResult,
    StoreCapabilities,
)

__all__ = ["OpenSearchStore"]

T = TypeVar("T")


class OpenSearchStore(TableStore[OpenSearchConnection, Operation]):
    """Items in an OpenSearch cluster, safe for any number of tasks, loops and processes.

    A read by name sees each write at once. Searches and listings see each write of this process
    at once, and those of other processes within a second. OpenSearch has no transactions: a batch
    takes few requests, and if one of its operations is refused, the others may be done.

    Text search is BM25 with stemming, and the rarity of a word is that in the namespace that is
    searched. Vectors need the plugin k-NN: without it, and before the store is open,
    `capabilities` does not claim semantic search. The vector search of a small namespace is
    exact. The search of a large one uses an index, and never returns fewer hits than there are.

    Args:
        hosts: See `OpenSearchConnection`.
        client: An `AsyncOpenSearch`, or an `OpenSearchConnection`, to use instead; the store closes
            neither.
        options: How to connect, and the names of the indexes; ignored with an
            `OpenSearchConnection`.
        clock: Returns seconds since the epoch; `None`: the server's clock.
        embedding_dimension: The only vector length to take, or `None` for any.
        exact_below: A search among fewer vectors than this is exact.
        **keywords: The fields of `OpenSearchOptions` by name, in place of `options`.

    Raises:
        ConfigurationError: An option that cannot work.
    """

    _remedies = MappingProxyType(
        {
            "semantic_search": "The cluster lacks the plugin opensearch-knn",
            "transactions": "use put_batch and delete_batch, which take few requests and are not "
            "atomic",
        }
    )

    _verbs = Verbs(
        address=Address.of,
        scope=Scope.of,
        read_item=items.read_item,
        read_value=items.read_value,
        get_values=items.get_values,
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
        hosts: str | None = None,
        *,
        client: Client | OpenSearchConnection | None = None,
        options: OpenSearchOptions | None = None,
        clock: Callable[[], float] | None = None,
        embedding_dimension: int | None = None,
        exact_below: int = 10_000,
        **keywords: Unpack[OpenSearchKeywords],
    ) -> None:
        if embedding_dimension is not None and embedding_dimension < 1:
            raise ConfigurationError("opensearch: needs embedding_dimension >= 1")
        if exact_below < 0:
            raise ConfigurationError("opensearch: needs exact_below >= 0")
        self._connect(
            OpenSearchConnection, OpenSearchOptions, hosts, options, keywords, client=client
        )
        self._clock = clock
        self._server = ServerClock(partial(items.read_clock, self._connection))
        self._dimension = embedding_dimension
        self._vectors = VectorSearch(self._connection, exact_below=exact_below)
        self._locks = Locks()
        self._purging = Purging(
            partial(items.purge, self._connection),
            most=4_096,
            failed=lambda error: emit("opensearch.purge_failed", error=error),
        )

    @property
    @override
    def capabilities(self) -> StoreCapabilities:
        """The capabilities of the cluster; before the store is open, those of every cluster."""
        vectors = self._connection.features.knn
        return StoreCapabilities(
            search=True,
            semantic_search=vectors,
            embedding_dimension=self._dimension if vectors else None,
            ttl=True,
            list_namespaces=True,
            batch_operations=False,
            transactions=False,
        )

    @override
    def _row(self, address: Address, operation: Put, vector: bytes | None) -> Operation:
        del address
        return Document.of(operation, vector)

    @override
    async def _write(self, operations: Sequence[Operation]) -> list[int]:
        if len(operations) > 1:
            return await self._write_now(operations)
        # The puts of an item by this process are in the order of their calls.
        (single,) = operations
        name = (single.address if isinstance(single, Document) else single)[:2]
        async with self._locks.of(name):
            return await self._write_now(operations)

    async def _write_now(self, operations: Sequence[Operation]) -> list[int]:
        await self._vectors.make_fields(
            {each.dimension for each in operations if isinstance(each, Document)} - {0}
        )
        now = await self._now()
        outcomes = await write(self._connection, operations, now)
        if any(isinstance(each, BackendCorruptError) for each in outcomes):
            # Somebody may have replaced the index by one without the fields of vectors.
            self._connection.dimensions(ITEMS).clear()
        await self._purging.wrote(len(operations), now)
        results: list[int] = []
        for outcome in outcomes:
            if isinstance(outcome, LocusMemoryError):
                raise outcome
            results.append(outcome)
        return results

    @override
    async def compact(self) -> None:
        # Until then a deleted document, and its words, are still in the files.
        await items.compact(self._connection, await self._now())

    @override
    async def _search_vectors(
        self, selection: Selection, page: Page, vector: bytes, threshold: float | None
    ) -> list[SemanticSearchResult]:
        await self._connection.refresh_if_dirty(ITEMS)
        query = VectorQuery(vector, selection.condition)
        return await self._vectors.find(await self._scope_of(selection), query, page)

    @override
    async def open(self) -> None:
        await self._connection.ensure(ITEMS)

    @override
    async def _seek(self, verb: Verb[T], *arguments: Any) -> T:
        # A search sees what this process has written.
        await self._connection.refresh_if_dirty(ITEMS)
        return await super()._seek(verb, *arguments)

    @override
    async def _now(self) -> datetime:
        return await self._server.now(self._clock)
