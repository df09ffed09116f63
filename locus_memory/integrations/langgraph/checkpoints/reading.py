"""Reads of LangGraph's checkpoints: one, the latest, many, and the history of delta channels."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple, DeltaChannelHistory
from langgraph.checkpoint.serde.base import SerializerProtocol

from locus_memory.checkpoint.base import BaseCheckpointer, CheckpointInfo
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.integrations.langgraph.checkpoints.known import (
    Bounded,
    Known,
    KnownCache,
)
from locus_memory.integrations.langgraph.checkpoints.pending import indexes_of, merged
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
from locus_memory.integrations.langgraph.checkpoints.trails import (
    Index,
    Lineage,
    Past,
    Trail,
    Written,
)
from locus_memory.integrations.langgraph.checkpoints.values import decode_value
from locus_memory.integrations.langgraph.threads import WINDOW, Place, all_heads, heads_of

__all__ = ["Reader"]

_AHEAD = 4
"""How many checkpoints of a listing are loaded at a time."""

_MOST_AHEAD = 32
"""At most how many checkpoints are read in advance on the way to a value."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads checkpoints, and caches the last one of each place.

    Attributes:
        checkpointer: The checkpointer of the library that holds them.
        serde: Converts bytes to values.
        known: The cache of checkpoints.
        trails: The cache of the data that delta channels are rebuilt from.
    """

    checkpointer: BaseCheckpointer
    serde: SerializerProtocol
    known: KnownCache
    trails: Bounded[Trail]

    def forget(self, place: Place) -> None:
        """Drop a place from the caches."""
        self.known.discard(place.name)
        self.trails.discard(place.name)

    async def latest(self, place: Place) -> CheckpointTuple | None:
        """Return the checkpoint with the greatest id, or `None`."""
        guess = self._guess(place.name)
        document, infos, writes = await asyncio.gather(
            self._guessed(place.name, guess),
            self.checkpointer.list_with_metadata(place.name, WINDOW),
            self.checkpointer.list_with_metadata(place.writes, WINDOW),
        )
        if not infos:
            self.known.put(place.name, Known("", ""))
            return None
        index = Index.of(place, infos, writes)
        greatest = max(index.heads)
        if not (_reaches_back(infos) and _holds_all(writes, greatest)):
            index = await self.index(place)
            greatest = max(index.heads, default="")
        if greatest != guess:
            document = self._recalled(infos, greatest) or await self.load(place.name, greatest)
        return await self._remembered(index, greatest, document, greatest)

    def _guess(self, name: str) -> str:
        """Return the id of the likely latest checkpoint; empty if it is cached anyway."""
        known = self.known.get(name)
        if known is None:
            return ""
        is_remembered = isinstance(self.checkpointer, DeltaCheckpointer) and (
            self.checkpointer.remembers(name)
        )
        return "" if is_remembered else known.checkpoint_id

    def _recalled(self, infos: Iterable[CheckpointInfo], checkpoint_id: str) -> Document | None:
        """Return a document that this process has just written, without a read."""
        if not isinstance(self.checkpointer, DeltaCheckpointer):
            return None
        listed = next((each for each in infos if each.checkpoint_id == checkpoint_id), None)
        return None if listed is None else self.checkpointer.recall(listed)

    async def _guessed(self, name: str, guess: str) -> Document | None:
        return await self.load(name, guess) if guess else None

    async def named(self, place: Place, checkpoint_id: str) -> CheckpointTuple | None:
        """Return one checkpoint, or `None`."""
        document, infos, writes = await asyncio.gather(
            self.load(place.name, checkpoint_id),
            self._newer(place.name, checkpoint_id),
            all_heads(self.checkpointer, place.writes),
        )
        known = self.known.get(place.name)
        greatest = None if known is None else known.greatest
        if greatest is not None:
            greatest = max(greatest, checkpoint_id)
        index = Index.of(place, infos, writes)
        return await self._remembered(index, checkpoint_id, document, greatest)

    async def greatest(self, place: Place) -> str:
        """Return the greatest checkpoint id; empty if there is none."""
        infos = await self.checkpointer.list_with_metadata(place.name, WINDOW)
        if not _reaches_back(infos):
            infos = await all_heads(self.checkpointer, place.name)
        return max((info.checkpoint_id for info in infos), default="")

    async def index(self, place: Place) -> Index:
        """Return the index of a place, without reading a document."""
        infos, writes = await asyncio.gather(
            all_heads(self.checkpointer, place.name), all_heads(self.checkpointer, place.writes)
        )
        return Index.of(place, infos, writes, whole=True)

    async def load(self, name: str, checkpoint_id: str) -> Document | None:
        """Return a document as it is stored, or `None`."""
        state: Any = await self.checkpointer.load(name, checkpoint_id)
        document: Document | None = (
            state.to_checkpoint() if hasattr(state, "to_checkpoint") else state
        )
        return document

    async def read(self, name: str, checkpoint_id: str) -> Document | None:
        """Return an opened document, or `None`."""
        stored = await self.load(name, checkpoint_id)
        return None if stored is None else opened(stored)

    async def _newer(self, name: str, checkpoint_id: str) -> list[CheckpointInfo]:
        """Return the heads from the newest one to this one."""
        infos: list[CheckpointInfo] = []
        async for info in heads_of(self.checkpointer, name):
            infos.append(info)
            if info.checkpoint_id == checkpoint_id:
                break
        return infos

    async def _remembered(
        self, index: Index, checkpoint_id: str, stored: Document | None, greatest: str | None
    ) -> CheckpointTuple | None:
        head = index.heads.get(checkpoint_id)
        if stored is None or head is None:
            return None
        document = opened(stored)
        records = (await self.writes(Trail(index), [checkpoint_id]))[checkpoint_id]
        values = self._values(document)
        before = self.known.at(index.place.name, checkpoint_id)
        is_same = before is not None and before.values == document["v"]
        known = Known(
            checkpoint_id,
            greatest,
            is_delta=bool(head.metadata.get(COUNTERS)),
            values=document["v"],
            prints=before.prints if before is not None and is_same else {},
            numbers=numbers_of(stored),
            indexes=indexes_of(records),
        )
        self.known.put(index.place.name, known)
        return self._tuple(index.place, head, document, records, values)

    def _values(self, document: Document) -> dict[str, Any]:
        return {channel: decode_value(self.serde, tree) for channel, tree in document["v"].items()}

    def _tuple(
        self,
        place: Place,
        head: Head,
        document: Document,
        records: Sequence[TaskWrites],
        values: dict[str, Any],
    ) -> CheckpointTuple:
        parent = parent_of(document)
        return CheckpointTuple(
            config=place.config(head.checkpoint_id),
            checkpoint=checkpoint_of(self.serde, head.checkpoint_id, document, values),
            metadata=metadata_of(self.serde, head, document),
            parent_config=place.config(parent) if parent else None,
            pending_writes=merged(self.serde, records),
        )

    async def writes(
        self, trail: Trail, checkpoint_ids: Collection[str]
    ) -> dict[str, list[TaskWrites]]:
        """Return the pending writes of checkpoints, in the order they were stored."""
        index, known = trail.index, trail.records
        carriers = index.carriers(checkpoint_ids)
        alone = [name for of in checkpoint_ids for name in index.alone.get(of, ())]
        places = [(name, index.place.name) for name in carriers]
        places += [(name, index.place.writes) for name in alone]
        missing = [(name, place) for name, place in places if name not in known]
        documents = await self._load_all([(place, name) for name, place in missing])
        for (name, _), document in zip(missing, documents, strict=True):
            if document is not None:
                of = document["of"] if "of" in document else parent_of(document)
                known[name] = Written(of, before_of(document))
        records: dict[str, list[TaskWrites]] = {name: [] for name in checkpoint_ids}
        for name in (*carriers, *alone):
            # The digest of a carrier may have matched another checkpoint.
            if name in known and (of := known[name].of) in records:
                records[of] += known[name].writes
        return records

    async def _load_all(self, names: Iterable[tuple[str, str]]) -> list[Document | None]:
        return await asyncio.gather(*(self.read(*name) for name in names))

    async def listed(
        self,
        indexes: Iterable[Index],
        accepts: Callable[[Place, Head], bool],
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
            if accepts(index.place, head) and (not head.whole or _matches(head.metadata, matching))
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
            self.writes(Trail(index), [head.checkpoint_id]),
        )
        if document is None:
            return None
        values = self._values(document)
        return self._tuple(index.place, head, document, writes[head.checkpoint_id], values)

    async def lineage(self, trail: Trail, checkpoint_id: str, channels: Collection[str]) -> Lineage:
        """Return the ancestors of a checkpoint that these channels are rebuilt from.

        A document is read only if the head does not show that it has no value of them.
        """
        lineage, left, ahead = Lineage(), set(channels), dict(trail.index.heads)
        cursor = await self._parent(trail, checkpoint_id, left)
        while left and (head := ahead.pop(cursor or "", None)) is not None:
            cursor = head.checkpoint_id
            lineage.ancestors.append(cursor)
            if all(map(head.lacks, left)):
                cursor = head.parent
                continue
            past = await self._past(trail, cursor, left, ahead)
            for channel in left & past.values.keys():
                lineage.seeds[channel] = past.values[channel]
                lineage.depths[channel] = len(lineage.ancestors)
                left.discard(channel)
            cursor = past.parent
        lineage.cut = bool(left and cursor)
        lineage.depths.update(dict.fromkeys(left, len(lineage.ancestors)))
        return lineage

    async def _parent(
        self, trail: Trail, checkpoint_id: str, channels: Collection[str]
    ) -> str | None:
        head = trail.index.heads.get(checkpoint_id)
        if head is None:
            return None
        if head.parent is not None:
            return head.parent
        return (await self._past(trail, checkpoint_id, channels, {})).parent

    async def _past(
        self, trail: Trail, checkpoint_id: str, wanted: Collection[str], ahead: Mapping[str, Head]
    ) -> Past:
        """Return the content of a checkpoint, and read some that are probably needed next."""
        past = trail.past.get(checkpoint_id)
        if past is not None and past.values.keys() >= past.channels.intersection(wanted):
            return past
        # Twice as many each time: the first is often enough.
        likely = (
            name
            for name, head in ahead.items()
            if name not in trail.past and not all(map(head.lacks, wanted))
        )
        names = [checkpoint_id, *islice(likely, min(len(trail.past), _MOST_AHEAD))]
        documents = await self._load_all((trail.index.place.name, name) for name in names)
        for name, document in zip(names, documents, strict=True):
            trail.past[name] = Past.of(document or {"v": {}}, wanted)
        return trail.past[checkpoint_id]

    async def history(
        self, place: Place, checkpoint_id: str | None, channels: Sequence[str]
    ) -> dict[str, DeltaChannelHistory]:
        """Return the data that each channel is rebuilt from; see `get_delta_channel_history`."""
        trail = await self._trail(place)
        start = checkpoint_id or max(trail.index.heads, default="")
        lineage = await self.lineage(trail, start, channels)
        if not trail.index.whole and (lineage.cut or start not in trail.index.heads):
            trail = trail.on(await self.index(place))
            lineage = await self.lineage(trail, start, channels)
        records = await self.writes(trail, lineage.ancestors)
        self.trails.put(place.name, trail.on(trail.index.back_to({start, *lineage.ancestors})))
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

    async def _trail(self, place: Place) -> Trail:
        """Return the cached trail, updated from the newest records."""
        known = self.trails.get(place.name)
        if known is None:
            return Trail(await self.index(place))
        infos, writes = await self._windows(place)
        index = Index.of(place, infos, writes).onto(known.index)
        if index is None or index.greatest not in index.heads:
            index = await self.index(place)
        return known.on(index)

    async def _windows(self, place: Place) -> tuple[list[CheckpointInfo], list[CheckpointInfo]]:
        return await asyncio.gather(
            self.checkpointer.list_with_metadata(place.name, WINDOW),
            self.checkpointer.list_with_metadata(place.writes, WINDOW),
        )


def _reaches_back(infos: Sequence[CheckpointInfo]) -> bool:
    """Whether the greatest id must be among these newest records."""
    return len(infos) < WINDOW or not Head.of(infos[0]).low


def _holds_all(writes: Sequence[CheckpointInfo], checkpoint_id: str) -> bool:
    """Whether all writes of the greatest checkpoint must be among these newest records.

    Unless marked as late, writes are of the checkpoint that was the greatest at their time.
    """
    return len(writes) < WINDOW or any(
        info.metadata.get("of") != checkpoint_id and "late" not in info.metadata for info in writes
    )


def _matches(metadata: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(metadata.get(key) == value for key, value in wanted.items())
