"""A bounded memory of what was computed for a message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
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
        self._entries: dict[int, _Entry[_Value]] = {}
        self._lock = Lock()

    def values(self, messages: Sequence[Any]) -> list[_Value]:
        """Return the value of each message of a conversation."""
        found = [self._value(message) for message in messages]
        # Never below one conversation, or a long one would push itself out each time.
        self._shrink(max(self._capacity, len(messages)))
        return found

    def value(self, message: Any) -> _Value:
        """Return the value of a message."""
        found = self._value(message)
        self._shrink(self._capacity)
        return found

    def _value(self, message: Any) -> _Value:
        entry = self._entries.get(id(message))
        if (
            entry is not None
            and entry.content is message.content
            and entry.tool_calls is message.tool_calls
        ):
            return entry.value
        value = self._compute(message)
        entry = _Entry(message, message.content, message.tool_calls, value)
        with self._lock:
            self._entries[id(message)] = entry
        return value

    def _shrink(self, capacity: int) -> None:
        with self._lock:
            while len(self._entries) > capacity:
                del self._entries[next(iter(self._entries))]
