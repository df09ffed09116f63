"""The numbers that take longer: memories and documents, and stored bytes against the full JSON."""

from __future__ import annotations

import time
from datetime import datetime

import orjson
from pydantic import Field

from locus_memory.cli.conversations.foreign_threads import Foreign
from locus_memory.cli.options.names import all_checkpoints
from locus_memory.errors import CheckpointNotFoundError
from locus_memory.web.models import Answer, Asked
from locus_memory.web.questions.data import Data
from locus_memory.web.questions.documents import DocumentsAsked, list_documents
from locus_memory.web.questions.memories import UsersAsked, list_users

__all__ = ["Contents", "ContentsAsked", "Point", "Sizes", "SizesAsked", "count_contents", "measure"]

_MOST = 1_000
_PAGE = 100


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
    steps: list[tuple[datetime, int, int]] = []
    measured, after, complete = 0, None, True
    while names := await data.checkpointer.list_threads(_PAGE, after=after):
        for name in names:
            if Foreign.hides(name):
                continue
            if time.monotonic() > until:
                return _sizes(steps, measured, complete=False)
            found, whole = await _steps(data, name, until)
            steps += found
            measured += bool(found)
            complete = complete and whole
        after = names[-1]
    return _sizes(steps, measured, complete=complete)


async def _steps(
    data: Data, thread: str, until: float
) -> tuple[list[tuple[datetime, int, int]], bool]:
    """Return the sizes of the checkpoints of a thread, and whether the time was enough."""
    found: list[tuple[datetime, int, int]] = []
    try:
        for info in await all_checkpoints(data.checkpointer, thread):
            if time.monotonic() > until:
                return found, False
            state = await data.checkpointer.load(thread, info.checkpoint_id)
            found.append((info.created_at, info.stored_size, len(orjson.dumps(state))))
    except CheckpointNotFoundError:
        # Somebody deletes or prunes the thread.
        return found, False
    return found, True


def _sizes(steps: list[tuple[datetime, int, int]], threads: int, *, complete: bool) -> Sizes:
    growth: list[Point] = []
    stored = full = 0
    for at, size, json_size in sorted(steps):
        stored, full = stored + size, full + json_size
        growth.append(Point(at=at, stored_bytes=stored, json_bytes=full))
    return Sizes(
        threads=threads, complete=complete, stored_bytes=stored, json_bytes=full, growth=growth
    )
