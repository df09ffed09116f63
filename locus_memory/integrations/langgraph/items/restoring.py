"""Items of another store of LangGraph, written with their moments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from langgraph.store.base import PutOp

from locus_memory.integrations.langgraph.items.index import VectorIndex
from locus_memory.integrations.langgraph.items.notes import updated_at
from locus_memory.integrations.langgraph.items.search import side_by_side
from locus_memory.integrations.langgraph.items.writing import forget_vectors, parts, prepared
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Delete, Namespace, Put, Restored, StoreItem

__all__ = ["PastItem", "Restoring", "restore"]


@dataclass(frozen=True, slots=True)
class PastItem:
    """An item of another store.

    Attributes:
        namespace: Its namespace.
        key: Its key.
        value: Its value.
        created_at: The moment of its first put.
        updated_at: The moment of its last put.
        ttl: Minutes from its last use until it expires, or `None`.
        expires_at: The moment when it expires, or `None`.
    """

    namespace: Namespace
    key: str
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    ttl: float | None = None
    expires_at: datetime | None = None

    def put(self) -> PutOp:
        """Return the put of the item."""
        return PutOp(self.namespace, self.key, self.value, ttl=self.ttl)


@dataclass(frozen=True, slots=True)
class Restoring:
    """The items that a call wrote, and those of the store that stayed, since they are newer."""

    written: Sequence[PastItem] = ()
    kept: Sequence[PastItem] = ()


async def restore(
    store: BaseStore, index: VectorIndex | None, items: Sequence[PastItem]
) -> Restoring:
    """Write items as they were; of two versions of an item, the one that was put last stays.

    Args:
        store: The store.
        index: Computes the vectors of the items that are written.
        items: The items, each name at most once, the oldest write first.

    Raises:
        InvalidArgumentError: An item is invalid; nothing was written.
        StoreCapabilityError: The store has no expiry, and an item has one; nothing was written.
        BackendError: The store failed.
    """
    known = await side_by_side(lambda each: store.get_item(each.namespace, each.key), items)
    wanted = [
        (item, 1 if there is None else there.version + 1)
        for item, there in zip(items, known, strict=True)
        if there is None or _is_older(there, item)
    ]
    kept = [
        item
        for item, there in zip(items, known, strict=True)
        if there is not None and updated_at(there) > item.updated_at
    ]
    if wanted:
        await _write(store, index, wanted)
    return Restoring([item for item, _ in wanted], kept)


def _is_older(there: StoreItem, item: PastItem) -> bool:
    """Return whether an item takes the place of one that is there."""
    moment = updated_at(there)
    return moment < item.updated_at or (moment == item.updated_at and there.value != item.value)


async def _write(
    store: BaseStore, index: VectorIndex | None, items: Sequence[tuple[PastItem, int]]
) -> None:
    writings = await prepared(store, index, [item.put() for item, _ in items])
    pairs = list(zip(writings, items, strict=True))
    # As in `write`: vectors without their item are not found.
    await _restore(
        store, [_restored(put, item) for each, (item, _) in pairs for put in each.vectors]
    )
    puts = [
        _restored(put, item, version)
        for each, (item, version) in pairs
        for put in each.items
        if isinstance(put, Put)
    ]
    await _restore(store, puts)
    lists = [each for writing in writings for each in writing.items if isinstance(each, Delete)]
    if lists:
        await store.delete_batch([(each.namespace, each.key) for each in lists])
    await forget_vectors(store, writings)


async def _restore(store: BaseStore, items: Iterable[Restored]) -> None:
    for part in parts(items):
        await store.restore(part)


def _restored(put: Put, item: PastItem, version: int = 1) -> Restored:
    return Restored(
        namespace=put.namespace,
        key=put.key,
        value=put.value,
        metadata=put.metadata,
        text=put.text,
        embedding=put.embedding,
        version=version,
        created_at=item.created_at,
        updated_at=item.updated_at,
        expires_at=item.expires_at,
    )
