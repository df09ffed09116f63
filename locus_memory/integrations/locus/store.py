"""The store for the Locus SDK; public as `integrations.locus`."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from typing import Any

from locus.memory.store import (
    BaseStore,
    SemanticSearchResult,
    StoreCapabilities,
    StoreCapabilityError,
    StoreItem,
)
from typing_extensions import override

from locus_memory.backends.base import Backend
from locus_memory.errors import StoreCapabilityError as OurCapabilityError
from locus_memory.registry import as_store
from locus_memory.store.base import BaseStore as OurStore
from locus_memory.store.item import StoreItem as OurItem

__all__ = ["LocusStore"]


class LocusStore(BaseStore):
    """A store for the Locus SDK over a store of the library.

    A store of the library also works in the SDK without an adapter. This class adds the SDK's own
    values, errors and base class.

    Args:
        where: A provider string, a backend or a store of the library, which becomes `store`. An
            object that is passed in is not closed here.
    """

    def __init__(self, where: str | OurStore | Backend) -> None:
        self.store, self._owned = as_store(where)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.store!r})"

    @property
    @override
    def capabilities(self) -> StoreCapabilities:
        """The capabilities of the inner store."""
        known = {each.name for each in fields(StoreCapabilities)}
        ours = asdict(self.store.capabilities)
        return StoreCapabilities(**{name: ours[name] for name in known & ours.keys()})

    @override
    async def put(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Any,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        """Store a value, as a new version of the item."""
        await self.store.put(namespace, key, value, metadata)

    @override
    async def get(self, namespace: tuple[str, ...], key: str) -> Any:
        """Return a value, or `None`."""
        return await self.store.get(namespace, key)

    @override
    async def get_item(self, namespace: tuple[str, ...], key: str) -> StoreItem | None:
        """Return the full item, or `None`."""
        item = await self.store.get_item(namespace, key)
        return None if item is None else _item(item)

    @override
    async def exists(self, namespace: tuple[str, ...], key: str) -> bool:
        """Whether the item exists; a stored `None` exists."""
        return await self.store.exists(namespace, key)

    @override
    async def delete(self, namespace: tuple[str, ...], key: str) -> bool:
        """Delete an item and its vector; return whether it existed."""
        return await self.store.delete(namespace, key)

    @override
    async def list_keys(self, namespace: tuple[str, ...], limit: int = 100) -> list[str]:
        """Return keys in ascending order."""
        return await self.store.list_keys(namespace, limit)

    @override
    async def search(
        self, namespace: tuple[str, ...], query: str | None = None, limit: int = 10
    ) -> list[StoreItem]:
        """Find items by text, the best first; without a query, the newest first."""
        with _sdk_errors():
            return list(map(_item, await self.store.search(namespace, query, limit)))

    @override
    async def search_many(
        self, namespaces: Sequence[tuple[str, ...]], query: str | None = None, limit: int = 10
    ) -> list[list[StoreItem]]:
        """Return the results of `search` in each of several namespaces, searched concurrently."""
        return list(await asyncio.gather(*(self.search(n, query, limit) for n in namespaces)))

    @override
    async def put_with_embedding(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Any,
        embedding: list[float],
        metadata: dict[str, Any] | None = None,
    ) -> None:
        """Store a value together with its vector."""
        with _sdk_errors():
            await self.store.put_with_embedding(namespace, key, value, embedding, metadata)

    @override
    async def get_embedding(self, namespace: tuple[str, ...], key: str) -> list[float] | None:
        """Return the vector of an item, or `None`."""
        with _sdk_errors():
            return await self.store.get_embedding(namespace, key)

    @override
    async def search_by_embedding(
        self,
        namespace: tuple[str, ...],
        query_embedding: list[float],
        limit: int = 10,
        threshold: float | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> list[SemanticSearchResult]:
        """Find items by cosine similarity, the best first."""
        with _sdk_errors():
            hits = await self.store.search_by_embedding(
                namespace, query_embedding, limit, threshold, metadata_filter
            )
        return [SemanticSearchResult(_item(hit.item), hit.score, hit.distance) for hit in hits]

    @override
    async def put_batch(
        self, items: list[tuple[tuple[str, ...], str, Any, dict[str, Any] | None]]
    ) -> None:
        """Store several values; all or nothing if `batch_operations` is declared."""
        await self.store.put_batch(items)

    @override
    async def get_batch(
        self, keys: list[tuple[tuple[str, ...], str]]
    ) -> dict[tuple[tuple[str, ...], str], Any]:
        """Return the values that exist, by namespace and key."""
        return await self.store.get_batch(keys)

    @override
    async def list_namespaces(
        self, prefix: tuple[str, ...] | None = None, limit: int = 100
    ) -> list[tuple[str, ...]]:
        """Return the namespaces that hold an item, in ascending order."""
        with _sdk_errors():
            return await self.store.list_namespaces(prefix, limit)

    @override
    async def clear_namespace(self, namespace: tuple[str, ...]) -> int:
        """Delete every item of the namespace, and none of another namespace."""
        return await self.store.clear_namespace(namespace)

    @override
    async def close(self) -> None:
        """Close the store of a provider string."""
        if self._owned:
            await self.store.close()


def _item(item: OurItem) -> StoreItem:
    return StoreItem(
        item.namespace,
        item.key,
        item.value,
        item.metadata,
        item.created_at,
        item.updated_at,
        item.version,
    )


@contextmanager
def _sdk_errors() -> Generator[None]:
    """Raise the SDK's own error if a store does not support a verb."""
    try:
        yield
    except OurCapabilityError as error:
        raise StoreCapabilityError(error.capability, error.store_class, error.hint) from error
