"""The places of source messages in their threads, and the episodes that tell of them; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from locus_memory.memory.forgetting.threads import Source, is_unique
from locus_memory.memory.layers.episodes import Episode
from locus_memory.store.item import StoreItem

__all__ = ["Places"]


class Places:
    """The places of source messages: the numbers in their threads, or else the moments.

    Args:
        sources: The source messages, each with the moments of the statements made from it.
    """

    def __init__(self, sources: Mapping[Source, Collection[str]]) -> None:
        self._sources = sources
        self._unique = {name for _, name in sources if is_unique(name)}
        self._numbers: dict[str | None, set[int]] = {}
        self._left = dict(sources)
        for thread, name in sources:
            if name.startswith("#") and name[1:].isdecimal():
                self._put(thread, name, int(name[1:]))

    def has(self, thread: str | None, name: object) -> bool:
        """Return whether a message is a source, or a copy of one in a fork of its thread.

        Args:
            thread: The thread of the message.
            name: Its id, or `#N` for the Nth of the thread.
        """
        return isinstance(name, str) and ((thread, name) in self._sources or name in self._unique)

    def has_turn(self, thread: str, turn: StoreItem) -> bool:
        """Return whether a recorded turn is a source."""
        return any(self.has(thread, name) for name in _names(turn))

    def look_at(self, thread: str, turns: Iterable[StoreItem]) -> None:
        """Read the numbers of messages from the recorded turns of a thread."""
        for turn in turns:
            number = turn.metadata.get("number")
            if isinstance(number, int) and self.has_turn(thread, turn):
                for name in _names(turn):
                    self._put(thread, name, number)

    def are_in(self, episode: Episode) -> bool:
        """Return whether an episode tells of a source message, or may do so."""
        return any(
            any(first <= number <= last for number in self._numbers.get(session, ()))
            for session, first, last in episode.all_turns
        ) or any(_may_tell(episode, thread, said) for (thread, _), said in self._left.items())

    def _put(self, thread: str | None, name: str, number: int) -> None:
        self._numbers.setdefault(thread, set()).add(number)
        self._left.pop((thread, name), None)


def _may_tell(episode: Episode, thread: str | None, said: Collection[str]) -> bool:
    """Return whether an episode may tell of a message whose number is unknown.

    Args:
        episode: The episode.
        thread: The thread of the message.
        said: The moments of the statements made from it.
    """
    if thread != episode.session_id:
        # The moments of a session that was merged into the episode are unknown.
        return any(thread == session for session, _, _ in episode.joined_turns)
    return not said or any(episode.started_at <= each <= episode.ended_at for each in said)


def _names(turn: StoreItem) -> list[str]:
    metadata: Mapping[str, Any] = turn.metadata
    named = metadata.get("turn")
    own = [named] if isinstance(named, str) else []
    return [*own, f"#{metadata.get('number')}"]
