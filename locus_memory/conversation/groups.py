"""A conversation as groups of messages that only make sense together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

__all__ = ["Group", "split_groups"]


class Group(NamedTuple):
    """One message, or an assistant message with its tool calls and all their results.

    Attributes:
        start: Where its first message stands in the conversation.
        role: Who speaks first.
        messages: The messages, in order; never empty.
    """

    start: int
    role: str
    messages: tuple[Any, ...]


def split_groups(messages: Iterable[Any]) -> list[Group]:
    """Split a conversation into groups, in order; together they hold every message once.

    Only results that directly follow their call's message join its group: `repair` first, if
    there may be others.
    """
    listed = list(messages)
    groups: list[Group] = []
    end = 0
    for index, message in enumerate(listed):
        if index < end:
            continue
        role = message.role
        end = index + 1
        if role == "assistant" and message.tool_calls:
            end = _end_of_results(listed, end, {call.id for call in message.tool_calls})
        groups.append(Group(index, role, tuple(listed[index:end])))
    return groups


def _end_of_results(messages: Sequence[Any], start: int, ids: set[str]) -> int:
    end = start
    while (
        end < len(messages) and messages[end].role == "tool" and messages[end].tool_call_id in ids
    ):
        end += 1
    return end
