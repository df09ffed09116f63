"""The store on OCI Object Storage: an object for each item."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Unpack

from typing_extensions import override

from locus_memory._internal.options import checked
from locus_memory.backends.base import OverConnection
from locus_memory.backends.checked_store import CheckedStore
from locus_memory.backends.oci.connection.connection import OCIConnection
from locus_memory.backends.oci.connection.driver import Client
from locus_memory.backends.oci.items import listing as lists
from locus_memory.backends.oci.items.items import Items, Operation, together
from locus_memory.backends.oci.items.namespaces import NamespaceWalk
from locus_memory.backends.oci.items.stored import Content, Stored
from locus_memory.backends.oci.options import OCIKeywords, OCIOptions
from locus_memory.backends.selection import KeyRange, Page, Selection
from locus_memory.store.filters import matches
from locus_memory.store.item import (
    Delete,
    Namespace,
    Put,
    Restored,
    StoreCapabilities,
    StoreItem,
    check_text,
)
from locus_memory.store.json_values import encode_json, encode_metadata
from locus_memory.store.listing import Listing

__all__ = ["OCIStore"]


class OCIStore(OverConnection[OCIConnection], CheckedStore[Operation]):
    """Items in a bucket of Object Storage, safe for any number of tasks and processes.

    A put or a delete is one conditional request, so versions are exact. A batch sends its requests
    at the same time and is not atomic. There is no text search and no vector search. A `search`
    without a query reads every item of the namespace. An expired item is invisible at once, and is
    deleted when it is read next.

    Args:
        bucket: `bucket`, `bucket/namespace`, or `oci://bucket@namespace`.
        client: An `ObjectStorageClient` of the SDK, or an `OCIConnection`, to use instead; the
            store closes neither.
        options: How to connect, and the prefix of the names; ignored with an `OCIConnection`.
        clock: Returns seconds since the epoch; `None`: the service's clock, to a second.
        **keywords: The fields of `OCIOptions` by name, in place of `options`.

    Raises:
        ConfigurationError: An option is invalid.
        MissingDriverError: The SDK is not installed.
    """

    _remedies = MappingProxyType(
        {
            "transactions": "use put_batch and delete_batch, which are not atomic",
            "semantic_search": "object storage has no index of vectors: choose another backend for "
            "the store",
            "search": "object storage has no index of texts: list with query=None, or choose "
            "another backend",
        }
    )

    @checked
    def __init__(
        self,
        bucket: str | None = None,
        *,
        client: Client | OCIConnection | None = None,
        options: OCIOptions | None = None,
        clock: Callable[[], float] | None = None,
        **keywords: Unpack[OCIKeywords],
    ) -> None:
        self._connect(OCIConnection, OCIOptions, bucket, options, keywords, client=client)
        self._items = Items(self._connection, clock)
        self._walk = NamespaceWalk(self._items)

    @property
    @override
    def capabilities(self) -> StoreCapabilities:
        """Expiry and the list of namespaces."""
        return StoreCapabilities(ttl=True, list_namespaces=True)

    @override
    def _encode(self, operation: Put | Delete, vector: bytes | None) -> Operation:
        content = None
        if isinstance(operation, Put):
            check_text(operation.text, "text")
            value, metadata = encode_json(operation.value), encode_metadata(operation.metadata)
            past = operation if isinstance(operation, Restored) else None
            content = Content(value, metadata, operation.ttl, past)
        return Operation(operation.namespace, operation.key, operation.if_version, content)

    @override
    async def _write(self, operations: Sequence[Operation]) -> list[int]:
        return await self._items.write(operations)

    @override
    async def _get_item(self, namespace: Namespace, key: str) -> StoreItem | None:
        stored = await self._items.get(namespace, key)
        return None if stored is None else stored.item()

    @override
    async def _get_values(
        self, names: Sequence[tuple[Namespace, str]]
    ) -> dict[tuple[Namespace, str], Any]:
        found = await together(lambda name: self._items.get(*name), names)
        return {
            name: stored.item().value
            for name, stored in zip(names, found, strict=True)
            if stored is not None
        }

    @override
    async def _scan(self, namespace: Namespace, keys: KeyRange, limit: int) -> list[StoreItem]:
        found = await lists.scan(self._items, namespace, keys, limit)
        return [stored.item() for stored in found]

    @override
    async def _list_keys(self, namespace: Namespace, keys: KeyRange, limit: int) -> list[str]:
        return await lists.list_keys(self._items, namespace, keys, limit)

    @override
    async def _list_namespaces(self, listing: Listing, limit: int) -> list[Namespace]:
        return await self._walk.listed(listing, limit)

    @override
    async def _clear(self, namespace: Namespace, *, recursive: bool) -> int:
        return await lists.clear(self._items, namespace, recursive=recursive)

    @override
    async def _newest(self, selection: Selection, page: Page) -> list[StoreItem]:
        if not page.limit:
            await self._connection.open()
            return []
        found: list[Stored] = await lists.read_all(self._items, selection)
        found.sort(key=attrgetter("order"), reverse=True)
        items = (stored.item() for stored in found)
        wanted = [i for i in items if matches(selection.condition, i.value, i.metadata)]
        return wanted[page.offset : page.offset + page.limit]

    @override
    async def compact(self) -> None:
        """Delete all items that have expired."""
        await lists.purge_expired(self._items)
