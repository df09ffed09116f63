"""Work on large states in pieces, so that no step blocks the event loop for long.

Copying, checking or parsing a million values takes a second. Even if another thread does it, no
other thread of the process runs meanwhile. So a large state is copied as bytes, which is the
fastest way, and the rest is done in another thread, a few thousand values at a time.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from json import JSONDecoder
from typing import Any, Final

import orjson

from locus_memory.errors import ValueNotSerializableError
from locus_memory.store.json_values import encode_json

__all__ = ["Frozen", "freeze", "is_large", "read_json"]

LARGE = 50_000
"""The number of values of a large state: about 10 ms on the event loop."""

_LISTED: Final = 0.15
"""The cost of comparing a value in a list, relative to one in an object."""

_PIECE = 10_000
"""About how many values are copied at a time."""

_RUN: Final = 1000
"""How many messages are checked at a time."""

_SAMPLE: Final = 8
"""How many values of the outermost dict are sampled; half as many at each level below."""

_DEPTH: Final = 32

_LONG = 4 * 2**20
"""The longest JSON that is parsed in one piece, in bytes."""


def is_large(document: dict[str, Any], *, compared: bool) -> bool:
    """Whether the work on a document would block the event loop; an estimate from samples.

    Args:
        document: The document.
        compared: Whether it is compared with the previous state, rather than written as a whole.
    """
    return _values(document, _LISTED if compared else 1.0) > LARGE


def _values(value: Any, listed: float, sample: int = _SAMPLE, depth: int = _DEPTH) -> float:
    """Return about how many values there are in a value, with a weight for those in lists."""
    if type(value) is dict:
        children, weight = list(islice(value.values(), sample)), 1.0
    elif type(value) is list:
        children, weight = value[:: max(1, len(value) // sample)], listed
        # A list inside a list is not weighted twice.
        listed = 1.0
    else:
        return 1.0
    if not children:
        return 1.0
    if not depth:
        return weight * len(value)
    found, sample = 0.0, max(1, sample // 2)
    for child in children:
        is_leaf = type(child) not in (dict, list)
        found += 1.0 if is_leaf else _values(child, listed, sample, depth - 1)
    return 1.0 + weight * len(value) * found / len(children)


@dataclass(frozen=True, slots=True)
class Frozen:
    """A copy of a dict or a list, in pieces: the bytes of a part, or a large part in pieces."""

    kind: type[dict[str, Any] | list[Any]]
    pieces: list[tuple[Any, bytes | Frozen]]

    def checked(self, shared: Mapping[str, list[Any]]) -> dict[str, Any]:
        """Return the copy of a document, completed with its shared parts.

        Raises:
            ValueNotSerializableError: It is not JSON; the error names the path.
        """
        try:
            document: dict[str, Any] = self.thawed(encode_json)
            for run in chain.from_iterable(_runs(part, _RUN) for part in shared.values()):
                encode_json(run)
        except ValueNotSerializableError:
            # The path in a piece is not the path in the whole document.
            encode_json({**shared, **self.thawed(lambda _: None)})
            raise
        return {**shared, **document}

    def thawed(self, check: Callable[[Any], object]) -> Any:
        """Return the copy after a check of each piece."""
        whole: Any = self.kind()
        for key, piece in self.pieces:
            if isinstance(piece, Frozen):
                part = piece.thawed(check)
                part = {key: part} if self.kind is dict else [part]
            else:
                part = marshal.loads(piece)  # noqa: S302 - written by this process, a moment ago
                check(part)
            if self.kind is dict:
                whole.update(part)
            else:
                whole += part
        return whole


def freeze(value: dict[str, Any] | list[Any]) -> Frozen | None:
    """Return a copy of the current value, or `None` if it cannot be copied this way."""
    try:
        return _frozen(value)
    except (ValueError, RecursionError):
        return None


def _frozen(value: Any) -> Frozen:
    each = _values(value, 1.0) / max(1, len(value))
    if each > _PIECE:
        pairs = value.items() if type(value) is dict else enumerate(value)
        return Frozen(type(value), [(key, _piece(key, child, value)) for key, child in pairs])
    runs = _runs(value, max(1, int(_PIECE / each)))
    # Version 2 does not search for shared parts, which is faster.
    return Frozen(type(value), [(None, marshal.dumps(run, 2)) for run in runs])


def _piece(key: Any, child: Any, parent: Any) -> bytes | Frozen:
    if type(child) in (dict, list):
        return _frozen(child)
    return marshal.dumps({key: child} if type(parent) is dict else [child], 2)


def _runs(value: Any, size: int) -> Iterator[Any]:
    if type(value) is list:
        yield from (value[start : start + size] for start in range(0, len(value), size))
        return
    pairs = iter(value.items())
    while run := dict(islice(pairs, size)):
        yield run


def read_json(document: bytes) -> Any:
    """Return the value of JSON without spaces; other threads run while a large one is read.

    Raises:
        ValueError: It is not JSON.
    """
    if len(document) <= _LONG or document.count(b'":') + document.count(b",") <= LARGE:
        return orjson.loads(document)
    text = document.decode()
    try:
        found, end = _read(text, 0, _OPEN)
    except IndexError as error:
        raise ValueError("the JSON has no end") from error
    if end != len(text):
        raise ValueError("the JSON continues after its end")
    return found


_OPEN: Final = 2
"""How many levels of a large document are read value by value."""

_DECODE: Final = JSONDecoder().raw_decode


def _read(text: str, at: int, levels: int) -> tuple[Any, int]:
    """Return the value that begins at an index, and the index where it ends."""
    first = text[at : at + 2]
    if levels and first[:1] == "{" and first != "{}":
        return _read_object(text, at + 1, levels - 1)
    if levels and first[:1] == "[" and first != "[]":
        return _read_array(text, at + 1, levels - 1)
    return _DECODE(text, at)


def _read_object(text: str, at: int, levels: int) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    while True:
        key, at = _DECODE(text, at)
        found[key], at = _read(text, at + 1, levels)
        if text[at] != ",":
            return found, at + 1
        at += 1


def _read_array(text: str, at: int, levels: int) -> tuple[list[Any], int]:
    found: list[Any] = []
    while True:
        value, at = _read(text, at, levels)
        found.append(value)
        if text[at] != ",":
            return found, at + 1
        at += 1
