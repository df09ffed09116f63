"""A conversation as groups of messages that only make sense together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from locus_memory.conversation.roles import is_documents_block, is_memory_block, role_of

__all__ = ["Group", "split_groups"]


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
        first = self.messages[0]
        if self.role == "system":
            return preserve_system or is_memory_block(first) or is_documents_block(first)
        return len(self.messages) == 1 and is_memory_block(first)


def split_groups(messages: Sequence[Any]) -> tuple[list[Group], bool]:
    """Split a conversation into groups, in order; together they hold every message once.

    Only results that directly follow their call's message join its group: call `repair` first
    if there may be other results.

    Returns:
        The groups, and whether each call in the conversation has its own id and result. Both take
        one pass, since it runs at every step of an agent; `validate` names the faults.
    """
    groups: list[Group] = []
    is_sound = True
    seen: set[str | None] = set()
    end = 0
    while (start := end) < len(messages):
        role = role_of(messages[start])
        end = start + 1
        calls = messages[start].tool_calls if role == "assistant" else None
        if calls:
            ids = {call.id for call in calls}
            end = _end_of_results(messages, end, ids)
            answered = {each.tool_call_id for each in messages[start + 1 : end]}
            is_own = all(ids) and seen.isdisjoint(ids) and answered == ids
            is_sound &= is_own and end - start - 1 == len(ids) == len(calls)
            seen |= ids
        groups.append(Group(start, role, tuple(messages[start:end])))
        is_sound &= role != "tool"
    return groups, is_sound


def _end_of_results(messages: Sequence[Any], place: int, ids: set[str | None]) -> int:
    """Return the end of the results of calls that begin at a place."""
    while (
        place < len(messages)
        and role_of(messages[place]) == "tool"
        and messages[place].tool_call_id in ids
    ):
        place += 1
    return place
