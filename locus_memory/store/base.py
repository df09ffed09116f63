"""Contract 1: the namespaced key-value store that every backend implements alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from locus_memory._internal.resource import Resource
from locus_memory.errors import InvalidArgumentError, StoreCapabilityError
from locus_memory.store.filters import matches, parse_filter
from locus_memory.store.item import (
    Delete,
    Namespace,
    Put,
    SemanticSearchResult,
    StoreCapabilities,
    StoreItem,
    check_limit,
    quick_put,
)

__all__ = [
    "BaseStore",
    "as_names",
    "as_operations",
    "as_puts",
    "has_semantic_search",
    "scan_all",
]

_PAGE = 500

_SEQUENCES = (tuple, list)


class BaseStore(Resource, ABC):
    """A namespaced, async key-value store with optional search.

    A backend implements `put`, `get_item`, `delete` and `scan`. The other verbs have
    defaults that work on top of those, slowly, or raise `StoreCapabilityError` where the
    matching flag of `capabilities` is false; a backend that claims a flag overrides the verb.
    The default `search` goes by `updated_at`, and of equals by namespace and key. A store that
    overrides it, or claims `search`, goes by the order of writes, whatever the clock does.

    Rules every backend obeys, each one a test of `locus_memory.testing.StoreConformance`:

    - A namespace is a non-empty tuple of non-empty strings; any character is legal in labels
      and keys, and no two namespaces ever meet. Anything else is `InvalidNamespaceError` or
      `InvalidKeyError`, before anything is written.
    - A value is JSON; what comes out equals what went in and is the caller's own copy.
      Anything else is `ValueNotSerializableError`.
    - `version` is exact under concurrency. Expired means invisible at once, on every verb.
    - An outage raises `BackendUnavailableError` and never looks like "not found"; a cancelled
      call leaves the store healthy.
    """

    @property
    @abstractmethod
    def capabilities(self) -> StoreCapabilities:
        """What this store can do; true, not hoped for.

        What depends on the server is asked as the store opens, and not claimed before that.
        """

    @abstractmethod
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
        """Insert or replace an item; keeps `created_at`, drops a vector the key had.

        Args:
            namespace: Where; a non-empty tuple of non-empty strings.
            key: Its name there, any non-empty string.
            value: Any JSON value, `None` included.
            metadata: A JSON object stored beside the value; `None` is `{}`.
            ttl: Seconds until it vanishes; `None`: never.
            if_version: Write only if the item is at this version; 0: only if there is none.
            text: What text search sees instead of the value's own strings; `""`: nothing.

        Returns:
            The item's new version, 1 for a new item.

        Raises:
            VersionConflictError: `if_version` does not hold; nothing is written.
            InvalidArgumentError: A bad namespace, key, value or option.
            BackendError: The database failed.
        """

    async def get(self, namespace: Namespace, key: str) -> Any:
        """Return the value, or `None` if there is no item (see `exists`, `get_item`)."""
        item = await self.get_item(namespace, key)
        return None if item is None else item.value

    @abstractmethod
    async def get_item(self, namespace: Namespace, key: str) -> StoreItem | None:
        """Return the full item, or `None`."""

    async def exists(self, namespace: Namespace, key: str) -> bool:
        """Whether the item is there; a stored `None` is."""
        return await self.get_item(namespace, key) is not None

    @abstractmethod
    async def delete(
        self, namespace: Namespace, key: str, *, if_version: int | None = None
    ) -> bool:
        """Delete an item and its vector; returns whether it was there.

        Raises:
            VersionConflictError: `if_version` does not hold; nothing is deleted.
        """

    @abstractmethod
    async def scan(
        self,
        namespace: Namespace,
        limit: int = 100,
        *,
        prefix: str | None = None,
        after: str | None = None,
        descending: bool = False,
    ) -> list[StoreItem]:
        """Return full items of one namespace in key order, by code point.

        Args:
            namespace: Exactly this one; its descendants are others.
            limit: At most this many.
            prefix: Only keys that start with this.
            after: Only keys that come after this one in the chosen order: the cursor.
            descending: From the last key to the first.
        """

    async def list_keys(
        self,
        namespace: Namespace,
        limit: int = 100,
        *,
        prefix: str | None = None,
        after: str | None = None,
    ) -> list[str]:
        """Return keys in ascending code point order; `after` is the cursor."""
        items = await self.scan(namespace, limit, prefix=prefix, after=after)
        return [item.key for item in items]

    async def list_namespaces(
        self,
        prefix: Namespace | None = None,
        limit: int = 100,
        *,
        suffix: Namespace | None = None,
        max_depth: int | None = None,
        after: Namespace | None = None,
    ) -> list[Namespace]:
        """Return the namespaces that hold an item, in ascending order.

        Args:
            prefix: First labels; `"*"` matches any one label.
            limit: At most this many.
            suffix: Last labels; `"*"` matches any one label.
            max_depth: Cut each namespace to this many labels, and drop the repeats.
            after: Only namespaces after this one: the cursor.

        Raises:
            StoreCapabilityError: The store cannot list namespaces.
        """
        del prefix, limit, suffix, max_depth, after
        self._unsupported("list_namespaces")

    async def clear_namespace(self, namespace: Namespace, *, recursive: bool = False) -> int:
        """Delete every item of the namespace, however many, and never a neighbour's.

        Args:
            namespace: Which.
            recursive: Its descendants as well.

        Returns:
            How many items were deleted.
        """
        count = 0
        for target in await self._targets(namespace, recursive=recursive):
            while items := await self.scan(target, _PAGE):
                for item in items:
                    count += await self.delete(target, item.key)
        return count

    async def compact(self) -> None:
        """Rewrite the indexes so that they hold no word of an item that is gone.

        Deleted items are never found, with or without it. It takes time in proportion to what is
        stored; where deletes leave nothing behind, it does nothing.
        """

    async def put_batch(self, items: Iterable[Put | tuple[Any, ...]]) -> list[int]:
        """Put several items; atomic and one round trip where `batch_operations` is claimed.

        Args:
            items: `Put`s, or tuples `(namespace, key, value)` or
                `(namespace, key, value, metadata)`.

        Returns:
            The new versions, in the order of the items.
        """
        return [await self._put_one(item) for item in as_puts(items)]

    async def get_batch(
        self, keys: Iterable[tuple[Namespace, str]]
    ) -> dict[tuple[Namespace, str], Any]:
        """Return the values of those items that are there, by `(namespace, key)`."""
        found = {(n, k): await self.get_item(n, k) for n, k in as_names(keys)}
        return {name: item.value for name, item in found.items() if item is not None}

    async def delete_batch(self, keys: Iterable[tuple[Namespace, str]]) -> int:
        """Delete several items; returns how many were there."""
        return sum([await self.delete(namespace, key) for namespace, key in as_names(keys)])

    async def write_batch(self, operations: Iterable[Put | Delete]) -> list[int | bool]:
        """Put and delete, all or nothing, each with its own `if_version`.

        Returns:
            The new version for each put and whether it was there for each delete, in order.

        Raises:
            StoreCapabilityError: The store has no transactions.
            VersionConflictError: One `if_version` does not hold; nothing at all is written.
        """
        del operations
        self._unsupported("transactions")

    async def search(
        self,
        namespace: Namespace,
        query: str | None = None,
        limit: int = 10,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the field's word
        offset: int = 0,
        recursive: bool = False,
    ) -> list[StoreItem]:
        """Find items by text and filter.

        Without a query, the newest update comes first. With one, the best match comes first
        and `StoreItem.score` is set: any of the query's words may match, stop words aside,
        case and accents are folded, and no punctuation is ever an error.

        Args:
            namespace: Where to look.
            query: Words to look for, or `None`.
            limit: At most this many; fewer only when fewer match.
            filter: See `locus_memory.store.filters`.
            offset: Skip this many of the best.
            recursive: Look in the descendants of `namespace` as well.

        Raises:
            InvalidFilterError: An unknown operator or a bad operand.
            StoreCapabilityError: A query on a store without text search.
        """
        if query is not None:
            self._unsupported("search", "list with query=None, or choose another backend")
        check_limit(limit)
        check_limit(offset, "offset")
        condition = parse_filter(filter)
        found = [
            item
            for target in await self._targets(namespace, recursive=recursive)
            async for item in scan_all(self, target)
            if matches(condition, item.value, item.metadata)
        ]
        # Two sorts, both stable: of equal moments, the names decide, and pages are exact.
        found.sort(key=lambda item: (item.namespace, item.key))
        found.sort(key=lambda item: item.updated_at, reverse=True)
        return found[offset : offset + limit]

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
        """Put an item together with its vector; a later plain `put` drops the vector.

        Args:
            namespace: As for `put`.
            key: As for `put`.
            value: As for `put`.
            embedding: A vector of shape `(dimension,)`, any scale; stored as float32.
            metadata: As for `put`.
            ttl: As for `put`.
            if_version: As for `put`.
            text: As for `put`.

        Raises:
            InvalidEmbeddingError: Empty, not finite, all zero or of the wrong dimension.
            StoreCapabilityError: The store has no semantic search.
        """
        del namespace, key, value, embedding, metadata, ttl, if_version, text
        self._unsupported("semantic_search")

    async def get_embedding(self, namespace: Namespace, key: str) -> list[float] | None:
        """Return the item's vector scaled to unit length, or `None` if it has none."""
        del namespace, key
        self._unsupported("semantic_search")

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
        """Find the items whose vectors point most nearly the same way (cosine).

        Args:
            namespace: Where to look.
            query_embedding: A vector of shape `(dimension,)`.
            limit: At most this many; fewer only when fewer match.
            threshold: Only hits with at least this score.
            metadata_filter: See `locus_memory.store.filters`.
            offset: Skip this many of the best.
            recursive: Look in the descendants of `namespace` as well.

        Raises:
            InvalidEmbeddingError: Empty, not finite, all zero, or of a dimension that none of
                the vectors there has.
            StoreCapabilityError: The store has no semantic search.
        """
        del namespace, query_embedding, limit, threshold, metadata_filter, offset, recursive
        self._unsupported("semantic_search")

    def _unsupported(self, capability: str, hint: str | None = None) -> NoReturn:
        raise StoreCapabilityError(capability, type(self).__name__, hint)

    async def _put_one(self, item: Put) -> int:
        if item.embedding is None:
            return await self.put(
                item.namespace,
                item.key,
                item.value,
                item.metadata,
                ttl=item.ttl,
                if_version=item.if_version,
                text=item.text,
            )
        return await self.put_with_embedding(
            item.namespace,
            item.key,
            item.value,
            item.embedding,
            item.metadata,
            ttl=item.ttl,
            if_version=item.if_version,
            text=item.text,
        )

    async def _targets(self, namespace: Namespace, *, recursive: bool) -> list[Namespace]:
        if not recursive:
            return [namespace]
        found: list[Namespace] = []
        # A label that is "*" would match any: keep the true descendants only.
        after: Namespace | None = None
        while page := await self.list_namespaces(namespace, _PAGE, after=after):
            found += [each for each in page if each[: len(namespace)] == namespace]
            after = page[-1]
        return found


async def has_semantic_search(store: BaseStore) -> bool:
    """Whether a store has semantic search; one that does not claim it is opened first.

    Raises:
        BackendError: It cannot be opened.
    """
    if not store.capabilities.semantic_search:
        await store.open()
    return store.capabilities.semantic_search


def as_puts(items: Iterable[Put | tuple[Any, ...]]) -> list[Put]:
    """Return the items of a batch as `Put`s.

    Raises:
        InvalidArgumentError: Neither a `Put` nor a tuple of 3 or 4.
    """
    return [item if isinstance(item, Put) else _as_put(item) for item in items]


def as_names(keys: Iterable[tuple[Namespace, str]]) -> list[tuple[Namespace, str]]:
    """Return the names of a `get_batch` or `delete_batch`, each a namespace and a key.

    Raises:
        InvalidArgumentError: One is not a pair.
    """
    return [_as_name(name) for name in keys]


def _as_name(name: object) -> tuple[Namespace, str]:
    if not isinstance(name, _SEQUENCES) or len(name) != 2:  # noqa: PLR2004 - a pair
        raise InvalidArgumentError("a name of a batch is a pair (namespace, key)")
    namespace, key = name
    return namespace, key


def as_operations(operations: Iterable[Put | Delete]) -> list[Put | Delete]:
    """Return the operations of a `write_batch`.

    Raises:
        InvalidArgumentError: One is neither a `Put` nor a `Delete`.
    """
    return [_as_operation(operation) for operation in operations]


def _as_operation(operation: object) -> Put | Delete:
    if not isinstance(operation, Put | Delete):
        raise InvalidArgumentError(
            f"an operation of write_batch is a Put or a Delete, not {type(operation).__name__}"
        )
    return operation


def _as_put(fields: object) -> Put:
    if not isinstance(fields, _SEQUENCES):
        raise InvalidArgumentError(
            f"an item of a batch is a Put or a tuple, not {type(fields).__name__}"
        )
    if len(fields) not in (3, 4):
        raise InvalidArgumentError(
            "an item of a batch is a Put, (namespace, key, value) or "
            f"(namespace, key, value, metadata), not a tuple of {len(fields)}"
        )
    return quick_put(*fields)


async def scan_all(
    store: BaseStore, namespace: Namespace, *, prefix: str | None = None
) -> AsyncIterator[StoreItem]:
    """Yield every item of one namespace in key order, a page at a time."""
    after: str | None = None
    while items := await store.scan(namespace, _PAGE, prefix=prefix, after=after):
        for item in items:
            yield item
        after = items[-1].key
