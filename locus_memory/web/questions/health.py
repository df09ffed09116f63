"""The health and the size of the database."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

from pydantic import Field

from locus_memory import __version__
from locus_memory.errors import CheckpointNotFoundError
from locus_memory.inspection.damage import Walk, look_at
from locus_memory.inspection.names import find_thread
from locus_memory.inspection.sizes import measure_threads
from locus_memory.web.models import Answer, Asked, ThreadAsked
from locus_memory.web.questions.data import Data
from locus_memory.web.questions.journal import EventsAsked, EventsPage

__all__ = [
    "Health",
    "HealthAsked",
    "ThreadStats",
    "ThreadStatsAsked",
    "get_health",
    "get_thread_stats",
    "list_events",
]

_MOST = 1_000
"""The most threads and namespaces that are counted."""


class HealthAsked(Asked):
    """How far to check."""

    seconds: float = Field(default=0, ge=0, le=30)
    """Read and check stored data for this long; 0: only ask the database for an answer."""


class Damage(Answer):
    """A damaged item, checkpoint or database."""

    kind: str
    place: tuple[str, ...]
    reason: str


class Health(Answer):
    """The health of the database."""

    ok: bool
    version: str
    """The version of the library."""
    database: str
    provider: str
    read_only: bool
    latency_ms: float
    """How long the database took to answer."""
    store: dict[str, Any] | None
    """The capabilities of the store; `null`: there is none."""
    checkpoints: dict[str, Any] | None
    """The capabilities of the checkpointer; `null`: there is none."""
    checked: int
    """How many items and checkpoints were read."""
    complete: bool
    """Whether all of them were read."""
    damaged: list[Damage]


class ThreadStatsAsked(ThreadAsked):
    """The size of one thread."""

    deep: bool = False
    """Load every state, and compare with its full JSON."""


class ThreadStats(Answer):
    """The size of a thread."""

    thread_id: str
    total_checkpoints: int
    full_checkpoints: int
    delta_checkpoints: int
    stored_bytes: int
    json_bytes: int | None
    """The size of the full JSON of all its states, with `deep`."""
    ratio: float | None
    """The stored size divided by that of the full JSON, with `deep`."""


async def get_health(data: Data, asked: HealthAsked) -> Health:
    """Return whether the database answers, its capabilities, and damage that was found."""
    started = time.perf_counter()
    store, checkpointer = data.parts
    if store is not None:
        await store.exists(("locus-memory-health",), "probe")
    if checkpointer is not None:
        await checkpointer.list_threads(1)
    latency = (time.perf_counter() - started) * 1_000
    walk = Walk()
    if asked.seconds:
        await look_at(data.backend, walk=walk, most_damaged=_MOST, seconds=asked.seconds)
    return Health(
        ok=not walk.damaged,
        version=__version__,
        database=data.settings.database or data.backend.provider,
        provider=data.backend.provider,
        read_only=data.settings.read_only,
        latency_ms=round(latency, 3),
        store=None if store is None else asdict(store.capabilities),
        checkpoints=None if checkpointer is None else asdict(checkpointer.capabilities),
        checked=walk.count,
        complete=walk.is_through,
        damaged=list(map(Damage.model_validate, walk.damaged)),
    )


async def get_thread_stats(data: Data, asked: ThreadStatsAsked) -> ThreadStats:
    """Return the size of a thread."""
    thread = await find_thread(data.checkpointer, asked.thread)
    if not await data.checkpointer.exists(thread):
        raise CheckpointNotFoundError(asked.thread)
    (found,) = await measure_threads(data.backend, thread=thread, deep=asked.deep)
    return ThreadStats.model_validate(found)


async def list_events(data: Data, asked: EventsAsked) -> EventsPage:
    """List the newest events of the process that serves the request."""
    return EventsPage(events=data.journal.page(asked.after, asked.limit))
