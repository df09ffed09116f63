"""A conversation as groups of messages that only make sense together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

__all__ = ["Group", "split_groups"]


class Group(NamedTuple):
    """One message, or an assistant message with its tool calls and all their results.

    Attributes:
        start: Where its first message stands in the conversation.
        messages: The messages, in order; never empty.
    """

    start: int
    messages: tuple[Any, ...]

    @property
    def is_system(self) -> bool:
        """Whether it is a system message."""
        return bool(self.messages[0].role == "system")

    @property
    def is_user(self) -> bool:
        """Whether it is a user message."""
        return bool(self.messages[0].role == "user")


def split_groups(messages: Iterable[Any]) -> list[Group]:
    """Split a conversation into groups, in order; together they hold every message once.

    Only results that directly follow their call's message join its group: `repair` first, if
    there may be others.
    """
    groups: list[Group] = []
    gathered: list[Any] = []
    ids: set[str] = set()
    start = 0
    for index, message in enumerate(messages):
        if message.role == "tool" and message.tool_call_id in ids:
            gathered.append(message)
            continue
        if gathered:
            groups.append(Group(start, tuple(gathered)))
        start, gathered, ids = index, [message], _call_ids(message)
    if gathered:
        groups.append(Group(start, tuple(gathered)))
    return groups


def _call_ids(message: Any) -> set[str]:
    calls: Sequence[Any] | None = message.tool_calls
    return {call.id for call in calls} if calls and message.role == "assistant" else set()
