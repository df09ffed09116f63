"""A bounded memory of what was computed for a message."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

__all__ = ["MessageMemo"]

_Value = TypeVar("_Value")

_CAPACITY = 8_192


class _Entry(NamedTuple, Generic[_Value]):
    # Holding the message keeps its `id` from being given to another.
    message: Any
    content: Any
    tool_calls: Any
    value: _Value


class MessageMemo(Generic[_Value]):
    """Computes a value once a message, as long as the message is in use.

    A message is known by identity. One that is not frozen may get another content or other tool
    calls, and is then computed again.
    """

    def __init__(self, compute: Callable[[Any], _Value], capacity: int = _CAPACITY) -> None:
        self._compute = compute
        self._capacity = capacity
        self._entries: OrderedDict[int, _Entry[_Value]] = OrderedDict()

    def values(self, messages: Sequence[Any]) -> list[_Value]:
        """Return the value of each message."""
        found = [self._value(message) for message in messages]
        # Never below one conversation, or a long one would push itself out each time.
        while len(self._entries) > max(self._capacity, len(messages)):
            self._entries.popitem(last=False)
        return found

    def _value(self, message: Any) -> _Value:
        key = id(message)
        entry = self._entries.get(key)
        if (
            entry is not None
            and entry.content is message.content
            and entry.tool_calls is message.tool_calls
        ):
            self._entries.move_to_end(key)
            return entry.value
        value = self._compute(message)
        self._entries[key] = _Entry(message, message.content, message.tool_calls, value)
        self._entries.move_to_end(key)
        return value
