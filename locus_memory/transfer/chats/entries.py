"""The entries of a file, one at a time: values of a JSON array, lines of JSON, lines of text.

A small file of JSON is parsed as a whole. A larger one, and one that is not whole, is parsed as a
stream, so that memory holds one entry at a time, and what stands before a fault is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, BinaryIO, Final

import orjson

from locus_memory._internal.providers.drivers import require
from locus_memory.transfer.chats.conversation import Entry, UnreadError
from locus_memory.transfer.chats.exact_json import InexactNumberError, parse_json

__all__ = ["SMALL", "Lines", "entries_of"]

SMALL: Final = 2**24
"""The size in bytes up to which a file is parsed as a whole."""

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
            UnreadError: One is not UTF-8.
        """
        self._file.seek(0)
        for number, line in enumerate(self._file, 1):
            try:
                text = line.removeprefix(_BOM).decode().rstrip("\r\n")
            except UnicodeDecodeError:
                raise UnreadError(f", line {number}: not UTF-8") from None
            yield Entry(text, number, is_line=True)


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
    start = len(_BOM) if file.read(len(_BOM)) == _BOM else 0
    file.seek(start)
    content = file.read(SMALL + 1)
    is_small = len(content) <= SMALL
    error: Exception | None = None
    if is_small:
        _check_text(content)
        try:
            yield from _listed(parse_json(content))
        except InexactNumberError as inexact:
            raise UnreadError(f": {inexact}") from None
        except orjson.JSONDecodeError as invalid:
            error = invalid
        else:
            return
    file.seek(start)
    first = file.readline(SMALL).strip()
    if _is_value(first) or not first:
        yield from _lines(file, start)
    elif first.startswith(b"["):
        file.seek(start)
        yield from _streamed(file, "item")
    elif is_small:
        shown = first[:_SHOWN].decode(errors="replace")
        raise UnreadError(f": not JSON: {error}; it begins with {shown!r}")
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
        lists = [value[name] for name in _LISTS if isinstance(value.get(name), list)]
        value = lists[0] if len(lists) == 1 and "messages" not in value else value
    if isinstance(value, list):
        yield from (Entry(each, number) for number, each in enumerate(value, 1))
    else:
        yield Entry(value)


def _is_value(line: bytes) -> bool:
    try:
        return isinstance(orjson.loads(line), dict | list)
    except orjson.JSONDecodeError:
        return False


def _lines(file: BinaryIO, start: int) -> Iterator[Entry]:
    file.seek(start)
    for number, line in enumerate(file, 1):
        if line.strip():
            yield Entry(_value(line), number, is_line=True)


def _value(line: bytes) -> Any:
    try:
        return parse_json(line)
    except UnicodeDecodeError:
        return ValueError("not UTF-8")
    except orjson.JSONDecodeError as error:
        return ValueError(f"not JSON: {error}")


def _streamed(file: BinaryIO, prefix: str) -> Iterator[Entry]:
    """Yield the entries of a list as a stream; at a fault, the last is an exception."""
    ijson: Any = require("ijson", "cli", needed_by="a file that is large, or not whole")
    number = 0
    try:
        for number, value in enumerate(ijson.items(file, prefix, use_float=True), 1):
            yield Entry(value, number)
    except (ijson.JSONError, UnicodeDecodeError) as error:
        # The C parser shows the surrounding text in further lines.
        reason = error.args[0] if error.args else error
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        told = text.partition("\n")[0].strip()
        yield Entry(ValueError(f"not JSON from here on: {told}"), number + 1)


def _of_object(file: BinaryIO, start: int) -> Iterator[Entry]:
    """Yield the entries of a large object, or the object itself if it has no list of them."""
    for name in _LISTS:
        file.seek(start)
        found = _streamed(file, f"{name}.item")
        first = next(found, None)
        if first is not None:
            yield from chain((first,), found)
            return
    file.seek(start)
    content = file.read()
    _check_text(content)
    try:
        yield Entry(parse_json(content))
    except orjson.JSONDecodeError as error:
        raise UnreadError(f": not JSON: {error}") from None
