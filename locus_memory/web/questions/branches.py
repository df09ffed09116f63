"""The branches of a thread: the thread that it was forked from, and its own forks."""

from __future__ import annotations

import time
from typing import Final

from locus_memory.errors import CheckpointNotFoundError
from locus_memory.inspection.names import all_checkpoints, find_fork_point, find_thread, hides
from locus_memory.transfer.reading import all_threads
from locus_memory.web.models import Answer, ThreadAsked
from locus_memory.web.questions.data import Data

__all__ = ["Branch", "Branches", "list_branches"]

_PATIENCE: Final = 1.0
"""Seconds to look at the other threads."""


class Branch(Answer):
    """A thread that begins in another one, or that another one begins in."""

    thread_id: str
    checkpoint_id: str
    """The last checkpoint that both have, by its id in the source."""
    place: int
    """Its place in the source, from 1; 0: it is no longer there."""
    checkpoints: int


class Branches(Answer):
    """The branches of a thread."""

    thread_id: str
    checkpoints: int
    source: Branch | None
    """The thread that it was forked from."""
    begins_at: int
    """The place of the fork in the thread itself, from 1; 0: it is no fork."""
    forks: list[Branch]
    complete: bool
    """Whether all threads were looked at."""


async def list_branches(data: Data, asked: ThreadAsked) -> Branches:
    """Return the source of a thread and its forks."""
    thread = await find_thread(data.checkpointer, asked.thread)
    infos = await all_checkpoints(data.checkpointer, thread)
    places = {info.checkpoint_id: place for place, info in enumerate(infos, 1)}
    begins = [place for place, info in enumerate(infos, 1) if info.forked_from is not None]
    found = infos[begins[-1] - 1].forked_from if begins else None
    forks, complete = await _forks(data, thread, places)
    return Branches(
        thread_id=thread,
        checkpoints=len(infos),
        source=None if found is None else await _source(data, *found),
        begins_at=begins[-1] if begins else 0,
        forks=forks,
        complete=complete,
    )


async def _source(data: Data, thread: str, checkpoint: str) -> Branch:
    try:
        infos = await all_checkpoints(data.checkpointer, thread)
    except CheckpointNotFoundError:
        infos = []
    ids = [info.checkpoint_id for info in infos]
    return Branch(
        thread_id=thread,
        checkpoint_id=checkpoint,
        place=ids.index(checkpoint) + 1 if checkpoint in ids else 0,
        checkpoints=len(ids),
    )


async def _forks(data: Data, thread: str, places: dict[str, int]) -> tuple[list[Branch], bool]:
    """Return the forks of a thread, and whether the time was enough to find all of them."""
    until = time.monotonic() + _PATIENCE
    found: list[Branch] = []
    async for name in all_threads(data.checkpointer):
        if time.monotonic() > until:
            return found, False
        if name != thread and not hides(name):
            found += await _fork(data, name, thread, places)
    return found, True


async def _fork(data: Data, name: str, thread: str, places: dict[str, int]) -> list[Branch]:
    point = await find_fork_point(data.checkpointer, name)
    if point is None or point[0] != thread:
        return []
    usage = await data.checkpointer.get_storage_stats(name)
    return [
        Branch(
            thread_id=name,
            checkpoint_id=point[1],
            place=places.get(point[1], 0),
            checkpoints=usage["total_checkpoints"],
        )
    ]
