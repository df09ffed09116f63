"""Reads of LangGraph's checkpoints: one, the latest, many, and the history of delta channels."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple, DeltaChannelHistory
from langgraph.checkpoint.serde.base import SerializerProtocol

from locus_memory._internal.recent import RecentlyUsed
from locus_memory.checkpoint.base import BaseCheckpointer, CheckpointInfo
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.integrations.langgraph.checkpoints.known import Index, Known, Lineage
from locus_memory.integrations.langgraph.checkpoints.pending import merged
from locus_memory.integrations.langgraph.checkpoints.records import (
    COUNTERS,
    Document,
    Head,
    TaskWrites,
    before_of,
    checkpoint_of,
    metadata_of,
    numbers_of,
    opened,
    parent_of,
)
from locus_memory.integrations.langgraph.checkpoints.values import decode_value
from locus_memory.integrations.langgraph.threads import WINDOW, Place, all_heads

__all__ = ["Caches", "Reader"]

_AHEAD = 4
"""How many checkpoints of a listing are loaded at a time."""

_CACHED_BYTES = 64 * 2**20
_RECORD = 1024


class Caches:
    """What is known of the places that were used last, at most some bytes of each kind.

    A record never changes, and is another one if its id is saved again. So a document under the
    name of its record is never out of date.

    Attributes:
        known: The last checkpoint of a place.
        indexes: The whole index of a place, as far as it was told.
        documents: Opened documents that delta channels were rebuilt from, and their weights.
    """

    def __init__(self) -> None:
        self.known: RecentlyUsed[Known] = RecentlyUsed(_CACHED_BYTES, lambda each: each.weight)
        self.indexes: RecentlyUsed[Index] = RecentlyUsed(_CACHED_BYTES, lambda each: each.weight)
        self.documents: RecentlyUsed[tuple[Document, int]] = RecentlyUsed(
            _CACHED_BYTES, itemgetter(1)
        )

    def forget(self, name: str) -> None:
        """Drop what may change of a place."""
        self.known.discard(name)
        self.indexes.discard(name)

    def keep(self, record: str, stored: Document, document: Document) -> None:
        """Cache a document, given it as it is stored as well."""
        self.documents.put(record, (document, _RECORD + sum(map(len, numbers_of(stored)))))


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads checkpoints, and caches the last one of each place.

    Attributes:
        checkpointer: The checkpointer of the library that holds them.
        serde: Converts bytes to values.
        caches: What is known of the places.
    """

    checkpointer: BaseCheckpointer
    serde: SerializerProtocol
    caches: Caches

    async def found(self, place: Place, checkpoint_id: str | None) -> CheckpointTuple | None:
        """Return a checkpoint, by default the one with the greatest id, or `None`."""
        index = await (self.index(place, checkpoint_id) if checkpoint_id else self.newest(place))
        named = checkpoint_id or index.greatest
        before = self.caches.known.get(place.name)
        greatest = (None if before is None else before.greatest) if checkpoint_id else named
        if greatest is not None:
            greatest = max(greatest, named)
        head = index.heads.get(named)
        stored = None if head is None else await self._stored(place, head)
        if head is None or stored is None:
            if not index.heads and not checkpoint_id:
                self.caches.known.put(place.name, Known("", ""))
            return None
        typed = before.typed if before is not None and before.checkpoint_id == named else {}
        is_delta = bool(head.metadata.get(COUNTERS))
        self.caches.known.put(
            place.name, Known(named, greatest, is_delta, numbers_of(stored), typed)
        )
        return self._tuple(place, head, opened(stored), await self._writes_of(index, named))

    async def _stored(self, place: Place, head: Head) -> Document | None:
        """Return a document; one that this process has just written, without a read."""
        if isinstance(self.checkpointer, DeltaCheckpointer):
            recalled = self.checkpointer.recall(head.info)
            if recalled is not None:
                return recalled
        return await self._load(place.name, head.checkpoint_id)

    async def index(self, place: Place, until: str | None = None) -> Index:
        """Return the index of a place, whole or back to a checkpoint, without reading a document.

        The writes in it are whole.
        """
        infos, writes = await asyncio.gather(
            all_heads(self.checkpointer, place.name, until),
            all_heads(self.checkpointer, place.writes),
        )
        return Index.of(place, infos, writes)

    async def newest(self, place: Place) -> Index:
        """Return a part of the index that has the greatest id, and all separate writes of it."""
        infos, writes = await self._windows(place)
        index = Index.of(place, infos, writes)
        # The greatest id is among the newest records unless a lower one was saved last.
        reaches_back = len(infos) < WINDOW or not index.heads[infos[0].checkpoint_id].low
        if reaches_back and _holds_all(writes, index.greatest):
            return index
        return await self.index(place)

    async def _windows(self, place: Place) -> Sequence[list[CheckpointInfo]]:
        names = place.name, place.writes
        if isinstance(self.checkpointer, DeltaCheckpointer):
            return await self.checkpointer.list_newest(names, WINDOW)
        listings = (self.checkpointer.list_with_metadata(name, WINDOW) for name in names)
        return await asyncio.gather(*listings)

    async def _load(self, name: str, checkpoint_id: str) -> Document | None:
        """Return a document as it is stored, or `None`."""
        state: Any = await self.checkpointer.load(name, checkpoint_id)
        document: Document | None = (
            state.to_checkpoint() if hasattr(state, "to_checkpoint") else state
        )
        return document

    async def read(self, name: str, checkpoint_id: str, record: str = "") -> Document | None:
        """Return an opened document, or `None`.

        Args:
            name: The thread of the checkpointer.
            checkpoint_id: Its id there.
            record: The name under which it is cached; empty: it is not.
        """
        cached = self.caches.documents.get(record) if record else None
        if cached is not None:
            return cached[0]
        stored = await self._load(name, checkpoint_id)
        document = None if stored is None else opened(stored)
        if record and stored is not None and document is not None:
            self.caches.keep(record, stored, document)
        return document

    def _tuple(
        self, place: Place, head: Head, document: Document, records: Sequence[TaskWrites]
    ) -> CheckpointTuple:
        parent = parent_of(document)
        values = {name: decode_value(self.serde, tree) for name, tree in document["v"].items()}
        return CheckpointTuple(
            config=place.config(head.checkpoint_id),
            checkpoint=checkpoint_of(self.serde, head.checkpoint_id, document, values),
            metadata=metadata_of(self.serde, head, document),
            parent_config=place.config(parent) if parent else None,
            pending_writes=merged(self.serde, records),
        )

    async def _writes_of(self, index: Index, checkpoint_id: str) -> list[TaskWrites]:
        return (await self.writes(index, [checkpoint_id]))[checkpoint_id]

    async def writes(
        self, index: Index, checkpoint_ids: Collection[str], *, cached: bool = False
    ) -> dict[str, list[TaskWrites]]:
        """Return the pending writes of checkpoints, in the order they were stored."""
        place = index.place
        carried = [
            (head.info.created_at, place.name, head.checkpoint_id, head.record)
            for head in index.carriers(checkpoint_ids)
        ]
        alone = [
            (index.written[each][1], place.writes, each, f"{place.writes} {each}")
            for each in index.alone(checkpoint_ids)
        ]
        documents = await asyncio.gather(
            *(
                self.read(name, each, record if cached else "")
                for _, name, each, record in heapq.merge(carried, alone, key=itemgetter(0))
            )
        )
        records: dict[str, list[TaskWrites]] = {name: [] for name in checkpoint_ids}
        for document in documents:
            if document is not None:
                of = document["of"] if "of" in document else parent_of(document)
                # The digest of a carrier may have matched another checkpoint.
                records.get(of or "", []).extend(before_of(document))
        return records

    async def listed(
        self,
        indexes: Iterable[Index],
        accepts: Callable[[Head], bool],
        matching: Mapping[str, Any],
        limit: int | None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield checkpoints with the greatest ids first, loaded a few at a time.

        Args:
            indexes: The indexes of the places to list.
            accepts: Whether to yield a checkpoint.
            matching: The fields that their metadata must have.
            limit: At most this many; `None`: all.
        """
        found = [
            (index, head)
            for index in indexes
            for head in index.heads.values()
            if accepts(head) and (not head.whole or _matches(head.metadata, matching))
        ]
        found.sort(key=lambda pair: pair[1].checkpoint_id, reverse=True)
        left = len(found) if limit is None else limit
        for start in range(0, len(found), _AHEAD):
            ahead = found[start : start + min(_AHEAD, left)]
            for one in await asyncio.gather(*(self._whole(*pair) for pair in ahead)):
                # Some metadata can only be read with the document.
                if one is not None and left > 0 and _matches(one.metadata, matching):
                    left -= 1
                    yield one
            if left <= 0:
                return

    async def _whole(self, index: Index, head: Head) -> CheckpointTuple | None:
        document, writes = await asyncio.gather(
            self.read(index.place.name, head.checkpoint_id),
            self._writes_of(index, head.checkpoint_id),
        )
        return None if document is None else self._tuple(index.place, head, document, writes)

    async def lineage(self, index: Index, checkpoint_id: str, channels: Collection[str]) -> Lineage:
        """Return the ancestors of a checkpoint that these channels are rebuilt from.

        A document is read only if the head does not show that it has no value of them.
        """
        lineage, left, ahead = Lineage(), set(channels), dict(index.heads)
        start = ahead.get(checkpoint_id)
        cursor = None if start is None else await self._parent(index.place, start)
        while left and (head := ahead.pop(cursor or "", None)) is not None:
            lineage.ancestors.append(head.checkpoint_id)
            if all(map(head.lacks, left)):
                cursor = head.parent
                continue
            document = await self._document(index.place, head)
            for channel in left & document["v"].keys():
                lineage.seeds[channel] = document["v"][channel]
                lineage.depths[channel] = len(lineage.ancestors)
                left.discard(channel)
            cursor = parent_of(document)
        lineage.depths.update(dict.fromkeys(left, len(lineage.ancestors)))
        return lineage

    async def _document(self, place: Place, head: Head) -> Document:
        return await self.read(place.name, head.checkpoint_id, head.record) or {"v": {}}

    async def _parent(self, place: Place, head: Head) -> str | None:
        if head.parent is not None:
            return head.parent
        return parent_of(await self._document(place, head))

    async def history(
        self, place: Place, checkpoint_id: str | None, channels: Sequence[str]
    ) -> dict[str, DeltaChannelHistory]:
        """Return the data that each channel is rebuilt from; see `get_delta_channel_history`."""
        index = await self._recent(place)
        lineage = await self.lineage(index, checkpoint_id or index.greatest, channels)
        records = await self.writes(index, lineage.ancestors, cached=True)
        history: dict[str, DeltaChannelHistory] = {}
        for channel in channels:
            needed = lineage.ancestors[: lineage.depths[channel]]
            history[channel] = {
                "writes": [
                    write
                    for ancestor in reversed(needed)
                    for write in merged(self.serde, records[ancestor], channel)
                ]
            }
            if channel in lineage.seeds:
                history[channel]["seed"] = decode_value(self.serde, lineage.seeds[channel])
        return history

    async def _recent(self, place: Place) -> Index:
        """Return the whole index of a place, of which often only the newest records are listed."""
        known = self.caches.indexes.get(place.name)
        index = None if known is None else Index.of(place, *await self._windows(place)).onto(known)
        if index is None:
            index = await self.index(place)
        self.caches.indexes.put(place.name, index)
        return index


def _holds_all(writes: Sequence[CheckpointInfo], checkpoint_id: str) -> bool:
    """Whether all writes of the greatest checkpoint must be among these newest records.

    Unless marked as late, writes are of the checkpoint that was the greatest at their time.
    """
    return len(writes) < WINDOW or any(
        info.metadata.get("of") != checkpoint_id and "late" not in info.metadata for info in writes
    )


def _matches(metadata: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(metadata.get(key) == value for key, value in wanted.items())
