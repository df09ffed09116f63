"""The copy of a thread: its checkpoints with their ids, parents, metadata and pending writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, cast

from langgraph.checkpoint.base import BaseCheckpointSaver

from locus_memory.backends.base import Backend
from locus_memory.checkpoint.base import BaseCheckpointer
from locus_memory.errors import CheckpointConflictError
from locus_memory.events import emit
from locus_memory.integrations.langgraph.importing.opaque import OpaqueSerializer
from locus_memory.integrations.langgraph.importing.sources import Source, Stored, Write
from locus_memory.integrations.langgraph.saver import LocusSaver
from locus_memory.integrations.langgraph.threads import Place

__all__ = ["Copied", "import_threads"]

_Known = dict[str, int]
"""The number of pending writes of each checkpoint that is there."""


@dataclass(frozen=True, slots=True)
class Copied:
    """The result of the import of one thread in one namespace.

    Attributes:
        thread_id: LangGraph's thread id.
        namespace: LangGraph's `checkpoint_ns`; empty for the graph itself.
        checkpoints: Number of checkpoints of the source.
        writes: Number of their pending writes.
        saved: Number of checkpoints that this import stored.
        unreadable: Number of checkpoints of the source that cannot be read, and are left out.
        missing: Number of the others, and of their writes, that are not there after the import.
    """

    thread_id: str
    namespace: str
    checkpoints: int = 0
    writes: int = 0
    saved: int = 0
    unreadable: int = 0
    missing: int = 0


async def import_threads(
    source: Source,
    where: str | BaseCheckpointer | Backend,
    *,
    thread_id: str | None = None,
    on_checkpoint: Callable[[Place, int], None] = lambda _, __: None,
) -> list[Copied]:
    """Copy the threads of another saver; those that are there already are not copied again.

    After a kill, the next import adds the missing checkpoints and writes. A checkpoint that cannot
    be read is left out, and is told by the event `integrations.checkpoint_unreadable`. The result
    is counted in the target after the copy.

    Args:
        source: See `open_source`.
        where: The target, as for `LocusSaver`.
        thread_id: Only this thread; `None`: all.
        on_checkpoint: Called after each checkpoint with its place and the number done there.

    Raises:
        CheckpointConflictError: The target has a thread of this name that is another one. No thread
            is changed.
        BackendError: The target failed.
    """
    async with LocusSaver(where, serde=cast("Any", OpaqueSerializer())) as saver:
        places = await source.places(thread_id)
        known: dict[Place, _Known] = {}
        for place in places:
            known[place] = await _known(saver, place)
            if known[place] and known[place].keys().isdisjoint(await source.ids(place)):
                raise CheckpointConflictError(place.name, None, next(iter(known[place])))
        return [await _copy(saver, source, place, known[place], on_checkpoint) for place in places]


async def _known(saver: BaseCheckpointSaver[Any], place: Place) -> _Known:
    config = place.config("")
    return {
        found.checkpoint["id"]: len(found.pending_writes or ())
        async for found in saver.alist(config)
    }


async def _copy(
    saver: LocusSaver,
    source: Source,
    place: Place,
    known: _Known,
    on_checkpoint: Callable[[Place, int], None],
) -> Copied:
    done = Copied(place.thread_id, place.namespace)
    wanted: _Known = {}
    waiting: dict[str, Sequence[Write]] = {}
    async for stored in source.stored(place):
        done = replace(done, checkpoints=done.checkpoints + 1)
        if stored.error is not None:
            done = replace(done, unreadable=done.unreadable + 1)
            emit(
                "integrations.checkpoint_unreadable",
                error=stored.error,
                thread=place.thread_id,
                checkpoint=stored.checkpoint_id,
            )
            continue
        wanted[stored.checkpoint_id] = len(stored.writes)
        if stored.checkpoint_id not in known:
            await _save(saver, place, stored, waiting.pop(stored.parent or "", ()))
            done = replace(done, saved=done.saved + 1)
        if known.get(stored.checkpoint_id, 0) < len(stored.writes):
            waiting[stored.checkpoint_id] = stored.writes
        on_checkpoint(place, done.checkpoints)
    for checkpoint_id, writes in waiting.items():
        await asyncio.gather(*_put_writes(saver, place, checkpoint_id, writes))
    there = await _known(saver, place)
    missing = sum(
        1 + number if each not in there else max(0, number - there[each])
        for each, number in wanted.items()
    )
    return replace(done, writes=sum(wanted.values()), missing=missing)


async def _save(saver: LocusSaver, place: Place, stored: Stored, before: Sequence[Write]) -> None:
    """Store a checkpoint, in one record with the pending writes of its parent."""
    parent = stored.parent or ""
    tasks = [asyncio.ensure_future(each) for each in _put_writes(saver, place, parent, before)]
    if tasks:
        # The writes wait for the checkpoint from here on.
        await asyncio.sleep(0)
    checkpoint: Any = {**stored.checkpoint, "id": stored.checkpoint_id}
    versions = checkpoint.get("channel_versions") or {}
    config = place.config(parent)
    try:
        await saver.aput(config, checkpoint, cast("Any", stored.metadata), versions)
    finally:
        await asyncio.gather(*tasks)


def _put_writes(
    saver: LocusSaver, place: Place, checkpoint_id: str, writes: Iterable[Write]
) -> list[Any]:
    """Return the calls that store the pending writes of a checkpoint, one for each task."""
    config = place.config(checkpoint_id)
    return [
        saver.aput_writes(config, [(each.channel, each.value) for each in own], task, path)
        for (path, task), own in (
            (key, list(group))
            for key, group in groupby(writes, key=lambda each: (each.path, each.task))
        )
    ]
