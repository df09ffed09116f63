"""Changes of an item that keep its vector."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from locus_memory.retrieval.embedders.marks import mark_of, marked
from locus_memory.store.base import BaseStore, has_semantic_search
from locus_memory.store.item import Put, StoreItem
from locus_memory.store.wrappers.embedding import EmbeddingStore

__all__ = ["rewritten"]


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
