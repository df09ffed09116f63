"""The data of threads for an erasure: their users, their messages, and their summaries."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from locus_memory.checkpoint.base import BaseCheckpointer, CheckpointInfo
from locus_memory.conversation.summary.thread import root_digest
from locus_memory.errors import CheckpointError
from locus_memory.messages import Message

__all__ = [
    "Source",
    "ThreadView",
    "all_threads",
    "holds",
    "is_unique",
    "roots_of",
    "view_thread",
]

_PAGE: Final = 500

_UNIQUE: Final = re.compile(r"[0-9a-f]{32}")
"""The form of a globally unique message id, as an agent generates it."""

Source = tuple[str | None, str]
"""A message: its thread and its id; `#N` is the Nth of the conversation."""


def is_unique(name: str) -> bool:
    """Return whether no other message has this id, except its copies in forks of its thread."""
    return _UNIQUE.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class ThreadView:
    """The data of a thread that one read returns.

    Attributes:
        thread_id: The thread.
        checkpoints: How many checkpoints it has.
        users: The `user_id`s of its checkpoints and its newest state.
        messages: The messages of the newest state, as they were saved or loaded.
        oldest: The id of its oldest checkpoint, if that is readable.
        is_readable: Whether its records are readable.
    """

    thread_id: str
    checkpoints: int
    users: frozenset[str]
    messages: Sequence[Any]
    oldest: str | None
    is_readable: bool


async def all_threads(checkpointer: BaseCheckpointer) -> AsyncIterator[ThreadView]:
    """Yield all threads."""
    after: str | None = None
    while names := await checkpointer.list_threads(_PAGE, after=after):
        for name in names:
            yield await view_thread(checkpointer, name)
        after = names[-1]


async def view_thread(checkpointer: BaseCheckpointer, thread_id: str) -> ThreadView:
    """Return the view of a thread; of a damaged thread, only the readable data."""
    users: set[str] = set()
    messages: Sequence[Any] = ()
    count, oldest, is_readable = 0, None, True
    try:
        async for info in _all_checkpoints(checkpointer, thread_id):
            count += 1
            oldest = info.checkpoint_id
            users |= _user_in(info.metadata)
        state = await checkpointer.load(thread_id)
        users |= _user_in(_part(state, "metadata"))
        messages = _messages_in(state)
    except CheckpointError:
        is_readable = False
    return ThreadView(thread_id, count, frozenset(users), messages, oldest, is_readable)


async def _all_checkpoints(
    checkpointer: BaseCheckpointer, thread_id: str
) -> AsyncIterator[CheckpointInfo]:
    """Yield the metadata of each checkpoint of a thread, the newest first."""
    before: str | None = None
    while page := await checkpointer.list_with_metadata(thread_id, _PAGE, before=before):
        for info in page:
            yield info
        before = page[-1].checkpoint_id


def _user_in(metadata: Any) -> set[str]:
    user = metadata.get("user_id") if isinstance(metadata, Mapping) else None
    return {user} if isinstance(user, str) else set()


def _part(holder: Any, name: str) -> Any:
    """Return a part of a state or a message, whether it is a dict or an object."""
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


def _messages_in(state: Any) -> Sequence[Any]:
    messages = _part(state, "messages")
    return messages if isinstance(messages, list | tuple) else ()


async def holds(
    checkpointer: BaseCheckpointer, view: ThreadView, sources: Collection[Source]
) -> bool:
    """Return whether a thread holds one of the messages.

    In a fork of its thread, a message is recognised only by a unique id. If the newest state of
    its own thread has no such message, earlier states are read.

    Raises:
        CheckpointError: A damaged thread.
    """
    own = {name for thread_id, name in sources if thread_id == view.thread_id}
    foreign = {name for _, name in sources if is_unique(name)}
    if _ids(view.messages) & (own | foreign):
        return True
    if any(name.startswith("#") for name in own):
        # A number counts from the beginning, which may be trimmed: assume that it is there.
        return True
    return bool(own) and await _held_before(checkpointer, view.thread_id, own)


async def _held_before(checkpointer: BaseCheckpointer, thread_id: str, ids: set[str]) -> bool:
    async for info in _all_checkpoints(checkpointer, thread_id):
        state = await checkpointer.load(thread_id, info.checkpoint_id)
        if _ids(_messages_in(state)) & ids:
            return True
    return False


def _ids(messages: Sequence[Any]) -> set[Any]:
    found = (_part(message, "id") for message in messages)
    return {name for name in found if isinstance(name, str)}


async def roots_of(checkpointer: BaseCheckpointer, view: ThreadView) -> set[str]:
    """Return the roots of a thread's states, which the names of their summaries contain.

    Nearly always all states have the same root. All states are read if those of the oldest and
    the newest one differ; of a damaged thread, all that are readable.
    """
    oldest = await _root_at(checkpointer, view.thread_id, view.oldest)
    roots = {_root(view.messages), oldest} - {None}
    if len(roots) > 1 or not view.is_readable:
        with suppress(CheckpointError):
            async for info in _all_checkpoints(checkpointer, view.thread_id):
                roots.add(await _root_at(checkpointer, view.thread_id, info.checkpoint_id))
    return {root for root in roots if root is not None}


async def _root_at(
    checkpointer: BaseCheckpointer, thread_id: str, checkpoint_id: str | None
) -> str | None:
    try:
        state = await checkpointer.load(thread_id, checkpoint_id)
    except CheckpointError:
        return None
    return _root(_messages_in(state))


def _root(messages: Sequence[Any]) -> str | None:
    """Return the root; `None` for messages that a `SummarizingManager` could not have seen."""
    try:
        return root_digest(map(_as_message, messages))
    except (ValidationError, TypeError, AttributeError):
        return None


def _as_message(document: Any) -> Any:
    return Message.from_checkpoint(document) if isinstance(document, dict) else document
