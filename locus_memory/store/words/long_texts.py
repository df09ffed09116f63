"""Long texts: their words are read in a worker thread, which does not block the event loop."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from locus_memory._internal.offload import in_thread
from locus_memory.store.item import Delete, Put, check_text
from locus_memory.store.json_values import decode_json, encode_metadata, round_trip

__all__ = ["LONG", "are_long", "from_query", "prepared"]

LONG: Final = 32 * 1024
"""Characters, or parts of values, in one call; if no word was read before, it takes some 30 ms."""

_Made = TypeVar("_Made")
_AT_ONCE: Final = 200
"""Operations that are copied before the event loop goes on."""

_LEAVES: Final = (int, float, bool, type(None))


def are_long(values: Iterable[Any], texts: Iterable[str | None] = ()) -> bool:
    """Whether values and texts are too long to be read on the event loop."""
    room = LONG
    for text in texts:
        if isinstance(text, str):
            room -= len(text)
    for value in values:
        if room < 0:
            break
        room -= len(value) if isinstance(value, str) else _size(value, room)
    return room < 0


def _size(value: Any, most: int) -> int:
    """Return the number of characters and parts of a value, counted up to `most`."""
    if isinstance(value, _LEAVES):
        return 1
    size, left = 0, [value]
    while left and size <= most:
        each = left.pop()
        if isinstance(each, str):
            size += len(each)
        elif isinstance(each, dict):
            size += len(each)
            left.extend(each.values())
        elif isinstance(each, list):
            size += len(each)
            left.extend(each)
    return size


async def prepared(
    make: Callable[[Sequence[Put | Delete]], _Made], operations: Sequence[Put | Delete]
) -> _Made:
    """Return the result of `make` for operations, in a worker thread if their texts are long.

    The worker thread gets a copy of them, since the caller may change the originals meanwhile. A
    caller that changes them before the copy of many is made may find either in the store.

    Raises:
        ValueNotSerializableError: A value of a long operation is not JSON.
        InvalidArgumentError: `make` refuses an operation.
    """
    values: list[Any] = []
    texts: list[str | None] = []
    for each in operations:
        if isinstance(each, Put):
            values.append(each.value)
            texts.append(each.text)
    if not are_long(values, texts):
        return make(operations)
    copies: list[Put | Delete] = []
    for each in operations:
        copies.append(_copy(each) if isinstance(each, Put) else each)
        if not len(copies) % _AT_ONCE:
            await asyncio.sleep(0)
    return await in_thread(make, copies)


def _copy(put: Put) -> Put:
    metadata = None if put.metadata is None else decode_json(encode_metadata(put.metadata))
    value = put.value if isinstance(put.value, str) else round_trip(put.value)[1]
    return replace(put, value=value, metadata=metadata, embedding=copy.copy(put.embedding))


async def from_query(read: Callable[[str], list[str]], query: str) -> list[str]:
    """Return the words that `read` finds in a query, in a worker thread if it is long.

    Raises:
        InvalidArgumentError: `query` is not a string of whole characters.
    """
    if len(check_text(query, "a query") or "") <= LONG:
        return read(query)
    return await in_thread(read, query)
