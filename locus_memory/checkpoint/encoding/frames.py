"""JSON documents that hold bytes, as one sequence of bytes; pure.

A document without bytes is its JSON. One with bytes is a frame: a zero byte, the length of the JSON
as four bytes, the JSON, and the bytes values one after another. The JSON is
`[marker, sizes, document]`: the document has the marker, a string that it holds nowhere else, in
the place of each of the values, whose sizes are given in their order.
"""

from __future__ import annotations

from functools import partial
from itertools import accumulate, pairwise
from typing import Any, Final

import orjson

from locus_memory.checkpoint.encoding.large_states import read_json

__all__ = ["dumps", "is_frame", "loads", "size_of"]

_FRAME: Final = b"\0"
_LENGTH: Final = 4


def is_frame(content: bytes) -> bool:
    """Whether `dumps` wrote a document that holds bytes."""
    return content[:1] == _FRAME


def dumps(document: Any) -> bytes:
    """Return a document as bytes.

    Raises:
        TypeError: It holds a value that is neither JSON nor bytes.
    """
    marker = "\0"
    while True:
        values: list[bytes] = []
        encoded = orjson.dumps(document, default=partial(_taken, values, marker))
        if not values:
            return encoded
        if encoded.count(orjson.dumps(marker)) == len(values):
            return _framed(encoded, marker, values)
        marker += "\0"


def _framed(encoded: bytes, marker: str, values: list[bytes]) -> bytes:
    sizes = orjson.dumps(list(map(len, values)))
    document = b"[%b,%b,%b]" % (orjson.dumps(marker), sizes, encoded)
    return b"".join((_FRAME, len(document).to_bytes(_LENGTH, "big"), document, *values))


def _taken(values: list[bytes], marker: str, value: Any) -> str:
    if type(value) is not bytes:
        raise TypeError
    values.append(value)
    return marker


def loads(content: bytes) -> Any:
    """Return the document that `dumps` wrote.

    Raises:
        ValueError: It is damaged.
    """
    if not is_frame(content):
        return read_json(content)
    start = 1 + _LENGTH
    end = start + int.from_bytes(content[1:start], "big")
    try:
        marker, sizes, document = read_json(content[start:end])
        if any(size < 0 for size in sizes) or sum(sizes) != len(content) - end:
            raise ValueError("the sizes of the values are wrong")
        if content.count(orjson.dumps(marker), start, end) != len(sizes) + 1:
            raise ValueError("there are not as many markers as values")
        ends = accumulate(sizes, initial=end)
        values = [content[start:stop] for start, stop in pairwise(ends)]
        _fill(document, marker, values)
    except (AttributeError, RecursionError, TypeError) as error:
        raise ValueError("it is no frame") from error
    if values:
        raise ValueError("a marker is not in the place of a value")
    return document


def _fill(part: Any, marker: str, values: list[bytes]) -> None:
    """Put the values where the markers are, from the end, where they usually are together."""
    for key in reversed(part if type(part) is dict else range(len(part))):
        if not values:
            return
        child = part[key]
        kind = type(child)
        if kind is str:
            if child == marker:
                part[key] = values.pop()
        elif kind is dict or kind is list:
            _fill(child, marker, values)


def size_of(part: Any) -> int:
    """Return how many bytes a part of a document takes before compression, without a frame."""
    values: list[bytes] = []
    return len(orjson.dumps(part, default=partial(_taken, values, ""))) + sum(map(len, values))
