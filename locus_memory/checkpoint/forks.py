"""The source of a fork, when the checkpoint that names it is removed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from locus_memory.checkpoint.record import ForkPoint, Record, RecordHead
from locus_memory.checkpoint.storage import DeltaStorage, StaleChainError

__all__ = ["heir", "with_heir"]


def heir(
    heads: Sequence[RecordHead], removed: Collection[int]
) -> tuple[RecordHead, ForkPoint] | None:
    """Return the record that has to name a fork point from now on, and the fork point.

    Args:
        heads: A thread, newest first.
        removed: The revisions of the records that are removed.

    Returns:
        The nearest newer record that stays, else the nearest older one. `None`: no fork point is
        lost, or no record stays to name it, or a record that stays names a later one.
    """
    for place, head in enumerate(heads):
        if head.forked_from is None or head.revision not in removed:
            continue
        newer = next((h for h in heads[:place][::-1] if h.revision not in removed), None)
        if newer is not None:
            return None if newer.forked_from else (newer, head.forked_from)
        older = next((h for h in heads[place + 1 :] if h.revision not in removed), None)
        return None if older is None else (older, head.forked_from)
    return None


async def with_heir(
    storage: DeltaStorage,
    heads: Sequence[RecordHead],
    removed: Collection[int],
    rebased: Sequence[Record],
) -> list[Record]:
    """Return the records to overwrite: `rebased`, and the one that has to name a fork point.

    Raises:
        StaleChainError: The thread has changed since its heads were read.
    """
    found = heir(heads, removed)
    if found is None:
        return list(rebased)
    head, origin = found
    record: Record | None = next((r for r in rebased if r.revision == head.revision), None)
    if record is None:
        record = await storage.retrieve(head.thread_id, head.checkpoint_id)
    if record is None or record.revision != head.revision:
        raise StaleChainError
    others = [each for each in rebased if each.revision != head.revision]
    return [*others, replace(record, forked_from=origin)]
