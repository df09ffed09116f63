"""What happened: the last sessions, the newest memories and runs, and how much there is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, NamedTuple

from locus_memory.checkpoint.base import CheckpointInfo
from locus_memory.checkpoint.differences import messages_of
from locus_memory.inspection.memories import runs_of, users
from locus_memory.inspection.names import hides
from locus_memory.inspection.sources import UNREADABLE, is_users
from locus_memory.inspection.states import read_state
from locus_memory.memory.layers.runs import SeenRun
from locus_memory.memory.ledger.revision import read_memory
from locus_memory.memory.models import Memory
from locus_memory.store.item import StoreItem
from locus_memory.web.questions.data import Data

__all__ = [
    "ChangedMemory",
    "Contents",
    "Conversation",
    "count_contents",
    "look_back",
    "sessions_of",
]

_MOST: Final = 1_000
_LOOKED_AT: Final = 200
"""How many of the newest items and checkpoints are looked at."""

_SHOWN: Final = 8


class Conversation(NamedTuple):
    """A thread as a conversation.

    Attributes:
        thread_id: The thread.
        user: Its user, if its newest checkpoint or its state names one.
        title: The first message of the user; empty: there is none.
        last: The text of the last message.
        turns: The number of messages of the user.
        newest: The newest checkpoint; `None`: the thread is gone.
    """

    thread_id: str
    user: str | None
    title: str
    last: str
    turns: int
    newest: CheckpointInfo | None


class ChangedMemory(NamedTuple):
    """A current memory that is new or has a new version."""

    user: str | None
    memory: Memory
    at: datetime
    is_new: bool


class Contents(NamedTuple):
    """How much there is, each counted up to 1,000."""

    threads: int
    memories: int
    users: int


async def count_contents(data: Data) -> Contents:
    """Return how many threads, memories and users there are."""
    store, checkpointer = data.parts
    threads = [] if checkpointer is None else await checkpointer.list_threads(_MOST)
    known = [] if store is None else await users(store, data.manager)
    memories = 0
    for user in (None, *known) if store is not None else ():
        if memories < _MOST:
            found = await data.store.list_keys(data.scope(user).current, _MOST - memories)
            memories += len(found)
    return Contents(len([each for each in threads if not hides(each)]), memories, len(known))


async def sessions_of(data: Data, threads: Sequence[str]) -> list[Conversation]:
    """Return threads as conversations, in the same order."""
    return list(await asyncio.gather(*(_session(data, each) for each in threads)))


async def look_back(
    data: Data,
) -> tuple[list[Conversation], list[ChangedMemory], list[tuple[str | None, SeenRun]]]:
    """Return the last sessions, the newest memories and the newest runs, each the newest first."""
    store, checkpointer = data.parts
    infos = [] if checkpointer is None else await checkpointer.query_by_metadata({}, _LOOKED_AT)
    names = [each for each in dict.fromkeys(info.thread_id for info in infos) if not hides(each)]
    root, items = data.settings.namespace, list[StoreItem]()
    if store is not None:
        with suppress(*UNREADABLE):
            items = await store.search(root, None, _LOOKED_AT, recursive=True)
    changes, seen = list[ChangedMemory](), dict[str | None, None]()
    for item in items:
        below = item.namespace[len(root) :]
        user, part = (below[1], below[2:]) if below[:1] == ("users",) else (None, below)
        memory = read_memory(item) if part == ("current",) else None
        if memory is not None:
            changes.append(ChangedMemory(user, memory, item.updated_at, item.version == 1))
        if part == ("log", "runs"):
            seen[user] = None
    runs = list[tuple[str | None, SeenRun]]()
    for user in list(seen)[:_SHOWN]:
        _, own = await runs_of(data.backend, data.manager, None, user, _SHOWN)
        runs += [(user, run) for run in own]
    runs.sort(key=lambda each: each[1].at, reverse=True)
    return await sessions_of(data, names[:_SHOWN]), changes[:_SHOWN], runs[:_SHOWN]


async def _session(data: Data, thread: str) -> Conversation:
    newest: CheckpointInfo | None = None
    state: Any = {}
    # The page of the thread tells why it cannot be read.
    with suppress(*UNREADABLE):
        newest = next(iter(await data.checkpointer.list_with_metadata(thread, 1)), None)
        if newest is not None:
            state = await read_state(data.checkpointer, thread, newest.checkpoint_id)
    messages, rest = messages_of(state)
    said = [each for each in messages if isinstance(each, dict)]
    own = list(filter(is_users, said))
    told = rest.get("metadata") if isinstance(rest, dict) else None
    user = (newest.metadata if newest else {}).get("user_id") or (
        told.get("user_id") if isinstance(told, dict) else None
    )
    texts = [each["content"] for each in said if isinstance(each.get("content"), str)]
    titles = [each["content"] for each in own if isinstance(each.get("content"), str)]
    return Conversation(
        thread,
        user if isinstance(user, str) else None,
        titles[0] if titles else "",
        texts[-1] if texts else "",
        len(own),
        newest,
    )
