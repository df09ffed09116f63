"""Entries a page at a time: of a listing that is read, and of values that are there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

__all__ = ["batches", "paged"]

_Entry = TypeVar("_Entry")


async def paged(
    read: Callable[[Any], Awaitable[Sequence[_Entry]]],
    place: Callable[[_Entry], Any] = lambda entry: entry,
) -> AsyncIterator[_Entry]:
    """Yield all entries of a listing.

    Args:
        read: Returns the page after a place; `None`: the first one. An empty page is the end.
        place: Returns the place of an entry; by default, the entry itself.
    """
    after: Any = None
    while page := await read(after):
        for entry in page:
            yield entry
        after = place(page[-1])


def batches(entries: Iterable[_Entry], size: int) -> Iterator[list[_Entry]]:
    """Yield the entries in lists of this size, the last of which may be shorter."""
    left = iter(entries)
    while batch := list(islice(left, size)):
        yield batch
