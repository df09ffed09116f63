"""The sources of memories: messages of threads that still exist."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from locus_memory.backends.base import checkpointer_of
from locus_memory.checkpoint.differences import messages_of
from locus_memory.errors import (
    BackendCorruptError,
    CheckpointError,
    EncryptionError,
    MissingDriverError,
)
from locus_memory.inspection.names import find_checkpoint, find_thread
from locus_memory.inspection.states import read_state

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend
    from locus_memory.memory.models import Memory

__all__ = ["UNREADABLE", "Sources", "is_users"]

_USER_ROLES: Final = ("user", "human")

UNREADABLE: Final = (BackendCorruptError, CheckpointError, EncryptionError, MissingDriverError)
"""The errors of what is there and cannot be shown: damaged, of another key, or of a package."""


def is_users(message: Mapping[str, Any]) -> bool:
    """Return whether a message of a state is the user's, as this library or LangChain says it."""
    return str(message.get("role") or message.get("type")) in _USER_ROLES


class Sources:
    """Finds the source messages of memories; each thread is loaded once.

    Args:
        backend: The backend with the threads; its states are plain dicts.
    """

    def __init__(self, backend: Backend) -> None:
        self._checkpointer = checkpointer_of(backend)
        self._threads: dict[str, list[dict[str, Any]]] = {}

    async def of(self, memory: Memory) -> list[dict[str, Any]]:
        """Return the source messages of a memory, with their places and texts if they exist."""
        thread_id, ids = (memory.metadata.get(name) for name in ("thread_id", "message_ids"))
        if not isinstance(thread_id, str):
            return []
        messages = await self.messages(thread_id)
        names = [name for name in ids if isinstance(name, str)] if isinstance(ids, list) else []
        return [_source(thread_id, name, messages) for name in names] or [
            {"thread_id": thread_id, "message_id": None, "place": None, "text": None}
        ]

    async def messages(self, thread_id: str) -> list[dict[str, Any]]:
        """Return the messages of a thread's newest state; empty: it is not there, or unreadable."""
        if thread_id not in self._threads:
            self._threads[thread_id] = await self._load(thread_id)
        return self._threads[thread_id]

    async def _load(self, thread_id: str) -> list[dict[str, Any]]:
        if self._checkpointer is None:
            return []
        try:
            name = await find_thread(self._checkpointer, thread_id)
            checkpoint_id = await find_checkpoint(self._checkpointer, name, None)
            state = await read_state(self._checkpointer, name, checkpoint_id)
        except UNREADABLE:
            # `show` reports the error of such a thread; here, its messages are just unavailable.
            return []
        return [each for each in messages_of(state)[0] if isinstance(each, dict)]


def _source(thread_id: str, name: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
    place = _place(name, messages)
    text = None if place is None else messages[place - 1].get("content")
    return {
        "thread_id": thread_id,
        "message_id": name,
        "place": place,
        "text": text if isinstance(text, str) else None,
    }


def _place(name: str, messages: list[dict[str, Any]]) -> int | None:
    """Return the place of a message, from 1; `#N` is the Nth that is not a system message."""
    for place, message in enumerate(messages, 1):
        if message.get("id") == name:
            return place
    said = [place for place, each in enumerate(messages, 1) if each.get("role") != "system"]
    number = int(name[1:]) if re.fullmatch(r"#[0-9]{1,9}", name) else 0
    return said[number - 1] if 0 < number <= len(said) else None
