"""The entries of a file, one at a time: values of a JSON array, lines of JSON, lines of text.

A list, and lines of JSON, are cut into their entries, so that memory holds one entry at a time, and
what stands around a fault is read. So is a large object with a list of them; a small one is parsed
as a whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterable, Iterator
from itertools import chain
from typing import Any, BinaryIO, Final, NamedTuple

import orjson

from locus_memory.transfer.chats.conversation import Entry, UnreadError
from locus_memory.transfer.chats.exact_json import parse_json

__all__ = ["LARGEST", "SMALL", "Lines", "entries_of"]

SMALL: Final = 2**24
"""The size in bytes up to which an object is parsed as a whole."""

LARGEST: Final = 2**26
"""The size in bytes up to which an entry is read."""

_SHOWN: Final = 40
_BOM: Final = b"\xef\xbb\xbf"
_LISTS: Final = ("conversations", "runs")
"""The field that holds the entries, in a file that is an object with a list of them."""


class Lines(Iterable[Entry]):
    """The lines of a file of text; they can be read more than once.

    Args:
        file: The file, which can be read from its beginning.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def __iter__(self) -> Iterator[Entry]:
        """Yield the lines without their ends.

        Raises:
            UnreadError: One is not UTF-8, or larger than `LARGEST`.
        """
        for number, line in _numbered(self._file, 0):
            if line is None:
                raise UnreadError(f", line {number}: {_too_large()}")
            try:
                text = line.removeprefix(_BOM).decode().rstrip("\r\n")
            except UnicodeDecodeError:
                raise UnreadError(f", line {number}: not UTF-8") from None
            yield Entry(text, number, is_line=True)


def _too_large() -> str:
    return f"it is larger than {LARGEST >> 20} MB"


def _numbered(file: BinaryIO, start: int) -> Iterator[tuple[int, bytes | None]]:
    """Yield the lines with their numbers; `None` in place of one that is too large."""
    file.seek(start)
    number = 0
    while line := file.readline(LARGEST):
        number += 1
        is_whole = len(line) < LARGEST
        while len(line) == LARGEST and not line.endswith(b"\n"):
            line = file.readline(LARGEST)
        yield number, line if is_whole else None


def entries_of(file: BinaryIO) -> Iterator[Entry]:
    """Yield the entries of a file of JSON; of one that is a single value, the value.

    An entry that is no JSON is an exception in place of a value.

    Args:
        file: The file, which can be read from its beginning.

    Raises:
        UnreadError: It is no JSON at all; the message goes on after the name of the file.
    """
    found = _entries(file)
    first = next(found, None)
    second = next(found, None)
    if second is not None and first is not None:
        yield from chain((first, second), found)
    elif first is not None:
        yield first if isinstance(first.value, Exception) else Entry(first.value)


def _entries(file: BinaryIO) -> Iterator[Entry]:
    head = file.read(_CHUNK)
    bare = head.removeprefix(_BOM).lstrip()
    start = len(head) - len(bare)
    file.seek(start)
    line = file.readline(SMALL)
    has_more = line.endswith(b"\n") and bool(file.read(_CHUNK).strip())
    if has_more and isinstance(_value(line), dict | list):
        yield from _lines(file, start)
    elif bare.startswith(b"["):
        yield from _elements(file, start)
    else:
        yield from _of_object(file, start)


def _check_text(content: bytes) -> None:
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise UnreadError(f", line {line}: not UTF-8") from None


def _listed(value: Any) -> Iterator[Entry]:
    if isinstance(value, dict):
        name = _list_among([name for name in value if isinstance(value[name], list)])
        value = value if name is None or "role" in value else value[name]
    if isinstance(value, list):
        yield from (Entry(each, number) for number, each in enumerate(value, 1))
    else:
        yield Entry(value)


def _list_among(names: Iterable[str]) -> str | None:
    """Return which list of an object holds the entries, if one does."""
    found = [name for name in names if name in (*_LISTS, "messages")]
    return found[0] if len(found) == 1 and found[0] in _LISTS else None


def _lines(file: BinaryIO, start: int) -> Iterator[Entry]:
    for number, line in _numbered(file, start):
        if line is None or line.strip():
            yield Entry(_value(line), number, is_line=True)


# A pair of escapes is one character; half of one is none.
_HALF: Final = re.compile(
    rb"(\\[^u]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
_MOST_DIGITS: Final = 100
"""Of an integer that no value can hold, as many digits are kept."""


def _value(content: bytes | None) -> Any:
    """Return the value of an entry, or an exception.

    A number that cannot be stored is left to the reader, who may have no use for it.
    """
    if content is None:
        return ValueError(_too_large())
    try:
        return parse_json(content)
    except UnicodeDecodeError:
        return ValueError("not UTF-8")
    except orjson.JSONDecodeError as error:
        whole = _HALF.sub(lambda half: half[1] or rb"\ufffd", content)
        try:
            return json.loads(
                whole, parse_int=lambda digits: int(digits[:_MOST_DIGITS]), parse_constant=_refused
            )
        except (ValueError, RecursionError):
            return ValueError(f"not JSON: {error}")


def _refused(name: str) -> float:
    raise ValueError(name)


_CHUNK: Final = 2**15
_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_IN_STRING: Final = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_OUTER, _INNER = (
    re.compile(rb"[^%b]*+(?:%b[^%b]*+)*+" % (stops, _STRING, stops), re.DOTALL)
    for stops in (rb'"\[\]{},', rb'"\[\]{}')
)


class _Piece(NamedTuple):
    """What stands before a bracket, a comma or the end, in the outer levels of JSON.

    Attributes:
        content: The bytes since the one before; `None`: too many.
        mark: The bracket or comma; empty at the end of the file.
        depth: In how many brackets it stands.
    """

    content: bytes | None
    mark: bytes
    depth: int


class _Cutter:
    """Cuts JSON, chunk by chunk, at the commas and brackets of its outer levels.

    Args:
        levels: The number of levels; what is nested deeper is not cut.
    """

    def __init__(self, levels: int) -> None:
        self._levels = levels
        self._depth = 0
        self._in_string = False
        self._kept: bytearray | None = bytearray()

    def pieces(self, file: BinaryIO, start: int) -> Iterator[_Piece]:
        """Yield the pieces of a file."""
        file.seek(start)
        rest = b""
        while chunk := file.read(_CHUNK):
            rest = yield from self._cut(rest + chunk)
        yield self._piece(rest, b"")

    def _cut(self, chunk: bytes) -> Generator[_Piece, None, bytes]:
        """Yield the pieces that end in a chunk, and return the half of an escape at its end."""
        begin = at = 0
        while (at := self._next(chunk, at)) < len(chunk) and chunk[at : at + 1] != b"\\":
            mark = chunk[at : at + 1]
            at += 1
            if mark == b'"':
                self._in_string = not self._in_string
                continue
            opens, closes = mark in b"[{", mark in b"]}"
            if self._depth + opens <= self._levels:
                yield self._piece(chunk[begin : at - 1], mark)
                begin = at
            self._depth += opens - closes
        self._keep(chunk[begin:at])
        return chunk[at:]

    def _next(self, chunk: bytes, at: int) -> int:
        is_outer = self._depth <= self._levels
        pattern = _IN_STRING if self._in_string else _OUTER if is_outer else _INNER
        found = pattern.match(chunk, at)
        return found.end() if found else at

    def _keep(self, content: bytes) -> None:
        if self._kept is not None:
            self._kept += content
            if len(self._kept) > LARGEST:
                self._kept = None

    def _piece(self, content: bytes, mark: bytes) -> _Piece:
        self._keep(content)
        kept, self._kept = self._kept, bytearray()
        return _Piece(None if kept is None else bytes(kept).strip(), mark, self._depth)


def _elements(file: BinaryIO, start: int, name: str | None = None) -> Iterator[Entry]:
    """Yield the elements of a list, or of the list of an object that has a name."""
    level = 1 if name is None else 2
    number, is_within = 0, name is None
    for piece in _Cutter(level).pieces(file, start):
        if piece.depth < level:
            is_within = name in (None, _field_before(piece))
            if piece.content and name is None:
                yield Entry(ValueError("not JSON: something stands around the list"), number + 1)
        elif is_within and piece.mark not in (b"[", b"{"):
            number += 1
            if not piece.mark:
                yield Entry(ValueError("not JSON: the file ends within it"), number)
            elif piece.content != b"" or piece.mark == b"," or number > 1:
                yield Entry(_value(piece.content), number)


def _field_before(piece: _Piece) -> str | None:
    """Return the name of the field of an object whose list begins after a piece."""
    if piece.depth != 1 or piece.mark != b"[" or not piece.content:
        return None
    return piece.content.rstrip(b": \t\r\n").strip(b'"').decode(errors="replace")


def _of_object(file: BinaryIO, start: int) -> Iterator[Entry]:
    """Yield the entries of an object, or the object itself if it has no list of them."""
    file.seek(start)
    if len(content := file.read(SMALL + 1)) > SMALL:
        fields = map(_field_before, _Cutter(2).pieces(file, start))
        name = _list_among(list(filter(None, fields)))
        if name is not None:
            yield from _elements(file, start, name)
            return
        file.seek(start)
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise UnreadError(f": {_too_large()}")
    _check_text(content)
    value = _value(content)
    if isinstance(value, Exception):
        shown = content.splitlines()[0][:_SHOWN].decode(errors="replace")
        raise UnreadError(f": {value}; it begins with {shown!r}")
    yield from _listed(value)
