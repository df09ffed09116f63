"""Writes of several items that belong together, and changes of an item that keep its vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from locus_memory.retrieval.embedders.marks import mark_of, marked
from locus_memory.store.base import BaseStore, has_semantic_search
from locus_memory.store.item import Delete, Put, StoreItem
from locus_memory.store.wrappers.embedding import EmbeddingStore

__all__ = ["rewritten", "write_together"]


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


async def rewritten(
    store: BaseStore, item: StoreItem, text: str, value: dict[str, Any] | None = None
) -> Put:
    """Return the put that changes the search text of an item, and perhaps its value.

    The metadata and the vector stay. The put names the version of the item.

    Args:
        store: The store of the item.
        item: The item.
        text: The new search text.
        value: The new value; `None`: the present one.

    Raises:
        BackendError: The store failed.
    """
    put = Put(
        namespace=item.namespace,
        key=item.key,
        value=item.value if value is None else value,
        metadata=item.metadata,
        if_version=item.version,
        text=text,
    )
    # An `EmbeddingStore` embeds the text itself, and does so again.
    if isinstance(store, EmbeddingStore) or not await has_semantic_search(store):
        return put
    vector = await store.get_embedding(item.namespace, item.key)
    mark = mark_of(item.metadata)
    if mark is not None and mark.text is not None:
        put = replace(put, metadata=marked(item.metadata, replace(mark, text=text)))
    return replace(put, embedding=vector)
