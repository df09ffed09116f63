"""LangGraph's values as trees of bytes, and their form in a document; pure.

The saver's serializer converts a value to typed bytes. A list is converted element by element, and
so is a dict that holds messages: so a delta of the checkpoint holds only what is new. A document
holds each of the bytes once, in its entry `t`, under a number that stands for them elsewhere.

| tree | in a document | meaning |
|---|---|---|
| bytes | a number in `t`, or short text | bytes of the type `msgpack` |
| `None` | `null` | no bytes, of the type `null` |
| `[type, bytes]` | `[type, number or text]` | bytes of another type |
| `{"l": [...]}` | the same | a list, each element one of the three above |
| `{"d": [...]}` | the same | a dict, its keys and values in turn |
| `{"s": ...}` | the same | a snapshot of a `DeltaChannel`, around its value |

In text, each byte is the Latin-1 character of its number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Final, TypeAlias, cast

import ormsgpack
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol

from locus_memory.errors import CheckpointCorruptError
from locus_memory.integrations.langgraph.checkpoints.messages import packed
from locus_memory.integrations.langgraph.checkpoints.serializer import (
    DeltaSnapshot,
    StrictSerializer,
)

__all__ = [
    "Leaves",
    "Tree",
    "decode_value",
    "encode_leaf",
    "encode_value",
    "has_messages",
    "unfold",
]

Tree: TypeAlias = Any

_SHORT: Final = 24
"""Bytes that take no more space where they are used than a number does."""

_PARTED: Final = (list, dict)
_NIL: Final = ormsgpack.packb(None)
_ARRAY, _MAP = b"\xdd", b"\xdf"
"""MessagePack's first byte of a list or a dict; its length follows, in four bytes."""
_SAMPLE: Final = 8
_DEPTH: Final = 3


def encode_value(serde: SerializerProtocol, value: Any) -> Tree:
    """Return a value as a tree."""
    if type(value) is list:
        return {"l": [encode_leaf(serde, element) for element in value]}
    if type(value) is DeltaSnapshot:
        return {"s": encode_value(serde, value.value)}
    if not has_messages(value):
        return encode_leaf(serde, value)
    parts: list[Tree] = []
    for key, each in cast("dict[str, Any]", value).items():
        encode = encode_value if type(each) in _PARTED and has_messages(each) else encode_leaf
        parts += (key, encode(serde, each))
    return {"d": parts}


def has_messages(value: Any, depth: int = _DEPTH) -> bool:
    """Whether a list, or a dict whose keys are strings, begins with messages."""
    if type(value) is list:
        return isinstance(next(iter(value), None), BaseMessage)
    if type(value) is not dict or not depth or any(type(key) is not str for key in value):
        return False
    first = islice(value.values(), _SAMPLE)
    return any(isinstance(each, BaseMessage) or has_messages(each, depth - 1) for each in first)


def encode_leaf(serde: SerializerProtocol, value: Any) -> Tree:
    """Return a value that is not split into parts as a tree."""
    if isinstance(serde, StrictSerializer):
        plain = packed(value)
        if plain is not None:
            return plain
        kind, data = serde.dumps_other(value)
    else:
        kind, data = serde.dumps_typed(value)
    if kind == "null" and not data:
        return None
    # LangGraph's serializer returns a `bytearray` unchanged.
    data = bytes(data)
    return data if kind == "msgpack" else [kind, data]


def decode_value(serde: SerializerProtocol, tree: Tree) -> Any:
    """Return the value that `encode_value` wrote, as the serializer restores it.

    Raises:
        NotImplementedError: The serializer does not know the type of the bytes.
    """
    # The library's own serializer gives MessagePack, of which a list is the bytes of its elements.
    whole = _joined(tree) if isinstance(serde, StrictSerializer) else None
    if whole is not None:
        return serde.loads_typed(("msgpack", whole))
    if not isinstance(tree, dict):
        leaf: Any = ("null", b"") if tree is None else ("msgpack", tree)
        kind, data = tree if isinstance(tree, list) else leaf
        return serde.loads_typed((kind, data))
    ((form, parts),) = cast("dict[str, Any]", tree).items()
    if form == "s":
        return DeltaSnapshot(decode_value(serde, parts))
    if form == "d":
        values = [decode_value(serde, each) for each in parts[1::2]]
        return dict(zip(parts[::2], values, strict=True))
    return [decode_value(serde, each) for each in parts]


def _joined(tree: Tree) -> bytes | None:
    """Return a tree as one MessagePack; `None` if it has bytes of another type, or a snapshot."""
    if type(tree) is bytes:
        return tree
    if tree is None:
        return _NIL
    if type(tree) is not dict or "s" in tree:
        return None
    ((form, parts),) = cast("dict[str, Any]", tree).items()
    first = _ARRAY + len(parts).to_bytes(4, "big")
    if form == "d":
        first = _MAP + (len(parts) // 2).to_bytes(4, "big")
        keys = map(ormsgpack.packb, parts[::2])
        parts = [each for pair in zip(keys, parts[1::2], strict=True) for each in pair]
    found = [first]
    for each in parts:
        part = each if type(each) is bytes else _joined(each)
        if part is None:
            return None
        found.append(part)
    return b"".join(found)


class Leaves:
    """The numbers of the bytes of a document.

    Args:
        known: The numbers in an earlier document; the same bytes keep theirs.

    Attributes:
        numbers: The number of all bytes that were folded.
    """

    def __init__(self, known: Mapping[bytes, int]) -> None:
        self._known = known
        self._next = 1 + max(known.values(), default=0)
        self.numbers: dict[bytes, int] = {}

    def fold(self, tree: Tree) -> Any:
        """Return the form of a tree in a document, and number its bytes."""
        if type(tree) is bytes:
            return self._number(tree) if len(tree) > _SHORT else tree.decode("latin-1")
        if type(tree) is list:
            return [
                self._number(each)
                if type(each) is bytes and len(each) > _SHORT
                else self.fold(each)
                for each in tree
            ]
        if type(tree) is dict:
            return {form: self.fold(parts) for form, parts in cast("dict[str, Any]", tree).items()}
        return tree

    def _number(self, data: bytes) -> int:
        number = self.numbers.get(data) or self._known.get(data)
        if number is None:
            number, self._next = self._next, self._next + 1
        self.numbers[data] = number
        return number

    def held(self) -> dict[str, bytes]:
        """Return the entry `t` of the document."""
        return {str(number): data for data, number in self.numbers.items()}


def unfold(part: Any, held: Mapping[Any, bytes]) -> Tree:
    """Return the tree that `Leaves.fold` took apart.

    Raises:
        CheckpointCorruptError: It is not the form of a tree.
    """
    try:
        return _unfolded(part, held)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CheckpointCorruptError("", None, "a value of it has an unknown form") from error


def _unfolded(part: Any, held: Mapping[Any, bytes]) -> Tree:
    if type(part) is int:
        return held[part]
    if type(part) is str:
        return part.encode("latin-1")
    if type(part) is list:
        kind, data = part
        return [kind, _unfolded(data, held)]
    if part is None:
        return None
    ((form, parts),) = part.items()
    return {form: _FORMS[form](parts, held)}


def _unfolded_dict(parts: list[Any], held: Mapping[Any, bytes]) -> list[Tree]:
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return [each for key, value in pairs for each in (key, _unfolded(value, held))]


_FORMS: Final[Mapping[str, Callable[[Any, Mapping[Any, bytes]], Tree]]] = {
    "s": _unfolded,
    "d": _unfolded_dict,
    "l": lambda parts, held: [_unfolded(each, held) for each in parts],
}
