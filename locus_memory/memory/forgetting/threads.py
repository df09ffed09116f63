"""The data of threads for an erasure: their users, their messages, and their summaries."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from locus_memory._internal.running.paging import paged
from locus_memory.checkpoint.base import BaseCheckpointer, CheckpointInfo
from locus_memory.conversation.summary.thread import root_digest
from locus_memory.errors import CheckpointError
from locus_memory.messages import Message

__all__ = ["ThreadView", "roots_of", "view_thread"]

_PAGE: Final = 500


@dataclass(frozen=True, slots=True)
class ThreadView:
    """The data of a thread that one read returns.

    Attributes:
        thread_id: The thread.
        checkpoints: How many checkpoints it has.
        users: The `user_id`s of its checkpoints and its newest state.
        message_ids: The ids of the messages of the newest state.
        oldest: The id of its oldest checkpoint, if that is readable.
        is_readable: Whether its records are readable.
    """

    thread_id: str
    checkpoints: int
    users: frozenset[str]
    message_ids: frozenset[str]
    oldest: str | None
    is_readable: bool


async def view_thread(checkpointer: BaseCheckpointer, thread_id: str) -> ThreadView:
    """Return the view of a thread; of a damaged thread, only the readable data."""
    users, ids = list[Any](), list[Any]()
    count, oldest, is_readable = 0, None, True
    try:
        async for info in _checkpoints(checkpointer, thread_id):
            count, oldest = count + 1, info.checkpoint_id
            users.append(_part(info.metadata, "user_id"))
        state = await checkpointer.load(thread_id)
        users.append(_part(_part(state, "metadata"), "user_id"))
        ids = [_part(message, "id") for message in _messages_in(state)]
    except CheckpointError:
        is_readable = False
    return ThreadView(thread_id, count, _names(users), _names(ids), oldest, is_readable)


def _checkpoints(checkpointer: BaseCheckpointer, thread_id: str) -> AsyncIterator[CheckpointInfo]:
    """Yield the metadata of each checkpoint of a thread, the newest first."""
    return paged(
        lambda before: checkpointer.list_with_metadata(thread_id, _PAGE, before=before),
        lambda info: info.checkpoint_id,
    )


def _part(holder: Any, name: str) -> Any:
    """Return a part of a state or a message, whether it is a dict or an object."""
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


def _messages_in(state: Any) -> Sequence[Any]:
    messages = _part(state, "messages")
    return messages if isinstance(messages, list | tuple) else ()


def _names(found: Sequence[Any]) -> frozenset[str]:
    return frozenset(each for each in found if isinstance(each, str))


async def roots_of(checkpointer: BaseCheckpointer, view: ThreadView) -> set[str]:
    """Return the roots of a thread's states, which the names of their summaries contain.

    Nearly always all states have the same root. All states are read if those of the oldest and
    the newest one differ; of a damaged thread, all that are readable.
    """
    ends = (None, view.oldest)
    roots = {await _root_at(checkpointer, view.thread_id, each) for each in ends}
    if len(roots - {None}) > 1 or not view.is_readable:
        with suppress(CheckpointError):
            async for info in _checkpoints(checkpointer, view.thread_id):
                roots.add(await _root_at(checkpointer, view.thread_id, info.checkpoint_id))
    return {root for root in roots if root is not None}


async def _root_at(
    checkpointer: BaseCheckpointer, thread_id: str, checkpoint_id: str | None
) -> str | None:
    """Return the root of a state; `None` if a `SummarizingManager` could not have seen it."""
    with suppress(CheckpointError, ValidationError, TypeError, AttributeError):
        state = await checkpointer.load(thread_id, checkpoint_id)
        return root_digest(
            Message.from_checkpoint(each) if isinstance(each, dict) else each
            for each in _messages_in(state)
        )
    return None
