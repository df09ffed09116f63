"""What the saver remembers of the checkpoints it saw last, so that it encodes little twice.

LangGraph saves the whole state at each step. A channel that did not change, and an element of
a list that was there before, are known again and keep their encoding. An object may have been
changed in place, though: so the last elements of a list, and all that a task wrote since, are
encoded anew.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol

from locus_memory.integrations.langgraph_texts import Pool
from locus_memory.integrations.langgraph_values import encode_leaf, encode_value, list_of

__all__ = ["ALWAYS_ENCODED", "Bounded", "Known", "KnownCache", "encode_channels"]

ALWAYS_ENCODED: Final = 16
"""How many of a list's last elements are never taken for unchanged."""

_ELEMENT = 1024

_CONSTANT = (str, int, float, bool, bytes, type(None))


@dataclass(slots=True, eq=False)
class Known:
    """A checkpoint that was saved or loaded here.

    Attributes:
        checkpoint_id: LangGraph's; empty if only `greatest` is known.
        greatest: The greatest checkpoint id there was in the namespace; empty for none, `None`
            if nobody looked.
        is_delta: Whether the graph has delta channels, so that its saves wait for writes.
        values: Each channel's value, encoded, its long texts in the pool.
        pool: The long texts.
        elements: The elements of each channel that is a list, beside their encodings.
        indexes: Which writes of each task are stored already, as far as it is known.
        weight: About how many bytes all this takes.
    """

    checkpoint_id: str
    greatest: str | None
    is_delta: bool = False
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    pool: Pool = field(default_factory=Pool)
    elements: Mapping[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    indexes: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    weight: int = field(init=False)
    _written: dict[int, Any] = field(default_factory=dict[int, Any])
    _rewritten: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        self.weight = 1024 + self.pool.weight + sum(map(_weight, self.values.values()))

    def saw(self, writes: Sequence[tuple[str, Any]]) -> None:
        """Take note of objects that a task wrote, which it may have changed."""
        for channel, value in writes:
            if type(value) is list:
                self._written.update((id(element), element) for element in value)
            elif isinstance(value, BaseMessage):
                self._written[id(value)] = value
            elif not isinstance(value, _CONSTANT):
                # Whatever is inside may be an element, and have been changed.
                self._rewritten.add(channel)

    def encodings(self, channel: str) -> dict[int, Any]:
        """Return the encodings of a channel's elements that need not be made again, by `id`."""
        elements = self.elements.get(channel)
        if elements is None or channel in self._rewritten:
            return {}
        encoded = list_of(self.values[channel]) or ()
        known = dict(zip(map(id, elements), encoded, strict=True))
        for key in self._written:
            known.pop(key, None)
        return known


class _Weighed(Protocol):
    @property
    def weight(self) -> int: ...


_Value = TypeVar("_Value", bound=_Weighed)


class Bounded(Generic[_Value]):
    """What is known of the threads of ours used last, bounded by number and by bytes.

    Safe to share among event loops in several threads.
    """

    def __init__(self, entries: int, max_bytes: int) -> None:
        self._entries = entries
        self._max_bytes = max_bytes
        self._bytes = 0
        self._known: OrderedDict[str, tuple[_Value, int]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._known)

    def get(self, name: str) -> _Value | None:
        """Return what is known of a thread of ours."""
        with self._lock:
            if name not in self._known:
                return None
            self._known.move_to_end(name)
            return self._known[name][0]

    def put(self, name: str, known: _Value) -> None:
        """Remember this of a thread of ours, and forget the least used beyond the bounds."""
        weight = known.weight
        with self._lock:
            self._forget(name)
            self._known[name] = known, weight
            self._bytes += weight
            while len(self._known) > self._entries or self._bytes > self._max_bytes:
                self._forget(next(iter(self._known)))

    def discard(self, name: str) -> None:
        """Forget a thread of ours."""
        with self._lock:
            self._forget(name)

    def _forget(self, name: str) -> None:
        if name in self._known:
            self._bytes -= self._known.pop(name)[1]


class KnownCache(Bounded[Known]):
    """What is known of the last checkpoint of each namespace."""

    def at(self, name: str, checkpoint_id: str | None) -> Known | None:
        """Return what is known of one checkpoint."""
        known = self.get(name)
        return known if known is not None and known.checkpoint_id == checkpoint_id else None


def _weight(encoded: Any) -> int:
    """Return about how many bytes a value takes, its long texts apart."""
    elements = list_of(encoded)
    if elements is None:
        return len(encoded) if isinstance(encoded, str) else _ELEMENT
    return _ELEMENT * len(elements)


def encode_channels(
    serde: SerializerProtocol,
    channels: Mapping[str, Any],
    changed: Mapping[str, Any],
    parent: Known | None,
    pool: Pool,
) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Return each channel's value encoded, and the elements of those that are lists.

    Args:
        serde: What turns values to bytes.
        channels: The values.
        changed: The channels that may differ from the parent's.
        parent: What is known of the parent, whose pool it is then.
        pool: Where the long texts go.
    """
    values: dict[str, Any] = {}
    elements: dict[str, list[Any]] = {}
    for channel, value in channels.items():
        if parent is not None and channel not in changed and channel in parent.values:
            values[channel] = parent.values[channel]
            if channel in parent.elements:
                elements[channel] = parent.elements[channel]
        elif type(value) is list:
            elements[channel] = list(value)
            known = {} if parent is None else parent.encodings(channel)
            encode = partial(encode_leaf, serde, pool=pool)
            values[channel] = {"l": _encode_elements(elements[channel], known, encode)}
        else:
            values[channel] = encode_value(serde, value, pool)
    return values, elements


def _encode_elements(
    elements: list[Any], known: Mapping[int, Any], encode: Callable[[Any], Any]
) -> list[Any]:
    old = max(0, len(elements) - ALWAYS_ENCODED)
    encoded: list[Any] = []
    for element in elements[:old]:
        before = known.get(id(element))
        # What is encoded as `None` is as quickly encoded again.
        encoded.append(encode(element) if before is None else before)
    encoded += map(encode, elements[old:])
    return encoded
