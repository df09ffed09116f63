"""`LocusStore`: a store for LangGraph over any store of the library."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, cast

from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
)
from typing_extensions import override

from locus_memory._internal.quoting import quote
from locus_memory._internal.sameness import own_copy
from locus_memory.backends.base import Backend
from locus_memory.errors import (
    BackendUnavailableError,
    ConfigurationError,
    InvalidArgumentError,
)
from locus_memory.integrations.langgraph.items.bursts import Bursts
from locus_memory.integrations.langgraph.items.filter_translation import compile_filter
from locus_memory.integrations.langgraph.items.index import Vector, VectorIndex
from locus_memory.integrations.langgraph.items.notes import updated_at
from locus_memory.integrations.langgraph.items.search import (
    Wanted,
    find,
    list_namespaces,
)
from locus_memory.integrations.langgraph.items.writing import (
    PastItem,
    Restoring,
    renew,
    restore,
    write,
)
from locus_memory.integrations.langgraph.opening import Opened, Sweeping
from locus_memory.registry import as_store
from locus_memory.store.base import BaseStore as OurStore
from locus_memory.store.base import has_semantic_search, read_together, side_by_side
from locus_memory.store.hidden_namespaces import FURTHER_VECTORS
from locus_memory.store.item import Namespace, StoreItem
from locus_memory.sync import blocking

__all__ = ["LocusStore"]


class LocusStore(Opened, Sweeping, BaseStore):
    """A `langgraph.store.base.BaseStore` that keeps its items in any store of the library.

    ```python
    async with LocusStore("postgresql:mydb", index={"dims": 1536, "embed": "openai:..."}) as store:
        graph = builder.compile(store=store)
    ```

    Namespaces, keys and values are those of the inner store: an item put here is one of its items,
    and items that other programs put there are found here. Sync methods run in the background event
    loop of `locus_memory.sync`; inside a running event loop they raise `BlockingCallError`.

    All methods of LangGraph's store are supported. Where LangGraph's stores differ, it follows the
    `PostgresStore`:

    - `search` reads only the namespaces below its prefix, `limit` and `offset` are exact, and `()`
      means all namespaces. Without a query the newest update comes first.
    - With `index`, a query is a vector search by the best text of each item; items without a vector
      are not found. `score` is the cosine, from -1 to 1.
    - Without `index`, a query is a text search, where LangGraph's stores ignore it. `score` is that
      of the text search, comparable within one result. As in LangGraph, `put` then ignores its
      `index`.
    - A filter's field is a key of the value, an object in it means each of its fields, and a name
      with dots that is not a key is a path. Types are never coerced, and a missing field matches
      only `$ne`. The operators of `locus_memory.store.filters` work as well.
    - The reads of a batch see the data before its writes; of several puts of one key the last
      counts. A batch of more than 1,000 writes is written in parts.
    - Batches of one turn of the event loop run as one, each with its own error. So a read may see
      the data before a write that began in the same turn.
    - `put` keeps `created_at`, and drops the vectors of the replaced item.
    - A TTL is in minutes. Expired items are immediately invisible. A read that restarts a TTL is a
      write of the item: its version increases, and it comes first in a search without a query;
      `updated_at` stays.

    Args:
        where: A provider string, a backend or a store of the library. Only the store of a string is
            closed here.
        index: LangGraph's `IndexConfig`: `dims`, `embed` and `fields`. `embed` may also be an
            `Embedder` of the library. `None`: no vectors.
        ttl: LangGraph's `TTLConfig`: `default_ttl` and `refresh_on_read`. Expired items are never
            returned, and need no sweeper.

    Raises:
        ConfigurationError: `where` has no store, or `index` is invalid. On opening or first use:
            the store has no semantic search for `index`.
    """

    def __init__(
        self,
        where: str | OurStore | Backend,
        *,
        index: IndexConfig | Mapping[str, Any] | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        self._index = VectorIndex(index) if index else None
        self._store, self._owned = as_store(where)
        held = self._store.capabilities.embedding_dimension
        if self._index is not None and self._index.dims and held not in (None, self._index.dims):
            raise ConfigurationError(
                f"index makes vectors of {self._index.dims} dimensions, {quote(self._store)} holds "
                f"{held}"
            )
        self.index_config = index
        self.ttl_config = ttl
        self.supports_ttl = self._store.capabilities.ttl
        self._bursts = Bursts(self._read, partial(write, self._store, self._index))

    @override
    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._store!r})"

    @override
    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Return the results of several operations, in their order.

        Raises:
            InvalidNamespaceError: An invalid namespace; LangGraph's error.
            InvalidArgumentError: Another invalid argument. Nothing is written.
            BackendError: The database failed.
        """
        return await self._bursts.joined([_checked(op) for op in ops])

    @override
    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Return the result of `abatch`.

        Raises:
            BlockingCallError: An event loop runs in this thread; other errors as for `abatch`.
        """
        return cast("list[Result]", blocking(self).abatch(ops))

    async def arestore(self, items: Iterable[PastItem]) -> Restoring:
        """Write items of another store with their moments, and with vectors if there is an `index`.

        Of two versions of an item, the one that was put last stays. So a call can be repeated.

        Args:
            items: The items, each name at most once, the oldest put first.

        Raises:
            InvalidNamespaceError: An invalid namespace; LangGraph's error.
            InvalidArgumentError: Another invalid field. Nothing is written.
            StoreCapabilityError: An item expires, and the store has no expiry.
            BackendError: The database failed.
        """
        listed = list(items)
        for each in listed:
            _checked(each.put())
        await self._need_vectors()
        return await restore(self._store, self._index, listed)

    @override
    async def aopen(self) -> None:
        """Connect and set up now, rather than on first use.

        Raises:
            ConfigurationError: There is an `index`, and the store has no semantic search.
        """
        await self._store.open()
        await self._need_vectors()

    @override
    async def aclose(self) -> None:
        if self._owned:
            await self._store.close()

    async def _need_vectors(self) -> None:
        if self._index is not None and not await has_semantic_search(self._store):
            raise ConfigurationError(f"{quote(self._store)} has no semantic search for an index")

    async def _read(self, ops: Sequence[Op]) -> list[Result | Exception]:
        await self._need_vectors()
        vectors: Mapping[str, Vector | Exception | None] | None = None
        if self._index is not None:
            queries = [op.query for op in ops if isinstance(op, SearchOp) and op.query]
            vectors = await _vectors(self._index, list(dict.fromkeys(queries)))
        # Equal reads of a burst are one; the numbers 1 and 1.0 in a filter differ in their text.
        texts = ["" if isinstance(op, PutOp) else repr(op) for op in ops]
        reads = {text: op for text, op in zip(texts, ops, strict=True) if text}
        found: dict[str, Any] = await self._items(reads)
        others = [text for text in reads if text not in found]
        answers = await side_by_side(lambda text: self._answer(reads[text], vectors), others)
        found |= zip(others, answers, strict=True)
        await self._renew(reads, found)
        # A further caller has a copy, for each may change what it gets.
        results, told = list[Result | Exception](), {""}
        for op, text in zip(ops, texts, strict=True):
            results.append(_result(op, found.get(text), is_copy=text in told))
            told.add(text)
        return results

    async def _items(self, reads: Mapping[str, Op]) -> dict[str, StoreItem | None]:
        """Return what the store has for the reads of single items; nothing if one of them fails."""
        names = {text: (op.namespace, op.key) for text, op in reads.items() if type(op) is GetOp}
        try:
            known = await read_together(self._store, filter(itemgetter(0), names.values()))
        except BackendUnavailableError:
            raise
        except Exception:  # noqa: BLE001 - each is read again, and has its own error
            return {}
        return {text: known.get(name) for text, name in names.items()}

    async def _answer(self, op: Op, vectors: Mapping[str, Vector | Exception | None] | None) -> Any:
        """Return what the store has for a read, or the error of that read alone."""
        try:
            if isinstance(op, SearchOp):
                return await self._search(op, vectors)
            if isinstance(op, ListNamespacesOp):
                return await list_namespaces(self._store, op)
            one = cast("GetOp", op)
            return await self._store.get_item(*one[:2]) if one.namespace else None
        except BackendUnavailableError:
            # Each of the others would wait for the database as long.
            raise
        except Exception as error:  # noqa: BLE001 - it is raised by the call that has it
            return error

    async def _search(
        self, op: SearchOp, vectors: Mapping[str, Vector | Exception | None] | None
    ) -> list[StoreItem]:
        query = op.query or None
        vector = None if vectors is None or query is None else vectors[query]
        if isinstance(vector, Exception):
            raise vector
        condition = compile_filter(op.filter)
        if vectors is not None and query is not None and vector is None:
            return []
        wanted = Wanted(op.namespace_prefix, condition, query, vector)
        return await find(self._store, wanted, op.limit, op.offset)

    async def _renew(self, reads: Mapping[str, Op], found: Mapping[str, Any]) -> None:
        """Restart the TTL of the items that were read."""
        read: dict[tuple[Namespace, str], StoreItem] = {}
        for text, op in reads.items():
            if isinstance(op, GetOp | SearchOp) and op.refresh_ttl:
                items = found[text] if isinstance(found[text], list) else [found[text]]
                read |= {(i.namespace, i.key): i for i in items if isinstance(i, StoreItem)}
        await renew(self._store, read.values())


async def _vectors(
    index: VectorIndex, queries: Sequence[str]
) -> dict[str, Vector | Exception | None]:
    """Return the vector of each query, or the error of that query alone."""
    try:
        return {**await index.vectors(queries, "query")}
    except Exception as error:  # noqa: BLE001 - it is raised by the search that has it
        if len(queries) == 1:
            return {queries[0]: error}
    answers = await side_by_side(lambda each: _vectors(index, [each]), queries)
    return {query: vector for answer in answers for query, vector in answer.items()}


def _result(op: Op, found: Any, *, is_copy: bool) -> Result | Exception:
    """Return what a caller gets for what was found."""
    if isinstance(found, StoreItem):
        return Item(**_fields(found, is_copy=is_copy))
    if isinstance(op, SearchOp) and isinstance(found, list):
        items = cast("list[StoreItem]", found)
        return [SearchItem(**_fields(item, is_copy=is_copy), score=item.score) for item in items]
    return cast("Result", found.copy() if isinstance(found, list) else found)


def _fields(item: StoreItem, *, is_copy: bool) -> dict[str, Any]:
    return {
        "namespace": item.namespace,
        "key": item.key,
        "value": own_copy(item.value) if is_copy else item.value,
        "created_at": item.created_at,
        "updated_at": updated_at(item),
    }


def _checked(op: Op) -> Op:
    """Return an operation with valid arguments.

    Raises:
        InvalidNamespaceError: Its namespace is invalid.
        InvalidArgumentError: Its value is invalid, or it is not an operation.
    """
    if isinstance(op, PutOp):
        if not op.namespace:
            raise InvalidNamespaceError("a namespace needs at least one label")
        if op.value is not None and not isinstance(op.value, Mapping):
            raise InvalidArgumentError(f"a value is an object, not {type(op.value).__name__}")
        _check_labels(op.namespace)
    elif isinstance(op, GetOp):
        _check_labels(op.namespace)
    elif isinstance(op, SearchOp):
        _check_labels(op.namespace_prefix)
    elif not isinstance(op, ListNamespacesOp):
        raise InvalidArgumentError(f"not an operation of LangGraph's: {type(op).__name__}")
    return op


def _check_labels(namespace: object) -> None:
    # Labels with periods, which LangGraph's own methods refuse, are valid here.
    if not isinstance(namespace, tuple):
        raise InvalidNamespaceError(
            f"a namespace is a tuple of strings, not {type(namespace).__name__}"
        )
    for label in namespace:
        if not isinstance(label, str) or not label:
            raise InvalidNamespaceError(
                f"a namespace label is a non-empty string, not {quote(label)}"
            )
    if namespace and namespace[0] == FURTHER_VECTORS:
        raise InvalidNamespaceError(f"{FURTHER_VECTORS!r} is where the store keeps its vectors")
