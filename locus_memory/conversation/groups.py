"""A conversation as groups of messages that only make sense together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from locus_memory.conversation.roles import is_documents_block, is_memory_block, role_of

__all__ = ["Group", "split_groups", "split_sound"]


class Group(NamedTuple):
    """One message, or an assistant message with its tool calls and all their results.

    Attributes:
        start: The index of its first message in the conversation.
        role: The role of its first message.
        messages: The messages, in order; never empty.
    """

    start: int
    role: str
    messages: tuple[Any, ...]

    def stays(self, *, preserve_system: bool) -> bool:
        """Whether it is always shown: a preserved system message, or an injected block."""
        if self.role == "system":
            return preserve_system or any(map(_is_injected, self.messages))
        return len(self.messages) == 1 and is_memory_block(self.messages[0])


def _is_injected(message: Any) -> bool:
    return is_memory_block(message) or is_documents_block(message)


def split_groups(messages: Iterable[Any]) -> list[Group]:
    """Split a conversation into groups, in order; together they hold every message once.

    Only results that directly follow their call's message join its group: call `repair` first
    if there may be other results.
    """
    return _Splitter(list(messages)).groups


def split_sound(messages: Sequence[Any]) -> list[Group] | None:
    """Return the groups of a conversation, or `None` if there is any fault in it.

    It takes one pass, since it runs at every step of an agent; `validate` names the faults.
    """
    splitter = _Splitter(messages)
    return splitter.groups if splitter.is_sound else None


class _Splitter:
    """The groups of a conversation, and whether each call in it has its own id and result."""

    def __init__(self, messages: Sequence[Any]) -> None:
        self.groups: list[Group] = []
        self.is_sound = True
        self._messages = messages
        self._ids: set[str | None] = set()
        add = self.groups.append
        place, length = 0, len(messages)
        while place < length:
            message = messages[place]
            role = role_of(message)
            if role == "assistant" and message.tool_calls:
                end = self._end_of_results(place)
                add(Group(place, role, tuple(messages[place:end])))
                place = end
                continue
            if role == "tool":
                self.is_sound = False
            add(Group(place, role, (message,)))
            place += 1

    def _end_of_results(self, place: int) -> int:
        """Return the end of the results that follow the call at a place."""
        called = [call.id for call in self._messages[place].tool_calls]
        ids = set(called)
        end = place + 1
        while end < len(self._messages) and self._answers(self._messages[end], ids):
            end += 1
        answered = {message.tool_call_id for message in self._messages[place + 1 : end]}
        if not all(called) or len(ids) < len(called) or not ids.isdisjoint(self._ids):
            self.is_sound = False
        if answered != ids or end - place - 1 != len(ids):
            self.is_sound = False
        self._ids |= ids
        return end

    @staticmethod
    def _answers(message: Any, ids: set[str | None]) -> bool:
        return role_of(message) == "tool" and message.tool_call_id in ids
