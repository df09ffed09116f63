"""The source messages of what is erased, and the turns and episodes that tell of them; pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from locus_memory.memory.layers.episodes import Episode
from locus_memory.memory.models import Memory
from locus_memory.memory.validity import said_at
from locus_memory.store.item import StoreItem

__all__ = ["Sources"]

_UNIQUE: Final = re.compile(r"[0-9a-f]{32}")
"""The form of a globally unique message id, as an agent generates it."""

_NUMBER: Final = re.compile(r"#(\d{1,15})")

_Source = tuple[str | None, str]
"""A message: its thread and its id; `#N` is the Nth of the conversation."""


class Sources:
    """The source messages of memories.

    A message with a globally unique id is recognised in a fork of its thread as well. The
    transcript tells the number of a message with an id. Without it, the episodes of the thread
    go that name the message or tell of the moment of the statement; without a moment, all of them.
    """

    def __init__(self) -> None:
        self._unique: set[str] = set()
        self._moments: dict[_Source, set[str]] = {}
        self._numbers: dict[str | None, set[int]] = {}
        self._placed: set[tuple[str | None, object]] = set()

    def __bool__(self) -> bool:
        return bool(self._moments)

    def add(self, thread: str | None, name: str, *moments: str) -> None:
        """Add a message.

        Args:
            thread: Its thread.
            name: Its id, or `#N` for the Nth of the thread.
            moments: The moments of statements that were made from it.
        """
        self._moments.setdefault((thread, name), set()).update(moments)
        if _UNIQUE.fullmatch(name):
            self._unique.add(name)
        if number := _NUMBER.fullmatch(name):
            self._place(thread, name, int(number[1]))

    def add_memory(self, memory: Memory) -> None:
        """Add the messages of a version of a memory."""
        thread, ids = map(memory.metadata.get, ("thread_id", "message_ids"))
        names = [name for name in ids if isinstance(name, str)] if isinstance(ids, list) else []
        # If a memory names only its thread, any message of it may be the source.
        for name in names or ["#"]:
            moments = filter(None, [said_at(memory)])
            self.add(thread if isinstance(thread, str) else None, name, *moments)

    def are_of(self, thread: str, ids: Collection[str]) -> bool:
        """Return whether a message is of a thread, or of one whose fork it is.

        Args:
            thread: The thread.
            ids: The ids of its messages.
        """
        return any(own == thread for own, _ in self._moments) or not self._unique.isdisjoint(ids)

    def has(self, thread: str | None, *names: object) -> bool:
        """Return whether a message is a source, or a copy of one in a fork of its thread.

        Args:
            thread: The thread of the message.
            names: Its id, and `#N` for the Nth of the thread.
        """
        known = [name for name in names if isinstance(name, str)]
        return any((thread, name) in self._moments or name in self._unique for name in known)

    def has_turn(self, turn: StoreItem) -> bool:
        """Return whether a recorded turn is a source; if so, its number is known from now on."""
        thread, number = turn.namespace[-1], turn.metadata.get("number")
        names = (turn.metadata.get("turn"), f"#{number}")
        if not self.has(thread, *names):
            return False
        if isinstance(number, int):
            for name in names:
                self._place(thread, name, number)
        return True

    def are_in(self, episode: Episode) -> bool:
        """Return whether an episode tells of a source message, or may do so."""
        return (
            any(
                self.has(each.thread or episode.session_id, *each.message_ids)
                for each in episode.notes
            )
            or any(
                first <= number <= last
                for thread, first, last in episode.all_turns
                for number in self._numbers.get(thread, ())
            )
            or any(
                _may_tell(episode, thread, moments)
                for (thread, name), moments in self._moments.items()
                if (thread, name) not in self._placed
            )
        )

    def _place(self, thread: str | None, name: object, number: int) -> None:
        self._numbers.setdefault(thread, set()).add(number)
        self._placed.add((thread, name))


def _may_tell(episode: Episode, thread: str | None, moments: Collection[str]) -> bool:
    """Return whether an episode may tell of a message of a thread whose number is unknown."""
    if thread != episode.session_id:
        # The moments of a session that was merged into the episode are unknown.
        return any(thread == session for session, _, _ in episode.joined_turns)
    return not moments or any(episode.started_at <= each <= episode.ended_at for each in moments)
