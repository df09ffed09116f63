"""All entries of a listing that is read a page at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, TypeVar

__all__ = ["paged"]

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
