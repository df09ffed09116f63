"""What threads say of themselves: whose they are, what they hold, what was made of them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from locus_memory.checkpoint.base import BaseCheckpointer
from locus_memory.conversation.faults import mend
from locus_memory.conversation.memo import MessageMemo
from locus_memory.conversation.summary_thread import message_digest, read_thread
from locus_memory.errors import CheckpointError
from locus_memory.messages import Message

__all__ = ["Source", "ThreadView", "all_threads", "holds", "summary_keys", "view_thread"]

_PAGE: Final = 500

_UNIQUE: Final = re.compile(r"[0-9a-f]{32}")
"""An id that no other message in the world has, as an agent gives them."""

Source = tuple[str | None, str]
"""A message: its thread and its id; `#N` is the Nth of the conversation."""


@dataclass(frozen=True, slots=True)
class ThreadView:
    """What one look at a thread tells.

    Attributes:
        thread_id: The thread.
        checkpoints: How many it has.
        users: Whoever its checkpoints or its newest state name as `user_id`.
        messages: Those of the newest state, as they were saved or loaded.
        is_readable: Whether its records could be read.
    """

    thread_id: str
    checkpoints: int
    users: frozenset[str]
    messages: Sequence[Any]
    is_readable: bool


async def all_threads(checkpointer: BaseCheckpointer) -> AsyncIterator[ThreadView]:
    """Yield every thread, however many."""
    after: str | None = None
    while names := await checkpointer.list_threads(_PAGE, after=after):
        for name in names:
            yield await view_thread(checkpointer, name)
        after = names[-1]


async def view_thread(checkpointer: BaseCheckpointer, thread_id: str) -> ThreadView:
    """Look at a thread; of one that is damaged, only what can be read is told."""
    users: set[str] = set()
    count, messages, is_readable = 0, (), True
    try:
        async for metadata in _all_metadata(checkpointer, thread_id):
            count += 1
            users |= _user_in(metadata)
        state = await checkpointer.load(thread_id)
        users |= _user_in(_part(state, "metadata"))
        messages = _part(state, "messages") or ()
    except CheckpointError:
        is_readable = False
    return ThreadView(thread_id, count, frozenset(users), messages, is_readable)


async def _all_metadata(
    checkpointer: BaseCheckpointer, thread_id: str
) -> AsyncIterator[dict[str, Any]]:
    before: str | None = None
    while page := await checkpointer.list_with_metadata(thread_id, _PAGE, before=before):
        for info in page:
            yield info.metadata
        before = page[-1].checkpoint_id


def _user_in(metadata: Any) -> set[str]:
    user = metadata.get("user_id") if isinstance(metadata, Mapping) else None
    return {user} if isinstance(user, str) else set()


def _part(holder: Any, name: str) -> Any:
    """Return a part of a state or a message, whether it is a dict or an object."""
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


async def holds(
    checkpointer: BaseCheckpointer, view: ThreadView, sources: Collection[Source]
) -> bool:
    """Whether a thread holds one of the messages.

    In another thread than its own, a fork, a message is recognised only by an id that is
    unique. Where the newest state of its own thread has none, earlier ones are looked at.

    Raises:
        CheckpointError: A damaged thread.
    """
    own = {name for thread_id, name in sources if thread_id == view.thread_id}
    foreign = {name for _, name in sources if _UNIQUE.fullmatch(name)}
    if _ids(view.messages) & (own | foreign):
        return True
    if any(name.startswith("#") for name in own):
        # Counted from the beginning, which may be trimmed by now: whether it is there is open.
        return True
    return bool(own) and await _held_before(checkpointer, view.thread_id, own)


async def _held_before(checkpointer: BaseCheckpointer, thread_id: str, ids: set[str]) -> bool:
    before: str | None = None
    while page := await checkpointer.list_with_metadata(thread_id, _PAGE, before=before):
        for info in page:
            state = await checkpointer.load(thread_id, info.checkpoint_id)
            if _ids(_part(state, "messages") or ()) & ids:
                return True
        before = page[-1].checkpoint_id
    return False


def _ids(messages: Sequence[Any]) -> set[Any]:
    found = (_part(message, "id") for message in messages)
    return {name for name in found if isinstance(name, str)}


def summary_keys(messages: Sequence[Any]) -> set[str]:
    """Return the keys under which rolling summaries of a conversation's beginnings may be.

    None for messages that a `SummarizingManager` could not have seen.
    """
    try:
        read = [_as_message(each) for each in messages]
    except (ValidationError, TypeError):
        return set()
    mended, _ = mend(read)
    return {key for pinned in (True, False) for key in _digests(mended, preserve_system=pinned)}


def _digests(messages: Sequence[Any], *, preserve_system: bool) -> Iterator[str]:
    if not messages:
        return
    thread = read_thread(messages, MessageMemo(message_digest), preserve_system=preserve_system)
    for _, digest in thread.digests_at(thread.bounds):
        yield digest


def _as_message(document: Any) -> Any:
    return Message.from_checkpoint(document) if isinstance(document, dict) else document
