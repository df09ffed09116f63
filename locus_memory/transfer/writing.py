"""Writes of copied items and checkpoints into a target, at a limited rate."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace

from locus_memory.checkpoint.base import BaseCheckpointer, RestoredCheckpoint
from locus_memory.errors import StoreCapabilityError
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.embedders.marks import mark_of
from locus_memory.retrieval.embedding import embedded_puts
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Restored
from locus_memory.store.text import index_text
from locus_memory.transfer.options import MigrateOptions

__all__ = ["Writer"]


class Writer:
    """Writes items and checkpoints as they were; with `dry_run`, it writes nothing.

    Args:
        options: `dry_run`, `vectors`, `reembed` and `rate` count here.
    """

    def __init__(self, options: MigrateOptions) -> None:
        self._options = options
        self._free_at = time.monotonic()

    async def items(self, store: BaseStore, items: Sequence[Restored]) -> int:
        """Write a page of items; return how many.

        Raises:
            StoreCapabilityError: The target has no place for vectors, and an item has one.
            BackendError: The target failed.
        """
        if not items or self._options.dry_run:
            return len(items)
        if not self._options.vectors:
            items = [replace(each, embedding=None) for each in items]
        elif self._options.reembed is not None:
            items = await _embedded(items, self._options.reembed)
        await self.take(len(items))
        try:
            await store.restore(items)
        except StoreCapabilityError as error:
            if error.capability != "semantic_search":
                raise
            hint = "To leave the vectors out, pass --no-vectors (vectors=False)"
            raise StoreCapabilityError(error.capability, error.store_class, hint) from error
        return len(items)

    async def checkpoint(
        self,
        checkpointer: BaseCheckpointer,
        thread_id: str,
        checkpoint: RestoredCheckpoint,
        parent: str | None,
    ) -> None:
        """Append a checkpoint to a thread, whose newest one is the parent.

        Raises:
            CheckpointConflictError: The thread changed meanwhile.
            BackendError: The target failed.
        """
        if not self._options.dry_run:
            await self.take(1)
            await checkpointer.restore(thread_id, checkpoint, expected_parent=parent)

    async def take(self, count: int) -> None:
        """Wait until this many writes may begin."""
        if self._options.rate is not None:
            now = time.monotonic()
            wait = self._free_at - now
            self._free_at = max(self._free_at, now) + count / self._options.rate
            await asyncio.sleep(max(wait, 0))


async def _embedded(items: Sequence[Restored], embedder: Embedder) -> list[Restored]:
    """Return items with vectors of this embedder in place of those of another."""
    marks = [mark_of(each.metadata or {}) for each in items]
    sources = [mark.source if mark else None for mark in marks]
    return await embedded_puts(items, embedder, [_text(each) for each in items], sources)


def _text(item: Restored) -> str:
    """Return the text to embed; empty if the item had no vector."""
    mark = mark_of(item.metadata or {})
    if mark is None:
        return "" if item.embedding is None else index_text(item.value)
    return mark.source or mark.text or index_text(item.value)
