"""Deleting, pruning and copying LangGraph's threads."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from locus_memory.checkpoint.base import BaseCheckpointer, CheckpointInfo
from locus_memory.errors import CheckpointConflictError
from locus_memory.integrations.langgraph.checkpoints.known import Index
from locus_memory.integrations.langgraph.checkpoints.reading import Reader
from locus_memory.integrations.langgraph.checkpoints.records import (
    COUNTERS,
    alone_of,
    before_of,
    digest_of,
    parent_of,
    stored_by,
)
from locus_memory.integrations.langgraph.threads import Place, all_heads, places

__all__ = ["Remover"]

_MARGIN = 8
"""How many extra records a prune keeps, for those saved meanwhile."""

_RUNS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Remover:
    """Removes records, except those that remaining records depend on.

    Attributes:
        reader: Reads the same checkpoints.
    """

    reader: Reader

    @property
    def _checkpointer(self) -> BaseCheckpointer:
        return self.reader.checkpointer

    async def delete_thread(self, thread_id: str) -> None:
        """Delete a thread: all namespaces, checkpoints and writes."""
        for place in await places(self._checkpointer, thread_id):
            self.reader.caches.forget(place.name)
            await self._checkpointer.delete(place.name)
            await self._checkpointer.delete(place.writes)

    async def delete_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of runs, in all threads, and the writes stored on them."""
        if not run_ids:
            return
        doomed: dict[Place, set[str]] = {}
        for info in await self._of_runs(run_ids):
            place = Place.named(info.thread_id)
            if place is not None and place.name == info.thread_id:
                doomed.setdefault(place, set()).add(info.checkpoint_id)
        for place, checkpoint_ids in doomed.items():
            await self._remove(await self.reader.index(place), checkpoint_ids)

    async def _of_runs(self, run_ids: Sequence[str]) -> list[CheckpointInfo]:
        limit = _RUNS_AT_ONCE
        wanted = {"run_id": {"$in": list(run_ids)}}
        while True:
            found = await self._checkpointer.query_by_metadata(wanted, limit)
            if len(found) < limit:
                return found
            limit *= 4

    async def keep_latest(self, thread_id: str) -> None:
        """Delete all but the greatest checkpoint id of each namespace of a thread.

        The records that its delta channels are rebuilt from stay as well.
        """
        for place in await places(self._checkpointer, thread_id):
            index = await self.reader.index(place)
            if not index.heads:
                continue
            channels = index.heads[index.greatest].metadata.get(COUNTERS) or ()
            lineage = await self.reader.lineage(index, index.greatest, channels)
            await self._remove(index, index.heads.keys() - {index.greatest, *lineage.ancestors})

    async def _remove(self, index: Index, checkpoint_ids: Collection[str]) -> None:
        """Delete checkpoints of a place, and the writes stored on them."""
        place = index.place
        self.reader.caches.forget(place.name)
        await self._rescue(index, checkpoint_ids)
        await self._drop(place.name, set(checkpoint_ids))
        await self._drop(place.writes, set(index.alone(checkpoint_ids)))

    async def _rescue(self, index: Index, checkpoint_ids: Collection[str]) -> None:
        """Store the writes of remaining checkpoints that removed checkpoints hold."""
        stay = index.heads.keys() - set(checkpoint_ids)
        digests = set(map(digest_of, stay))
        for name in checkpoint_ids:
            head = index.heads.get(name)
            if head is None or head.carries not in digests:
                continue
            document = await self.reader.read(index.place.name, name)
            parent = None if document is None else parent_of(document)
            if document is not None and parent in stay:
                kept = alone_of(parent, before_of(document))
                beside = {"of": parent, "late": 1}
                state = stored_by(self._checkpointer, kept)
                await self._checkpointer.save(state, index.place.writes, metadata=beside)

    async def _drop(self, name: str, records: set[str]) -> None:
        """Delete records of a thread: the oldest in one call, the others one by one."""
        if len(records) > _MARGIN:
            heads = [info.checkpoint_id for info in await all_heads(self._checkpointer, name)]
            last = max((i for i, record in enumerate(heads) if record not in records), default=0)
            await self._checkpointer.prune(name, keep_last=last + 1 + _MARGIN)
            records = records.intersection(heads[: last + 1 + _MARGIN])
        for record in records:
            await self._checkpointer.delete(name, record)

    async def copy(self, source: str, target: str) -> None:
        """Copy a thread: all namespaces, checkpoints and writes.

        Raises:
            CheckpointConflictError: The target already has checkpoints; they are not changed.
        """
        taken = await places(self._checkpointer, target)
        if taken:
            newest = await self.reader.newest(taken[0])
            raise CheckpointConflictError(taken[0].name, None, newest.greatest)
        names: list[tuple[str, str]] = []
        for place in await places(self._checkpointer, source):
            new = Place.at(target, place.namespace)
            # The writes first: a checkpoint is never seen without them.
            names += [(place.writes, new.writes), (place.name, new.name)]
        copied: list[str] = []
        try:
            for name, copy in names:
                if await self._checkpointer.exists(name):
                    await self._checkpointer.copy_thread(name, copy)
                    copied.append(copy)
        except BaseException:
            for name in copied:
                await self._checkpointer.delete(name)
            raise
        for name in copied:
            self.reader.caches.forget(name)
