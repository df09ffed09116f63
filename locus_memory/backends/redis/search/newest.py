"""The newest items of one namespace or of many.

A script reads a page of a few hundred namespaces, and returns how far it read. Of many namespaces,
those whose first item is among the newest are read. An item that is written in between moves to the
first place, so a search of several pages looks for such items at its end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any, Final, NamedTuple

from locus_memory.backends.redis.items.items import decode_item, rows
from locus_memory.backends.redis.items.spaces import PAGE, Space, Spaces
from locus_memory.backends.redis.lua import script
from locus_memory.backends.redis.search.hits import wants
from locus_memory.backends.selection import Page, is_everything
from locus_memory.store.filters import Condition
from locus_memory.store.item import StoreItem

__all__ = ["newest"]

_WIDTH: Final = 6
_SKIPPED: Final = 5 * PAGE
_TOGETHER: Final = 500
"""How many namespaces a script reads, or how many scripts are sent at once on a cluster."""

_FEW: Final = 10
"""The fewest items that are read of a namespace, if each needs its own script."""

_ATTEMPTS: Final = 10
"""How often a search looks for items that were written while it read."""


async def newest(
    spaces: Spaces, targets: Sequence[Space], condition: Condition, page: Page
) -> list[StoreItem]:
    """Return the items that satisfy the condition, the newest write first.

    Within a namespace that is the order of the writes. Between namespaces it is the order of the
    server's clock at each write, to the microsecond.
    """
    sources = [_Source(space, place) for place, space in enumerate(targets)]
    is_exact = is_everything(condition) and len(sources) <= _most_together(spaces)
    skip = page.offset if is_exact else 0
    walk = _Walk(spaces, sources, skip)
    found = {row.name: row for row in await _wanted(walk, condition, page.end - skip)}
    for _ in range(_ATTEMPTS):
        if walk.pages <= 1:
            break
        walk = _Walk(spaces, [source.of_later() for source in walk.sources])
        later = await _wanted(walk, condition, page.end)
        if skip and not all(row.columns[1].startswith(b"1 ") for row in later):
            # It is unknown whether an item that is no first version was among the skipped ones.
            whole = await newest(spaces, targets, condition, Page(page.end))
            return whole[page.offset :]
        found |= {row.name: row for row in later}
    order = sorted(found.values())[page.offset - skip : page.end - skip]
    return [decode_item(targets[row.place].namespace, row.columns) for row in order]


class _Row(NamedTuple):
    """An item; the newest comes first, and among equals that of the first namespace."""

    age: int
    place: int
    columns: Sequence[bytes]

    @property
    def name(self) -> tuple[int, bytes]:
        """The unique name of the item."""
        return self.place, self.columns[0]


@dataclass(slots=True)
class _Source:
    """A namespace, and how far it is read.

    Attributes:
        space: The namespace.
        place: Its position among all.
        stop: The last revision to read.
        start: The next revision to read; empty: there is none.
        first: The revision of its first item at the beginning; empty: it had none.
    """

    space: Space
    place: int
    stop: bytes = b"-inf"
    start: bytes = b"+inf"
    first: bytes | None = None

    @property
    def bound(self) -> tuple[float, int]:
        """A bound before all of its items in the order of rows."""
        return -float(self.start), self.place

    def read_to(self, first: bytes, start: bytes) -> None:
        """Record the reply of a script."""
        self.start = start
        if self.first is None:
            self.first = first

    def of_later(self) -> _Source:
        """Return the same namespace, to read the items written since."""
        stop = b"(" + self.first if self.first else self.stop
        return _Source(self.space, self.place, stop)


class _Walk:
    """A walk through the items of namespaces, the newest first.

    Attributes:
        sources: The namespaces.
        pages: How often items were read.
    """

    def __init__(self, spaces: Spaces, sources: Sequence[_Source], skip: int = 0) -> None:
        self.sources = sources
        self.pages = 0
        self._spaces = spaces
        self._skip = skip
        self._rows: list[_Row] = []
        self._unread: list[tuple[float, int]] = [source.bound for source in sources]

    async def next(self, size: int) -> _Row | None:
        """Return the next item, or `None`; `size` is the number of wanted items."""
        if len(self._unread) > _most_together(self._spaces) and self._unread[0][0] == -math.inf:
            await self._look()
        while self._unread and not (self._rows and self._rows[0][:2] <= self._unread[0]):
            await self._read(min(size, PAGE))
        return heappop(self._rows) if self._rows else None

    async def _look(self) -> None:
        """Read the first revision of each namespace."""
        await self._run(self.sources, 0, 0)
        self._unread = [source.bound for source in self.sources if source.start]
        heapify(self._unread)

    async def _read(self, size: int) -> None:
        """Read the next items of the namespaces that come first."""
        self.pages += 1
        # Items are skipped in all namespaces together.
        is_blind = self._skip or self._unread[0][0] == -math.inf
        count = _TOGETHER if is_blind else min(size, _TOGETHER)
        chosen: list[_Source] = []
        while self._unread and len(chosen) < count:
            chosen.append(self.sources[heappop(self._unread)[1]])
        chosen.sort(key=lambda source: source.place)
        most = size if self._skip <= _SKIPPED else 0
        await self._run(chosen, min(self._skip, _SKIPPED), most)
        for source in chosen:
            if source.start:
                heappush(self._unread, source.bound)

    async def _run(self, sources: Sequence[_Source], skip: int, most: int) -> None:
        size = _most_together(self._spaces)
        groups = [sources[start : start + size] for start in range(0, len(sources), size)]
        if len(groups) > 1:
            most = min(most, max(most // len(groups), _FEW))
        now = self._spaces.now()
        calls = [
            script("newest").call(
                [source.space.base for source in group],
                [now, skip, most, *(edge for s in group for edge in (s.start, s.stop))],
            )
            for group in groups
        ]
        answers = await self._spaces.run_each(calls, [source.space for source in sources])
        for group, answer in zip(groups, answers, strict=True):
            await self._spaces.purge(self._take(group, answer))

    def _take(self, group: Sequence[_Source], answer: Sequence[Any]) -> list[tuple[Space, bytes]]:
        """Add the items of a reply; returns the missing ones."""
        edges, skipped, gone, flat = answer
        self._skip -= skipped
        for source, edge in zip(group, rows(edges, 2), strict=True):
            source.read_to(*edge)
        for number, revision, *columns in rows(flat, _WIDTH):
            heappush(self._rows, _Row(-int(revision), group[number - 1].place, columns))
        return [(group[number - 1].space, key) for number, key in rows(gone, 2)]


def _most_together(spaces: Spaces) -> int:
    """Return the number of namespaces that one script may read."""
    return 1 if spaces.is_cluster else _TOGETHER


async def _wanted(walk: _Walk, condition: Condition, count: int) -> list[_Row]:
    """Return at most `count` next items that satisfy the condition."""
    found: list[_Row] = []
    while len(found) < count:
        size = count - len(found) if is_everything(condition) else PAGE
        row = await walk.next(size)
        if row is None:
            break
        if wants(condition, row.columns):
            found.append(row)
    return found
