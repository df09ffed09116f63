"""A base class of stores that checks the arguments of every verb, once for all backends."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

from typing_extensions import override

from locus_memory.backends.selection import KeyRange, Page, Selection, at_most
from locus_memory.errors import BackendError
from locus_memory.store.base import BaseStore
from locus_memory.store.batches import as_names, as_operations, as_puts, as_restored
from locus_memory.store.item import (
    Delete,
    Namespace,
    Put,
    Restored,
    SemanticSearchResult,
    StoreItem,
    check_embedding,
    check_key,
    check_namespace,
    check_restored,
    check_threshold,
    check_ttl,
    check_version,
    quick_put,
)
from locus_memory.store.listing import Listing
from locus_memory.store.text import query_prefix, query_words
from locus_memory.store.words.long_texts import from_query, prepared

__all__ = ["CheckedStore", "Purging", "implements", "needed"]

Encoded = TypeVar("Encoded")
MomentT = TypeVar("MomentT")

_BEHIND: Final = {
    "get_batch": "_get_values",
    "list_namespaces": "_list_namespaces",
    "search": "_search_text",
    "get_embedding": "_get_embedding",
    "search_by_embedding": "_search_vectors",
}
"""The optional methods of a backend, by the verbs that call them."""

_MOST_WORDS: Final = 10_000
"""Of a query: the time of some engines grows with the square of their number."""

_REMEDIES: Final = {
    "search": "list with query=None, or choose another backend",
    "prefix_search": "search for whole words, or choose another backend",
}

_PURGE_EVERY: Final = 1_024
"""Items written between two purges of expired items; the first write of a store is one."""


class Purging(Generic[MomentT]):
    """The purges of expired items: some of them are deleted after some of the writes.

    Args:
        purge: Deletes at most so many items that are expired at a moment.
        most: How many: more than can expire meanwhile.
        failed: Reports the failure of a purge; the write of the caller is done by then.
    """

    def __init__(
        self,
        purge: Callable[[MomentT, int], Awaitable[None]],
        *,
        most: int,
        failed: Callable[[BackendError], None],
    ) -> None:
        self._purge = purge
        self._most = most
        self._failed = failed
        self._left = 0

    async def wrote(self, count: int, now: MomentT) -> None:
        """Count the items of a write, and purge if it is time for it."""
        self._left -= count
        if self._left > 0:
            return
        self._left = _PURGE_EVERY
        try:
            await self._purge(now, self._most)
        except BackendError as error:
            self._failed(error)


class CheckedStore(BaseStore, Generic[Encoded]):
    """A store whose verbs check and normalise their arguments, then call a few methods.

    A backend implements `capabilities`, `_encode`, `_write`, `_get_item`, `_scan` and `_newest`;
    for what else it claims, `_search_text`, `_get_embedding`, `_search_vectors`, `_get_values`
    and `_list_namespaces`. The other methods have defaults, for a database that does no better.

    Namespaces, keys, numbers and vectors that these methods get are right, and filters are
    parsed. A bad argument is refused before the store is opened. A verb whose capability the
    store does not claim, even when it is open, raises `StoreCapabilityError`.
    """

    _dimension: int | None = None
    """The only accepted vector length, or `None` for any."""

    _remedies: Mapping[str, str] = MappingProxyType({})
    """What to do where a capability is missing, by its name."""

    @property
    def place(self) -> str:
        """The place of the database, without a password: a path, or hosts and a name.

        It is empty for one in this process.
        """
        return ""

    @abstractmethod
    def _encode(self, operation: Put | Delete, vector: bytes | None) -> Encoded:
        """Return a put or a delete ready to write; for long texts, this is called in a thread.

        Value, metadata and text are checked here, as they are encoded: by `encode_json` and
        `encode_metadata` of `locus_memory.store.json_values`, and by `searchable` of
        `locus_memory.store.text`, or by what does as they do.

        A `Restored` is a put with a version and moments of its own.

        Args:
            operation: The operation, its other fields checked.
            vector: Its embedding, as `check_embedding` returns it.
        """

    @abstractmethod
    async def _write(self, operations: Sequence[Encoded]) -> Sequence[int]:
        """Do the operations, of which there is at least one; all or none, where that is claimed.

        Returns:
            The new version for each put and whether it was there for each delete, in order.

        Raises:
            VersionConflictError: One `if_version` does not hold.
        """

    @abstractmethod
    async def _get_item(self, namespace: Namespace, key: str) -> StoreItem | None:
        """Return the full item, or `None`."""

    @abstractmethod
    async def _scan(self, namespace: Namespace, keys: KeyRange, limit: int) -> list[StoreItem]:
        """Return full items of one namespace in key order."""

    @abstractmethod
    async def _newest(self, selection: Selection, page: Page) -> list[StoreItem]:
        """Return a page of the selected items, the newest write first."""

    async def _get_value(self, namespace: Namespace, key: str) -> Any:
        item = await self._get_item(namespace, key)
        return None if item is None else item.value

    async def _exists(self, namespace: Namespace, key: str) -> bool:
        return await self._get_item(namespace, key) is not None

    async def _get_values(
        self, names: Sequence[tuple[Namespace, str]]
    ) -> dict[tuple[Namespace, str], Any]:
        """Return the values of the items that exist; no name comes twice."""
        found = {name: await self._get_item(*name) for name in names}
        return {name: item.value for name, item in found.items() if item is not None}

    async def _list_keys(self, namespace: Namespace, keys: KeyRange, limit: int) -> list[str]:
        return [item.key for item in await self._scan(namespace, keys, limit)]

    async def _list_namespaces(self, listing: Listing, limit: int) -> list[Namespace]:
        """Return the requested namespaces that hold an item, in order."""
        raise NotImplementedError

    async def _clear(self, namespace: Namespace, *, recursive: bool) -> int:
        return await super().clear_namespace(namespace, recursive=recursive)

    async def _search_text(
        self, selection: Selection, page: Page, words: list[str]
    ) -> list[StoreItem]:
        """Return a page of the selected items with any of the words, the best first.

        Args:
            selection: Which items.
            page: Which part of the hits.
            words: What `_query_words` made of the query, never empty; or only a prefix and a star.
        """
        raise NotImplementedError

    async def _get_embedding(self, namespace: Namespace, key: str) -> list[float] | None:
        """Return the item's vector scaled to unit length, or `None` if it has none."""
        raise NotImplementedError

    async def _search_vectors(
        self, selection: Selection, page: Page, vector: bytes, threshold: float | None
    ) -> list[SemanticSearchResult]:
        """Return a page of the selected items whose vectors are nearest by cosine.

        Args:
            selection: Which items.
            page: Which part of the hits.
            vector: What to compare with, as `check_embedding` returns it.
            threshold: Only hits with at least this score are wanted; others may be returned.
        """
        raise NotImplementedError

    def _query_words(self, query: str) -> list[str]:
        """Return the words to search for; for a long query, this runs in a worker thread."""
        return query_words(query, beginnings=True)[:_MOST_WORDS]

    def _remedy(self, capability: str) -> str | None:
        """Return the remedy for a missing capability."""
        return {**_REMEDIES, **self._remedies}.get(capability)

    async def _need(self, capability: str) -> None:
        """Raise unless the store has a capability; it is opened if it does not claim it yet.

        Raises:
            StoreCapabilityError: It has not.
        """
        if getattr(self.capabilities, capability):
            return
        await self.open()
        if not getattr(self.capabilities, capability):
            self._unsupported(capability, self._remedy(capability))

    async def _write_all(self, operations: Sequence[Put | Delete]) -> Sequence[int]:
        """Check, encode and write operations; override it if a write needs several attempts."""
        encoded = await prepared(self._encode_all, operations)
        for capability in needed(operations):
            await self._need(capability)
        if encoded:
            return await self._write(encoded)
        await self.open()
        return []

    def _encode_all(self, operations: Sequence[Put | Delete]) -> list[Encoded]:
        return [self._encode(each, self._check(each)) for each in operations]

    def _check(self, operation: Put | Delete) -> bytes | None:
        """Check all of an operation that `_encode` does not; return its vector."""
        check_namespace(operation.namespace)
        check_key(operation.key)
        check_version(operation.if_version)
        if isinstance(operation, Delete):
            return None
        check_ttl(operation.ttl)
        if isinstance(operation, Restored):
            check_restored(operation)
        given = operation.embedding
        return None if given is None else check_embedding(given, self._dimension)

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
        put = quick_put(namespace, key, value, metadata, ttl=ttl, if_version=if_version, text=text)
        return (await self._write_all([put]))[0]

    @override
    async def get(self, namespace: Namespace, key: str) -> Any:
        return await self._get_value(check_namespace(namespace), check_key(key))

    @override
    async def get_item(self, namespace: Namespace, key: str) -> StoreItem | None:
        return await self._get_item(check_namespace(namespace), check_key(key))

    @override
    async def exists(self, namespace: Namespace, key: str) -> bool:
        return await self._exists(check_namespace(namespace), check_key(key))

    @override
    async def delete(
        self, namespace: Namespace, key: str, *, if_version: int | None = None
    ) -> bool:
        operation = Delete(namespace=namespace, key=key, if_version=if_version)
        return bool((await self._write_all([operation]))[0])

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
        keys = KeyRange.of(prefix, after, descending=descending)
        return await self._scan(check_namespace(namespace), keys, at_most(limit))

    @override
    async def list_keys(
        self,
        namespace: Namespace,
        limit: int = 100,
        *,
        prefix: str | None = None,
        after: str | None = None,
    ) -> list[str]:
        keys = KeyRange.of(prefix, after)
        return await self._list_keys(check_namespace(namespace), keys, at_most(limit))

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
        listing, most = Listing.of(prefix, suffix, max_depth, after), at_most(limit)
        await self._need("list_namespaces")
        return await self._list_namespaces(listing, most)

    @override
    async def clear_namespace(self, namespace: Namespace, *, recursive: bool = False) -> int:
        return await self._clear(check_namespace(namespace), recursive=recursive)

    @override
    async def put_batch(self, items: Iterable[Put | tuple[Any, ...]]) -> list[int]:
        return list(await self._write_all(as_puts(items)))

    @override
    async def get_batch(
        self, keys: Iterable[tuple[Namespace, str]]
    ) -> dict[tuple[Namespace, str], Any]:
        names = {(check_namespace(each), check_key(key)): None for each, key in as_names(keys)}
        if names:
            return await self._get_values(list(names))
        await self.open()
        return {}

    @override
    async def delete_batch(self, keys: Iterable[tuple[Namespace, str]]) -> int:
        names = as_names(keys)
        return sum(await self._write_all([Delete(namespace=n, key=k) for n, k in names]))

    @override
    async def write_batch(self, operations: Iterable[Put | Delete]) -> list[int | bool]:
        given = as_operations(operations)
        if not self.capabilities.transactions:
            # The answer may need an open store, and a bad operation is refused before that.
            await prepared(self._encode_all, given)
            await self._need("transactions")
        results = await self._write_all(given)
        return [
            bool(result) if isinstance(each, Delete) else result
            for each, result in zip(given, results, strict=True)
        ]

    @override
    async def restore(self, items: Iterable[Restored]) -> None:
        await self._write_all(as_restored(items))

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
        selection = Selection.of(namespace, filter, recursive=recursive)
        page = Page.of(limit, offset)
        if query is None:
            return await self._newest(selection, page)
        prefix = query_prefix(query)
        words = [f"{prefix}*"] if prefix else await from_query(self._query_words, query)
        await self._need("prefix_search" if prefix else "search")
        if words:
            return await self._search_text(selection, page, words)
        await self.open()
        return []

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
        put = quick_put(
            namespace,
            key,
            value,
            metadata,
            ttl=ttl,
            if_version=if_version,
            text=text,
            embedding=embedding,
        )
        if put.embedding is None:
            # It is no embedding, and would pass for a plain put.
            check_embedding(embedding, self._dimension)
        return (await self._write_all([put]))[0]

    @override
    async def get_embedding(self, namespace: Namespace, key: str) -> list[float] | None:
        place, name = check_namespace(namespace), check_key(key)
        await self._need("semantic_search")
        return await self._get_embedding(place, name)

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
        selection = Selection.of(namespace, metadata_filter, recursive=recursive)
        page, least = Page.of(limit, offset), check_threshold(threshold)
        vector = check_embedding(query_embedding, self._dimension)
        await self._need("semantic_search")
        found = await self._search_vectors(selection, page, vector, least)
        return [hit for hit in found if least is None or hit.score >= least]


def needed(operations: Iterable[Put | Delete]) -> list[str]:
    """Return the capabilities that operations take beyond those that every store has."""
    has_ttl = has_vector = False
    for each in operations:
        if isinstance(each, Put):
            expires = isinstance(each, Restored) and each.expires_at is not None
            has_ttl = has_ttl or expires or each.ttl is not None
            has_vector = has_vector or each.embedding is not None
    needed = ["ttl"] if has_ttl else []
    return [*needed, "semantic_search"] if has_vector else needed


def implements(kind: type[BaseStore], verb: str) -> bool:
    """Return whether a class of stores has its own verb, not a slow default or one that raises."""
    if getattr(kind, verb) is not getattr(CheckedStore, verb):
        return getattr(kind, verb) is not getattr(BaseStore, verb)
    behind = _BEHIND.get(verb)
    return behind is None or getattr(kind, behind) is not getattr(CheckedStore, behind)
