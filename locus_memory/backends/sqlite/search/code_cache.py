"""The cache of the codes of searches, each as its transaction sees it.

A code never changes. The newest id of a namespace and the number of its deleted vectors tell
whether its codes are up to date. A refresh reads the new codes and the ids of the deleted vectors.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from locus_memory.backends.sqlite import queries
from locus_memory.backends.sqlite.search.code_blocks import (
    CodeRows,
    Mask,
    block_of,
    bytes_per_code,
)

__all__ = ["CodeCache", "Codes", "Shelf"]

_CHUNK: Final = 8_192
_COMPACT: Final = 8
"""Deleted rows are dropped once they are one of this many."""

_MASKS: Final = 8
"""The number of filters whose result is cached, of each search."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """The vectors of one dimension in one namespace, as one transaction sees them.

    Attributes:
        namespace: Its id.
        dimension: The length of the vectors.
        deletes: How many vectors of the namespace were deleted so far.
        newest: The highest id.
    """

    namespace: int
    dimension: int
    deletes: int
    newest: int


class _Lost(NamedTuple):
    namespace: int
    number: int
    id: int


@dataclass(frozen=True, slots=True)
class Codes:
    """The codes of a search.

    Attributes:
        rows: The codes; those of vectors that the transaction does not see yet may be among them.
        shelves: The state of each namespace, by its id.
        lost: The last deleted vectors.
        masks: For filters, which of the first rows satisfy them.
        is_current: Whether all rows are of vectors that the transaction sees.
    """

    rows: CodeRows
    shelves: Mapping[int, Shelf]
    lost: tuple[_Lost, ...] = ()
    masks: OrderedDict[str, Mask] = field(default_factory=OrderedDict[str, Mask])
    is_current: bool = True

    def mask(self, condition: str) -> Mask | None:
        """Return which of the first rows satisfy a filter, if that is known."""
        return self.masks.get(condition)

    def keep_mask(self, condition: str, mask: Mask) -> None:
        """Cache which of the rows satisfy a filter."""
        if not self.is_current:
            # The filter is not evaluated for vectors that this transaction does not see.
            return
        self.masks[condition] = mask
        while len(self.masks) > _MASKS:
            self.masks.popitem(last=False)


Name = tuple[str, bool, int]
"""The path of a search, whether it is recursive, and the dimension."""


class CodeCache:
    """A cache of the last searches' codes, up to a number of bytes."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._held: OrderedDict[Name, Codes] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """The size of the cache in bytes."""
        # Others add codes and drop them meanwhile; a list is made at once.
        return sum(codes.rows.size for codes in list(self._held.values()))

    def fits(self, count: int, dimension: int) -> bool:
        """Return whether the cache can hold so many codes."""
        return count * bytes_per_code(dimension) <= self._capacity

    def holds(self, name: Name) -> int | None:
        """Return the number of vectors of a search whose codes are cached."""
        with self._lock:
            held = self._held.get(name)
            return None if held is None else held.rows.count - held.rows.deleted

    def find(self, connection: sqlite3.Connection, name: Name, shelves: Sequence[Shelf]) -> Codes:
        """Return the codes of a search as this transaction sees them."""
        now = {shelf.namespace: shelf for shelf in shelves}
        with self._lock:
            held = self._held.get(name)
            if held is not None and held.shelves == now:
                self._held.move_to_end(name)
                return held
            changed = None if held is None else _changed(connection, held, now)
            if changed is None:
                changed = _appended(connection, Codes(CodeRows(), {}), now)
                if held is not None and _is_older(held.shelves, now):
                    return changed
            if changed.is_current:
                self._hold(name, changed)
            return changed

    def drop(self, name: Name) -> None:
        """Forget the codes of a search."""
        with self._lock:
            self._held.pop(name, None)

    def _hold(self, name: Name, codes: Codes) -> None:
        self._held[name] = codes
        self._held.move_to_end(name)
        while self.size > self._capacity and len(self._held) > 1:
            self._held.popitem(last=False)


def _is_older(known: Mapping[int, Shelf], now: Mapping[int, Shelf]) -> bool:
    """Return whether a transaction sees an earlier state than the known one."""
    return any(
        each.deletes < before.deletes
        or (each.deletes == before.deletes and each.newest < before.newest)
        for each in now.values()
        if (before := known.get(each.namespace)) is not None
    )


def _changed(connection: sqlite3.Connection, held: Codes, now: Mapping[int, Shelf]) -> Codes | None:
    """Return the codes in another state of the file; `None`: they must be read again."""
    if _is_older(held.shelves, now):
        return _as_before(held, now)
    if _has_former(held, now):
        return None
    gone = [each for each in held.shelves if each not in now]
    rows = held.rows.without(gone) if gone else held.rows
    lost = list(_lost(connection, held.shelves, now.values()))
    expected = sum(
        each.deletes - held.shelves[each.namespace].deletes
        for each in now.values()
        if each.namespace in held.shelves
    )
    if len(lost) != expected:
        return None
    if lost:
        rows = rows.marked([each.id for each in lost], dead=True)
    recent = (*held.lost, *lost)[-queries.LOST_KEPT :]
    # A filter is not evaluated for deleted vectors, which others of these codes may still see.
    masks = OrderedDict(held.masks) if gone or lost else held.masks
    changed = Codes(rows, held.shelves, recent, masks)
    if rows.deleted * _COMPACT > rows.count:
        changed = Codes(rows.compacted(), held.shelves)
    return _appended(connection, changed, now)


def _has_former(held: Codes, now: Mapping[int, Shelf]) -> bool:
    """Return whether there are rows of a namespace that had no vectors and has some again.

    An older transaction may still see the vectors of these rows, which it would read once more.
    """
    new = now.keys() - held.shelves.keys()
    return bool(new) and held.rows.has_any_of(list(new))


def _as_before(held: Codes, now: Mapping[int, Shelf]) -> Codes | None:
    """Return the codes in an earlier state; further rows are those of vectors it does not see."""
    if now.keys() - held.shelves.keys():
        return None
    revived = [
        each.id
        for each in held.lost
        if each.namespace in now and each.number > now[each.namespace].deletes
    ]
    if len(revived) != sum(
        max(0, held.shelves[each.namespace].deletes - each.deletes) for each in now.values()
    ) or any(each.deletes > held.shelves[each.namespace].deletes for each in now.values()):
        return None
    rows = held.rows.marked(revived, dead=False) if revived else held.rows
    if held.rows.deleted - rows.deleted != len(revived):
        # One was deleted before its code was read, or is of another dimension.
        return None
    masks = held.masks if rows is held.rows else OrderedDict[str, Mask]()
    return Codes(rows, now, held.lost, masks, is_current=False)


def _lost(
    connection: sqlite3.Connection, known: Mapping[int, Shelf], now: Iterable[Shelf]
) -> Iterator[_Lost]:
    for shelf in now:
        before = known.get(shelf.namespace)
        if before is not None and before.deletes < shelf.deletes:
            sought = shelf.namespace, before.deletes
            for number, vector in connection.execute(queries.LOST, sought):
                yield _Lost(shelf.namespace, number, vector)


def _appended(connection: sqlite3.Connection, codes: Codes, now: Mapping[int, Shelf]) -> Codes:
    """Return the codes with those of the vectors that are not among them yet."""
    rows, shelves = codes.rows, dict[int, Shelf]()
    for shelf in now.values():
        before = codes.shelves.get(shelf.namespace)
        if before is None or before.newest < shelf.newest:
            after = 0 if before is None else before.newest
            rows = _read(connection, rows, shelf, after)
        shelves[shelf.namespace] = shelf
    return Codes(rows, shelves, codes.lost, codes.masks)


def _read(connection: sqlite3.Connection, rows: CodeRows, shelf: Shelf, after: int) -> CodeRows:
    sought = shelf.namespace, shelf.dimension, after
    cursor = connection.execute(queries.CODES_AFTER, sought)
    while found := cursor.fetchmany(_CHUNK):
        ids, codes = zip(*found, strict=True)
        block = block_of(np.array(ids, np.int64), shelf.namespace, list(codes), shelf.dimension)
        rows = rows.extended(block)
    return rows
