"""The cache of the last checkpoints of the saver, so that few values are encoded twice.

LangGraph saves the whole state at each step. A list or a dict of messages is recognised by its
whole content, and keeps its encoding. No object of the graph is cached, so one that was changed in
place counts as another.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Generic, Protocol, TypeVar

import ormsgpack
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol

from locus_memory.integrations.langgraph.checkpoints.values import (
    Tree,
    encode_value,
    has_messages,
)

__all__ = ["Bounded", "Known", "KnownCache", "encode_channels", "print_of"]

_MESSAGES: Final = BaseMessage.__module__.rpartition(".")[0] + "."
_ONLY_PLAIN: Final = (
    ormsgpack.OPT_NON_STR_KEYS
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_UUID
)
_HEADERS: Final = ((16, 1), (2**16, 3), (2**32, 5))
"""The bytes before the elements of a list or a dict in MessagePack, if it has fewer elements."""


_PARTED: Final = (list, dict)


@dataclass(slots=True, eq=False)
class Known:
    """A checkpoint that was saved or loaded here.

    Attributes:
        checkpoint_id: LangGraph's id; empty if only `greatest` is known.
        greatest: The greatest checkpoint id in the namespace; empty: there is none; `None`:
            unknown.
        is_delta: Whether the graph has delta channels, so that its saves wait for writes.
        values: Each channel's tree.
        prints: The prints of the channels that have one.
        numbers: The numbers of the bytes in its document.
        indexes: The stored writes of each task, as far as known.
    """

    checkpoint_id: str
    greatest: str | None
    is_delta: bool = False
    values: Mapping[str, Tree] = field(default_factory=dict[str, Tree])
    prints: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    numbers: Mapping[bytes, int] = field(default_factory=dict[bytes, int])
    indexes: dict[str, set[str]] = field(default_factory=dict[str, set[str]])

    @property
    def weight(self) -> int:
        """About how many bytes all this takes."""
        pieces = len(self.values) + len(self.numbers)
        held = sum(map(len, self.numbers)) + sum(map(len, self.prints.values()))
        return 1024 + 256 * pieces + held


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


def print_of(value: Any) -> bytes | None:
    """Return the print of a list, or of a dict of messages: its whole content.

    Two values with one print have one tree. The print of a list begins, after its header, with
    those of the elements. A value has none if it holds an object of another class, and in a few
    other cases.
    """
    if (type(value) is not list and not has_messages(value)) or _is_ambiguous(value):
        return None
    try:
        return ormsgpack.packb(value, default=_content, option=_ONLY_PLAIN)
    except ormsgpack.MsgpackEncodeError:
        return None


def _is_ambiguous(value: list[Any] | dict[str, Any]) -> bool:
    """Whether a part with a tree of its own is a `bytearray`, which in MessagePack is bytes."""
    if isinstance(value, list):
        return bytearray in set(map(type, value))
    parts = value.values()
    return bytearray in set(map(type, parts)) or any(
        _is_ambiguous(each) for each in parts if type(each) in _PARTED
    )


def _content(value: Any) -> ormsgpack.Ext:
    kind: type = type(value)
    if not isinstance(value, BaseMessage) or not kind.__module__.startswith(_MESSAGES):
        raise TypeError
    fields = kind.__module__, kind.__name__, value.__dict__, value.__pydantic_extra__
    return ormsgpack.Ext(0, ormsgpack.packb(fields, option=_ONLY_PLAIN))


def encode_channels(
    serde: SerializerProtocol, channels: Mapping[str, Any], known: Known | None
) -> tuple[dict[str, Tree], dict[str, bytes]]:
    """Return the tree of each channel's value, and the prints of those that have one.

    Args:
        serde: Converts values to bytes.
        channels: The values.
        known: The last checkpoint.
    """
    there = known or Known("", None)
    trees: dict[str, Tree] = {}
    prints: dict[str, bytes] = {}
    for channel, value in channels.items():
        printed = print_of(value)
        if printed is not None:
            prints[channel] = printed
        before, tree = there.prints.get(channel), there.values.get(channel)
        trees[channel] = (
            encode_value(serde, value)
            if printed is None or before is None
            else _encode_again(serde, value, printed, before, tree)
        )
    return trees, prints


def _encode_again(
    serde: SerializerProtocol, value: Any, printed: bytes, before: bytes, tree: Tree
) -> Tree:
    """Return the tree of a value, given the print and the tree of the last one."""
    if printed == before:
        return tree
    form = "l" if type(value) is list else "d"
    old = tree.get(form, []) if isinstance(tree, dict) else []
    count = len(old) if form == "l" else len(old) // 2
    has_grown = count <= len(value) and printed.startswith(
        before[_header(count) :], _header(len(value))
    )
    if has_grown and old:
        # Nearly always. But what was added to a dict may have another form.
        rest = encode_value(serde, _after(value, count))
        if isinstance(rest, dict) and form in rest:
            return {form: [*old, *rest[form]]}
    return encode_value(serde, value)


def _after(value: Any, count: int) -> Any:
    """Return the part of a list or a dict after its first elements."""
    return value[count:] if type(value) is list else dict(islice(value.items(), count, None))


def _header(elements: int) -> int:
    return next(size for bound, size in _HEADERS if elements < bound)
