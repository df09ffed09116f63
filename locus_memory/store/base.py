"""Contract 1: the namespaced key-value store that every backend implements alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NoReturn, TypeVar

from locus_memory._internal.resource import Resource
from locus_memory._internal.running.paging import batches, paged
from locus_memory.errors import StoreCapabilityError
from locus_memory.store.batches import as_names, as_puts
from locus_memory.store.filters import matches, parse_filter
from locus_memory.store.item import (
    Delete,
    Namespace,
    Put,
    Restored,
    SemanticSearchResult,
    StoreCapabilities,
    StoreItem,
    check_limit,
)
from locus_memory.store.listing import keys_in_range

__all__ = [
    "EVERY",
    "BaseStore",
    "all_keys",
    "all_namespaces",
    "has_semantic_search",
    "put_one",
    "read_together",
    "scan_all",
    "side_by_side",
    "write_together",
]

_PAGE = 500

_AT_ONCE: Final = 32
"""How many calls run side by side."""

_A = TypeVar("_A")
_R = TypeVar("_R")
EVERY = 2**31 - 1
"""A limit that lists all keys."""


class BaseStore(Resource, ABC):
    """A namespaced, async key-value store with optional search.

    A backend implements `put`, `get_item`, `delete` and `scan`. The other verbs have
    defaults that work on top of those, slowly, or raise `StoreCapabilityError` where the
    matching flag of `capabilities` is false; a backend that claims a flag overrides the verb.
    With `get` and `list_keys` in place of `get_item` and `scan`, a store has no moments and no
    versions of its own.
    The default `search` orders items by `updated_at`, and items of the same moment by namespace
    and key. A store that overrides it, or claims `search`, orders items by the order of their
    writes, whatever its clock returns.

    Rules every backend obeys, each one a test of `locus_memory.testing.StoreConformance`:

    - A namespace is a non-empty tuple of non-empty strings; any character is legal in labels
      and keys, and no two namespaces ever collide. Anything else raises `InvalidNamespaceError`
      or `InvalidKeyError`, before anything is written.
    - A value is JSON; a read returns an equal value, and the caller's own copy. Anything else
      raises `ValueNotSerializableError`.
    - `version` is exact under concurrency. An expired item is immediately invisible to every
      verb.
    - An outage raises `BackendUnavailableError` and never looks like "not found"; a cancelled
      call leaves the store usable.
    """

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if cls.get_item is BaseStore.get_item and cls.get is not BaseStore.get:
            cls.get_item = _item_of_value  # type: ignore[method-assign]
        if cls.scan is BaseStore.scan and cls.list_keys is not BaseStore.list_keys:
            cls.scan = _items_of_keys  # type: ignore[method-assign]

    @property
    def capabilities(self) -> StoreCapabilities:
        """The capabilities that this store really has; none, unless a subclass says so.

        Capabilities of the server are detected when the store opens, and not claimed before.
        """
        return StoreCapabilities()

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
        """Insert or replace an item; keeps `created_at`, and deletes the vector of the key.

        Args:
            namespace: The namespace: a non-empty tuple of non-empty strings.
            key: The key in the namespace, any non-empty string.
            value: Any JSON value, `None` included.
            metadata: A JSON object stored beside the value; `None` is `{}`.
            ttl: Seconds until the item expires; `None`: never.
            if_version: Write only if the item is at this version; 0: only if it does not exist.
            text: The text to index instead of the value's own strings; `""`: no text.

        Returns:
            The item's new version, 1 for a new item.

        Raises:
            VersionConflictError: `if_version` does not hold; nothing is written.
            InvalidArgumentError: A namespace, key, value or option is invalid.
            BackendError: The database failed.
        """

    async def get(self, namespace: Namespace, key: str) -> Any:
        """Return the value, or `None` if the item does not exist (see `exists`, `get_item`)."""
        item = await self.get_item(namespace, key)
        return None if item is None else item.value

    @abstractmethod
    async def get_item(self, namespace: Namespace, key: str) -> StoreItem | None:
        """Return the full item, or `None` if it does not exist."""

    async def exists(self, namespace: Namespace, key: str) -> bool:
        """Return whether the item exists; an item with the value `None` exists."""
        return await self.get_item(namespace, key) is not None

    @abstractmethod
    async def delete(
        self, namespace: Namespace, key: str, *, if_version: int | None = None
    ) -> bool:
        """Delete an item and its vector; returns whether the item existed.

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
            namespace: The namespace, without its descendants.
            limit: At most this many items.
            prefix: Only keys that start with this prefix.
            after: Only keys that follow this one in the chosen order: the cursor.
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
            limit: At most this many namespaces.
            suffix: Last labels; `"*"` matches any one label.
            max_depth: Cut each namespace to this many labels, without duplicates.
            after: Only namespaces after this one: the cursor.

        Raises:
            StoreCapabilityError: The store cannot list namespaces.
        """
        del prefix, limit, suffix, max_depth, after
        self._unsupported("list_namespaces")

    async def clear_namespace(self, namespace: Namespace, *, recursive: bool = False) -> int:
        """Delete all items of the namespace, and none of another namespace.

        Args:
            namespace: The namespace.
            recursive: Delete the items of its descendants as well.

        Returns:
            The number of deleted items.
        """
        count = 0
        for target in await self._targets(namespace, recursive=recursive):
            while items := await self.scan(target, _PAGE):
                for item in items:
                    count += await self.delete(target, item.key)
        return count

    async def compact(self) -> None:
        """Rewrite the indexes so that they hold no words of deleted items.

        Deleted items are never found, with or without it. Its duration grows with the size of
        the store. It does nothing where deletes leave nothing behind.
        """

    async def put_batch(self, items: Iterable[Put | tuple[Any, ...]]) -> list[int]:
        """Put several items; atomic and one round trip where `batch_operations` is claimed.

        Args:
            items: `Put`s, or tuples `(namespace, key, value)` or
                `(namespace, key, value, metadata)`.

        Returns:
            The new versions, in the order of the items.
        """
        return [await put_one(self, item) for item in as_puts(items)]

    async def get_batch(
        self, keys: Iterable[tuple[Namespace, str]]
    ) -> dict[tuple[Namespace, str], Any]:
        """Return the values of the items that exist, by `(namespace, key)`."""
        found = {(n, k): await self.get_item(n, k) for n, k in as_names(keys)}
        return {name: item.value for name, item in found.items() if item is not None}

    async def delete_batch(self, keys: Iterable[tuple[Namespace, str]]) -> int:
        """Delete several items; returns how many of them existed."""
        return sum([await self.delete(namespace, key) for namespace, key in as_names(keys)])

    async def write_batch(self, operations: Iterable[Put | Delete]) -> list[int | bool]:
        """Put and delete, all or nothing, each with its own `if_version`.

        Returns:
            For each put the new version, for each delete whether the item existed, in order.

        Raises:
            StoreCapabilityError: The store has no transactions.
            VersionConflictError: One `if_version` does not hold; nothing is written.
        """
        del operations
        self._unsupported("transactions")

    async def restore(self, items: Iterable[Restored]) -> None:
        """Write items as they were: with their versions, moments and vectors.

        It is for copies of a store, as of `locus_memory.transfer`. An item in the place of one of
        them is replaced, whatever its version. A later put continues from the restored version.
        It is as atomic as `put_batch`.

        Args:
            items: The items, each name at most once. In order of their writes, the oldest first,
                they keep that order in `search` without a query.

        Raises:
            InvalidArgumentError: An item is invalid, or a name is given twice; nothing is written.
            StoreCapabilityError: The store cannot do it, or an item has an expiry or a vector that
                the store has no place for; nothing is written.
            BackendError: The database failed.
        """
        del items
        self._unsupported("restore")

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

        Without a query, the item with the newest update comes first. With one, the best match
        comes first and `StoreItem.score` is set. An item matches if it has any word of the
        query, stop words aside; case and accents are folded, and punctuation never raises. Of a
        long text, the first 10,000 different words count, 200 on PostgreSQL and Oracle.

        Args:
            namespace: The namespace to search.
            query: The words to find, or `None`.
            limit: At most this many items; fewer only if fewer match.
            filter: See `locus_memory.store.filters`.
            offset: Skip this many of the best matches.
            recursive: Search the descendants of `namespace` as well.

        Raises:
            InvalidFilterError: The filter has an unknown operator or an invalid operand.
            StoreCapabilityError: There is a query, and the store has no text search.
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
        # Both sorts are stable: items of the same moment are in order of their names, so pages
        # are exact.
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
        """Put an item together with its vector; a later plain `put` deletes the vector.

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
            InvalidEmbeddingError: The vector is empty, not finite, all zero or of a wrong length.
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
        """Find the items whose vectors are nearest to `query_embedding` by cosine.

        Args:
            namespace: The namespace to search.
            query_embedding: A vector of shape `(dimension,)`.
            limit: At most this many hits; fewer only if fewer match.
            threshold: Only hits with at least this score.
            metadata_filter: See `locus_memory.store.filters`.
            offset: Skip this many of the best hits.
            recursive: Search the descendants of `namespace` as well.

        Raises:
            InvalidEmbeddingError: The vector is empty, not finite, all zero, or of a length that
                no stored vector of the namespace has.
            StoreCapabilityError: The store has no semantic search.
        """
        del namespace, query_embedding, limit, threshold, metadata_filter, offset, recursive
        self._unsupported("semantic_search")

    def _unsupported(self, capability: str, hint: str | None = None) -> NoReturn:
        raise StoreCapabilityError(capability, type(self).__name__, hint)

    async def _get_items(
        self, names: Sequence[tuple[Namespace, str]]
    ) -> dict[tuple[Namespace, str], StoreItem]:
        """Return the full items that exist; see `read_together`."""
        items = await side_by_side(lambda name: self.get_item(*name), names)
        pairs = zip(names, items, strict=True)
        return {name: item for name, item in pairs if item is not None}

    async def _targets(self, namespace: Namespace, *, recursive: bool) -> list[Namespace]:
        if not recursive:
            return [namespace]
        return [each async for each in all_namespaces(self, namespace)]


async def put_one(store: BaseStore, item: Put) -> int:
    """Put an item that is one value, with its vector if it has one; return its version."""
    options: dict[str, Any] = {"ttl": item.ttl, "if_version": item.if_version, "text": item.text}
    place = item.namespace, item.key, item.value
    if item.embedding is None:
        return await store.put(*place, item.metadata, **options)
    return await store.put_with_embedding(*place, item.embedding, item.metadata, **options)


async def has_semantic_search(store: BaseStore) -> bool:
    """Return whether a store has semantic search; a store that does not claim it is opened first.

    Raises:
        BackendError: The store cannot be opened.
    """
    if not store.capabilities.semantic_search:
        await store.open()
    return store.capabilities.semantic_search


async def _item_of_value(self: BaseStore, namespace: Namespace, key: str) -> StoreItem | None:
    """Return the item of a store that has values alone: its moments are now, its version is 1."""
    value, now = await self.get(namespace, key), datetime.now(UTC)
    return None if value is None else StoreItem(namespace, key, value, {}, now, now)


async def _items_of_keys(
    self: BaseStore,
    namespace: Namespace,
    limit: int = 100,
    *,
    prefix: str | None = None,
    after: str | None = None,
    descending: bool = False,
) -> list[StoreItem]:
    """Return the items of a store that lists keys, of which it may list all."""
    keys = await self.list_keys(namespace, EVERY)
    found: list[StoreItem] = []
    for key in keys_in_range(keys, prefix, after, descending=descending):
        item = await self.get_item(namespace, key) if len(found) < limit else None
        found += [] if item is None else [item]
    return found


def scan_all(
    store: BaseStore, namespace: Namespace, *, prefix: str | None = None
) -> AsyncIterator[StoreItem]:
    """Yield every item of one namespace in key order, a page at a time."""
    return paged(
        lambda after: store.scan(namespace, _PAGE, prefix=prefix, after=after),
        lambda item: item.key,
    )


async def side_by_side(
    function: Callable[[_A], Awaitable[_R]], arguments: Iterable[_A]
) -> list[_R]:
    """Return the result of a function for each argument, a few at a time."""
    from asyncio import gather  # noqa: PLC0415 - the help of commands must be quick

    results: list[_R] = []
    for chunk in batches(arguments, _AT_ONCE):
        results += await gather(*map(function, chunk))
    return results


async def read_together(
    store: BaseStore, names: Iterable[tuple[Namespace, str]]
) -> dict[tuple[Namespace, str], StoreItem]:
    """Return the full items that exist, by name; in one round trip, if the database can do so."""
    # It is no verb of its own: no wrapper has to know it.
    return await store._get_items(as_names(names))  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]


async def write_together(store: BaseStore, operations: Sequence[Put | Delete]) -> None:
    """Write items together: atomically if the store has transactions, else one after another.

    Args:
        store: The store.
        operations: The writes. Without transactions a crash leaves the first ones done, so they
            stand in an order in which that can be repeated.

    Raises:
        VersionConflictError: One of the expected versions is not the stored one. Without
            transactions, the writes before it are done.
        BackendError: The store failed.
    """
    if not operations:
        return
    if store.capabilities.transactions:
        await store.write_batch(operations)
        return
    for each in operations:
        if isinstance(each, Put):
            await store.put_batch([each])
        else:
            await store.delete(each.namespace, each.key, if_version=each.if_version)


async def all_keys(store: BaseStore, namespace: Namespace, prefix: str | None = None) -> list[str]:
    """Return every key of a namespace in ascending order, those of damaged items included."""
    found = paged(lambda after: store.list_keys(namespace, _PAGE, prefix=prefix, after=after))
    return [key async for key in found]


async def all_namespaces(
    store: BaseStore, prefix: Namespace = (), *, suffix: Namespace | None = None
) -> AsyncIterator[Namespace]:
    """Yield every namespace below a prefix, and the prefix if it has items, in order.

    A label `*` of the prefix stands for itself, and for no other label.

    Args:
        store: The store.
        prefix: The prefix; empty: all namespaces.
        suffix: Only namespaces that end so, in which a label `*` stands for any label.

    Raises:
        StoreCapabilityError: The store cannot list namespaces.
    """
    root = prefix or None
    async for space in paged(
        lambda after: store.list_namespaces(root, _PAGE, suffix=suffix, after=after)
    ):
        if space[: len(prefix)] == prefix:
            yield space
