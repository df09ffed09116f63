"""Writes of several items that belong together, on stores with and without transactions."""

from __future__ import annotations

from collections.abc import Sequence

from locus_memory.store.base import BaseStore
from locus_memory.store.item import Delete, Put

__all__ = ["write_together"]


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
