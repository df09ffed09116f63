"""Writes of copied items and checkpoints into a target, at a limited rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from locus_memory.checkpoint.base import BaseCheckpointer
from locus_memory.checkpoint.record import RecordHead
from locus_memory.errors import StoreCapabilityError
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.embedders.marks import EmbeddingMark, mark_of, marked
from locus_memory.retrieval.embedding import embed
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Restored
from locus_memory.store.text import index_text
from locus_memory.transfer.pace import Pace
from locus_memory.transfer.threads import checkpoints_of

__all__ = ["ItemWriter", "append_checkpoints"]


@dataclass(frozen=True, slots=True)
class ItemWriter:
    """Writes items as they were.

    Attributes:
        store: The target.
        pace: The limit of the rate.
        embedder: Recomputes the vectors of items that have one or had one; `None`: they are copied.
        vectors: Whether items keep their vectors.
    """

    store: BaseStore
    pace: Pace
    embedder: Embedder | None = None
    vectors: bool = True

    async def write(self, items: Sequence[Restored]) -> int:
        """Write a page of items; return how many.

        Raises:
            StoreCapabilityError: The target has no place for vectors, and an item has one.
            BackendError: The target failed.
        """
        if not items:
            return 0
        if not self.vectors:
            items = [replace(each, embedding=None) for each in items]
        elif self.embedder is not None:
            items = await _embedded(items, self.embedder)
        await self.pace.take(len(items))
        try:
            await self.store.restore(items)
        except StoreCapabilityError as error:
            if error.capability != "semantic_search":
                raise
            hint = "To leave the vectors out, pass --no-vectors (vectors=False)"
            raise StoreCapabilityError(error.capability, error.store_class, hint) from error
        return len(items)


async def _embedded(items: Sequence[Restored], embedder: Embedder) -> list[Restored]:
    """Return items with vectors of this embedder in place of those of another."""
    texts = [_text(each) for each in items]
    chosen = [place for place, text in enumerate(texts) if text.strip()]
    vectors = await embed(embedder, [texts[place] for place in chosen], "document")
    made = dict(zip(chosen, vectors, strict=True))
    written: list[Restored] = []
    for place, each in enumerate(items):
        vector = made.get(place)
        if vector is None:
            written.append(each)
            continue
        mark = mark_of(each.metadata or {})
        source = mark.source if mark else None
        metadata = marked(each.metadata, EmbeddingMark.by(embedder, each.text, source))
        written.append(replace(each, embedding=vector, metadata=metadata))
    return written


def _text(item: Restored) -> str:
    """Return the text to embed; empty if the item had no vector."""
    mark = mark_of(item.metadata or {})
    if mark is None:
        return "" if item.embedding is None else index_text(item.value)
    return mark.source or mark.text or index_text(item.value)


async def append_checkpoints(
    source: BaseCheckpointer,
    target: BaseCheckpointer,
    heads: Sequence[RecordHead],
    start: int,
    pace: Pace,
) -> int:
    """Append the checkpoints of a thread from a place on to the same thread of the target.

    Args:
        source: The source.
        target: The target, whose thread has the checkpoints before that place.
        heads: All heads of the thread in the source, oldest first.
        start: The place of the first checkpoint to append.
        pace: The limit of the rate.

    Returns:
        The number of checkpoints.

    Raises:
        CheckpointConflictError: The thread of the target changed meanwhile.
        CheckpointCorruptError: A record of the source is damaged.
    """
    parent = heads[start - 1].checkpoint_id if start else None
    count = 0
    async for checkpoint in checkpoints_of(source, heads, start):
        await pace.take(1)
        thread_id = heads[0].thread_id
        await target.restore(thread_id, checkpoint, expected_parent=parent)
        parent = checkpoint.checkpoint_id
        count += 1
    return count
