"""The numbers that take longer: memories and documents, and stored bytes against the full JSON."""

from __future__ import annotations

import time
from datetime import datetime

from pydantic import Field

from locus_memory.errors import CheckpointNotFoundError
from locus_memory.inspection.names import hides
from locus_memory.inspection.sizes import Step, measure_growth
from locus_memory.transfer.reading import all_threads
from locus_memory.web.models import Answer, Asked
from locus_memory.web.questions.data import Data
from locus_memory.web.questions.documents import DocumentsAsked, list_documents
from locus_memory.web.questions.memories import UsersAsked, list_users

__all__ = ["Contents", "ContentsAsked", "Point", "Sizes", "SizesAsked", "count_contents", "measure"]

_MOST = 1_000


class ContentsAsked(Asked):
    """What is known about the world: memories and documents."""


class Contents(Answer):
    """How many memories and documents there are, counted up to 1,000 of each."""

    memories: int
    documents: int
    complete: bool
    """Whether all of them were counted."""


class SizesAsked(Asked):
    """How long to measure."""

    seconds: float = Field(default=1, gt=0, le=30)


class Point(Answer):
    """The size of everything up to one checkpoint."""

    at: datetime
    stored_bytes: int
    json_bytes: int


class Sizes(Answer):
    """The stored size of threads against the full JSON of all their states."""

    threads: int
    """How many threads were measured."""
    complete: bool
    """Whether all of them were measured."""
    stored_bytes: int
    json_bytes: int
    growth: list[Point]
    """The growth, checkpoint by checkpoint, oldest first."""


async def count_contents(data: Data, asked: ContentsAsked) -> Contents:
    """Return how many memories and documents there are."""
    del asked
    users = (await list_users(data, UsersAsked())).users
    memories = 0
    for user in (None, *users):
        if memories < _MOST:
            found = await data.store.list_keys(data.scope(user).current, _MOST - memories)
            memories += len(found)
    documents = await list_documents(data, DocumentsAsked(limit=_MOST))
    return Contents(
        memories=memories,
        documents=len(documents.documents),
        complete=memories < _MOST and documents.next is None,
    )


async def measure(data: Data, asked: SizesAsked) -> Sizes:
    """Load the states of threads for a while, and compare what is stored with their full JSON."""
    until = time.monotonic() + asked.seconds
    steps: list[Step] = []
    measured, complete = 0, True
    async for name in all_threads(data.checkpointer):
        if hides(name):
            continue
        if time.monotonic() > until:
            return _sizes(steps, measured, complete=False)
        before = len(steps)
        complete = await _measure(data, name, until, steps) and complete
        measured += len(steps) > before
    return _sizes(steps, measured, complete=complete)


async def _measure(data: Data, thread: str, until: float, steps: list[Step]) -> bool:
    """Add the steps of a thread, and return whether the time was enough."""
    try:
        async for step in measure_growth(data.checkpointer, thread):
            steps.append(step)
            if time.monotonic() > until:
                return False
    except CheckpointNotFoundError:
        # Somebody deletes or prunes the thread.
        return False
    return True


def _sizes(steps: list[Step], threads: int, *, complete: bool) -> Sizes:
    growth: list[Point] = []
    stored = full = 0
    for each in sorted(steps):
        stored, full = stored + each.stored_bytes, full + each.json_bytes
        growth.append(Point(at=each.at, stored_bytes=stored, json_bytes=full))
    return Sizes(
        threads=threads, complete=complete, stored_bytes=stored, json_bytes=full, growth=growth
    )
