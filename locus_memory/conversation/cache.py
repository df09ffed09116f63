"""A bounded cache of values computed from messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import is_
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar

from locus_memory._internal.sameness import own_copy, same

__all__ = ["MessageCache"]

_Value = TypeVar("_Value")

_CAPACITY = 8_192


class _Seen(NamedTuple):
    """The parts of a message that a value may depend on."""

    fields: tuple[Any, ...]
    calls: tuple[Any, ...]
    arguments: list[Any]

    def is_same(self, other: _Seen) -> bool:
        # Equal calls may still differ in JSON, with `True` for 1.
        return (
            self.fields == other.fields
            and len(self.calls) == len(other.calls)
            and all(map(is_, self.calls, other.calls))
            and same(self.arguments, other.arguments)
        )

    def kept(self) -> _Seen:
        """Return it with a copy of the arguments, which the caller may change in place."""
        return self._replace(arguments=own_copy(self.arguments))


class _Entry(NamedTuple, Generic[_Value]):
    # A reference to the message prevents reuse of its `id`.
    message: Any
    seen: _Seen
    is_fixed: bool
    value: _Value


class MessageCache(Generic[_Value]):
    """Computes a value once per message, as long as the message is in use.

    A message is found by identity. The value is computed again if the arguments of its calls have
    changed or, for a class that is not frozen, if an attribute has changed. It is computed each
    time if the content or the calls may change in place: a content that is not text, or calls that
    are not frozen.
    """

    def __init__(self, compute: Callable[[Any], _Value], capacity: int = _CAPACITY) -> None:
        self._compute = compute
        self._capacity = capacity
        self._entries: dict[int, _Entry[_Value]] = {}
        self._lock = Lock()

    def values(self, messages: Sequence[Any]) -> list[_Value]:
        """Return the value of each message of a conversation."""
        found = [self._value(message) for message in messages]
        # Never below one conversation, or a long one would evict itself each time.
        self._shrink(max(self._capacity, len(messages)))
        return found

    def value(self, message: Any) -> _Value:
        """Return the value of a message."""
        found = self._value(message)
        self._shrink(self._capacity)
        return found

    def _value(self, message: Any) -> _Value:
        entry = self._entries.get(id(message))
        if entry is not None and entry.is_fixed:
            return entry.value
        seen = _seen(message)
        if seen is None:
            return self._compute(message)
        if entry is not None and entry.seen.is_same(seen):
            return entry.value
        value = self._compute(message)
        frozen = _is_frozen(type(message))  # type: ignore[arg-type] # a class is hashable
        with self._lock:
            is_fixed = frozen and not message.tool_calls
            self._entries[id(message)] = _Entry(message, seen.kept(), is_fixed, value)
        return value

    def _shrink(self, capacity: int) -> None:
        with self._lock:
            while len(self._entries) > capacity:
                del self._entries[next(iter(self._entries))]


def _seen(message: Any) -> _Seen | None:
    """Return the parts of a message, or `None` if they may change in place."""
    content, calls = message.content, message.tool_calls
    if not (content is None or isinstance(content, str)):
        return None
    if calls and not all(map(_is_frozen, map(type, calls))):
        return None
    name, call_id = getattr(message, "name", None), getattr(message, "tool_call_id", None)
    arguments = [getattr(call, "arguments", None) for call in calls or ()]
    return _Seen((message.role, content, name, call_id), tuple(calls or ()), arguments)


@lru_cache
def _is_frozen(kind: type) -> bool:
    """Whether it is a frozen pydantic model or dataclass; its content counts as read-only."""
    config = getattr(kind, "model_config", None) or {}
    parameters = getattr(kind, "__dataclass_params__", None)
    return bool(config.get("frozen") or getattr(parameters, "frozen", False))
