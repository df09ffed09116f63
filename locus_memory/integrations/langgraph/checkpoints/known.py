"""The cache of the last checkpoints of the saver, so that few values are encoded twice.

LangGraph saves the whole state at each step. A value, or an element of a list, is recognised by its
whole content, and keeps its encoding. No object of the graph is cached, so one that was changed in
place counts as another.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

import ormsgpack
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from locus_memory.integrations.langgraph.checkpoints.serializer import StrictSerializer
from locus_memory.integrations.langgraph.checkpoints.texts import Pool
from locus_memory.integrations.langgraph.checkpoints.values import (
    DeltaSnapshot,
    encode_leaf,
    encode_value,
    list_of,
)

__all__ = ["Bounded", "Known", "KnownCache", "Print", "encode_channels", "prints_of"]

Print = tuple[Any, bytes]
"""The print of a value, its whole content: two values with one print have one encoding."""

_ELEMENT: Final = 1024

_serializer: Final = JsonPlusSerializer()
_MESSAGES: Final = BaseMessage.__module__.rpartition(".")[0] + "."
_ONLY_PLAIN: Final = (
    ormsgpack.OPT_NON_STR_KEYS
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_UUID
)


@dataclass(slots=True, eq=False)
class Known:
    """A checkpoint that was saved or loaded here.

    Attributes:
        checkpoint_id: LangGraph's id; empty if only `greatest` is known.
        greatest: The greatest checkpoint id in the namespace; empty: there is none; `None`:
            unknown.
        is_delta: Whether the graph has delta channels, so that its saves wait for writes.
        values: Each channel's encoded value, with its long texts in the pool.
        pool: The long texts.
        prints: The print of each channel's value; for a list, those of its elements.
        indexes: The stored writes of each task, as far as known.
        weight: About how many bytes all this takes.
    """

    checkpoint_id: str
    greatest: str | None
    is_delta: bool = False
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    pool: Pool = field(default_factory=Pool)
    prints: Mapping[str, Any] = field(default_factory=dict[str, Any])
    indexes: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    weight: int = field(init=False)

    def __post_init__(self) -> None:
        encoded = sum(map(_weight, self.values.values()))
        printed = sum(map(_print_weight, self.prints.values()))
        self.weight = 1024 + self.pool.weight + encoded + printed


class _Weighed(Protocol):
    @property
    def weight(self) -> int: ...


_Value = TypeVar("_Value", bound=_Weighed)


class Bounded(Generic[_Value]):
    """A cache for the last threads of the checkpointer, bounded by number and by bytes.

    Event loops in several threads may share it.
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
        """Return the cached value of a thread."""
        with self._lock:
            if name not in self._known:
                return None
            self._known.move_to_end(name)
            return self._known[name][0]

    def put(self, name: str, known: _Value) -> None:
        """Cache a value for a thread, and evict the least recently used beyond the bounds."""
        weight = known.weight
        with self._lock:
            self._forget(name)
            self._known[name] = known, weight
            self._bytes += weight
            while len(self._known) > self._entries or self._bytes > self._max_bytes:
                self._forget(next(iter(self._known)))

    def discard(self, name: str) -> None:
        """Drop a thread from the cache."""
        with self._lock:
            self._forget(name)

    def _forget(self, name: str) -> None:
        if name in self._known:
            self._bytes -= self._known.pop(name)[1]


class KnownCache(Bounded[Known]):
    """A cache of the last checkpoint of each namespace."""

    def at(self, name: str, checkpoint_id: str | None) -> Known | None:
        """Return the cached value of one checkpoint."""
        known = self.get(name)
        return known if known is not None and known.checkpoint_id == checkpoint_id else None


def _weight(encoded: Any) -> int:
    """Return about how many bytes a value takes, without its long texts."""
    elements = list_of(encoded)
    if elements is None:
        return len(encoded) if isinstance(encoded, str) else _ELEMENT
    return _ELEMENT * len(elements)


def _print_weight(printed: Any) -> int:
    prints: list[Print | None] = printed if isinstance(printed, list) else [printed]
    return sum(len(each[1]) for each in prints if each is not None)


def prints_of(value: Any) -> Any:
    """Return a value's print; for a list, those of its elements; `None`: there is none."""
    return list(map(_print, value)) if type(value) is list else _print(value)


def _print(value: Any) -> Print | None:
    kind: type = type(value)
    if isinstance(value, BaseMessage) and kind.__module__.startswith(_MESSAGES):
        # Ten times as fast as the serializer, and it handles nearly all values.
        fields = value.__dict__, value.__pydantic_extra__
        with suppress(ormsgpack.MsgpackEncodeError):
            return kind, ormsgpack.packb(fields, option=_ONLY_PLAIN)
    try:
        name, data = _serializer.dumps_typed(value)
    except Exception:  # noqa: BLE001 - the saver's serializer may know it, or raises the right error
        return None
    return name, bytes(data)


def encode_channels(
    serde: SerializerProtocol,
    channels: Mapping[str, Any],
    parent: Known | None,
    pool: Pool,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return each channel's value encoded, and their prints.

    Args:
        serde: Converts values to bytes.
        channels: The values.
        parent: The cached parent, which then shares the pool.
        pool: The pool of the long texts.
    """
    there = parent or Known("", None)
    values: dict[str, Any] = {}
    prints: dict[str, Any] = {}
    encode = partial(_encode_leaf, serde, pool)
    for channel, value in channels.items():
        printed = prints[channel] = prints_of(value)
        before, known = there.prints.get(channel), there.values.get(channel)
        if printed is not None and printed == before:
            values[channel] = known
        elif isinstance(printed, list):
            values[channel] = {"l": _encode_elements(value, printed, before, known, encode)}
        elif type(value) is DeltaSnapshot:
            values[channel] = encode_value(serde, value, pool)
        else:
            values[channel] = encode(value, printed)
    return values, prints


def _encode_leaf(serde: SerializerProtocol, pool: Pool, value: Any, printed: Print | None) -> Any:
    if type(serde) is StrictSerializer and printed is not None and isinstance(printed[0], str):
        # The print is what the serializer returns.
        return None if printed[0] == "null" else pool.leaf(*printed)
    return encode_leaf(serde, value, pool)


def _encode_elements(
    elements: Sequence[Any],
    prints: list[Print | None],
    before: Any,
    known: Any,
    encode: Callable[[Any, Print | None], Any],
) -> list[Any]:
    old = list_of(known) or ()
    printed: list[Print | None] = before if isinstance(before, list) else []  # pyright: ignore[reportUnknownVariableType]
    if prints[: len(printed)] == printed and None not in printed:
        # A list has nearly always only grown.
        start = len(printed)
        return [*old, *map(encode, elements[start:], prints[start:])]
    there: dict[Print | None, Any] = dict(zip(printed, old, strict=True))
    there.pop(None, None)
    return [
        there[of] if of in there else encode(element, of)
        for of, element in zip(prints, elements, strict=True)
    ]
