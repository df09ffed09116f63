"""The items that have a word, and the lengths of all items, as FTS5's tables have them.

To rank, FTS5 counts the items of each word in each statement, and steps through them one by one.
The same numbers in arrays give the same scores in a tenth of the time: see `ranking.py`.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from locus_memory.backends.sqlite import queries

__all__ = [
    "BLOCK",
    "Ids",
    "Lengths",
    "Postings",
    "Times",
    "read_lengths",
    "read_postings",
    "shared",
]

Ids = NDArray[np.int64]
Lengths = NDArray[np.uint16] | NDArray[np.uint32]
Times = NDArray[np.uint8] | NDArray[np.uint32]

_BITS: Final = 16
BLOCK: Final = 1 << _BITS
"""So many low bits of an id are stored; the ids of a block share the others."""

_CHUNK: Final = BLOCK
"""The number of lengths that are read at a time."""

_SPARSE: Final = 8
"""An array with a place for each id may be so many times as long as there are items."""

_SMALL: Final = 1_000_000
"""The array may have so many places in any case."""

_SCOPE = re.compile(r"n\d+")
"""Words that look like the scope of a namespace, which is in the index as well."""


@dataclass(frozen=True, slots=True)
class Postings:
    """The items that have a word, in the order of their ids.

    Attributes:
        low: The low bits of their ids.
        counts: How many of them are in each block.
        times: How often each of them has the word.
    """

    low: NDArray[np.uint16]
    counts: Ids
    times: Times

    @classmethod
    def of(cls, places: Ids) -> Self:
        """Return the postings of a word, from the id of the item at each place of it, in order."""
        counts = np.zeros(1 + int(places[-1]) // BLOCK if len(places) else 0, np.int64)
        ends = np.searchsorted(places, np.arange(1, len(counts) + 1) << _BITS)
        lows: list[NDArray[np.uint16]] = []
        parts: list[NDArray[np.uint32]] = []
        # Block by block: arrays as long as the list would take many times its memory.
        for number, end in enumerate(ends):
            inside = places[ends[number - 1] if number else 0 : end]
            first = np.flatnonzero(np.diff(inside, prepend=-1))
            counts[number] = len(first)
            lows.append((inside[first] & (BLOCK - 1)).astype(np.uint16))
            parts.append(np.diff(first, append=len(inside)).astype(np.uint32))
        low = np.concatenate(lows) if lows else np.zeros(0, np.uint16)
        times = np.concatenate(parts) if parts else np.zeros(0, np.uint32)
        small = int(times.max(initial=0)) <= np.iinfo(np.uint8).max
        return cls(low, counts, times.astype(np.uint8) if small else times)

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.low.nbytes + self.counts.nbytes + self.times.nbytes

    def ends(self) -> Ids:
        """Return where each block ends."""
        return np.cumsum(self.counts)

    def block(self, number: int, ends: Ids, size: int) -> tuple[NDArray[np.uint16], Times]:
        """Return the low bits of the ids in a block, and how often each item has the word.

        Args:
            number: The number of the block.
            ends: Where each block ends.
            size: How many ids of the block count; later ones are left out.
        """
        if number >= len(ends):
            return self.low[:0], self.times[:0]
        part = slice(ends[number - 1] if number else 0, ends[number])
        low, times = self.low[part], self.times[part]
        known = len(low) if size >= BLOCK else int(np.searchsorted(low, size))
        return low[:known], times[:known]

    def count(self, until: int, replaced: Ids) -> int:
        """Return how many items have an id below a number, without those of another list."""
        number, size = divmod(until, BLOCK)
        found = int(self.counts[:number].sum()) + len(self.block(number, self.ends(), size)[0])
        return found - len(shared(replaced, self.ids())[0]) if len(replaced) else found

    def ids(self) -> Ids:
        """Return the ids of the items."""
        high = np.arange(len(self.counts), dtype=np.int64) << _BITS
        found: Ids = np.repeat(high, self.counts) + self.low.astype(np.int64)
        return found


def shared(ids: Ids, having: Ids) -> tuple[Ids, Ids]:
    """Return the places of the numbers that two lists in order share, in each of them."""
    if len(having) < len(ids):
        # Each number of the shorter list is looked for in the longer one.
        places, have = shared(having, ids)
        return have, places
    if not len(ids):
        return ids, ids
    places = np.minimum(np.searchsorted(having, ids), len(having) - 1)
    found = np.flatnonzero(having[places] == ids)
    return found, places[found]


def read_postings(connection: sqlite3.Connection, word: str, quoted: str) -> Postings | None:
    """Return the items that have a word.

    Args:
        connection: The connection.
        word: The word as the index has it.
        quoted: The word as a query has it.

    Returns:
        The postings, or `None` if FTS5 understands the query as another word.
    """
    connection.execute(queries.SHOW_PLACES)
    statement = queries.PLACES_IN_TEXT if _SCOPE.fullmatch(word) else queries.PLACES
    (listed,) = connection.execute(statement, (word,)).fetchone()
    found = Postings.of(_numbers(listed))
    (count,) = connection.execute(*queries.count_word(f"text : {quoted}")).fetchone()
    return found if len(found.low) == count else None


def _numbers(listed: Any) -> Ids:
    """Return the numbers of a list that SQLite made; a list of one may be a number."""
    found: Ids = np.fromstring("" if listed is None else str(listed), dtype=np.int64, sep=",")
    return found


def read_lengths(connection: sqlite3.Connection) -> Lengths | None:
    """Return the number of words of each item, by its id; 0 where there is none.

    The word of the namespace counts. `None`: the ids are too far apart for an array.
    """
    rows, most = connection.execute(queries.COUNT_LENGTHS).fetchone()
    if most > max(_SMALL, _SPARSE * rows):
        return None
    found = np.zeros(most + 1, np.uint16)
    after = 0
    while after < most:
        listed, sizes = connection.execute(queries.LENGTHS, (after, _CHUNK)).fetchone()
        ids = _numbers(listed)
        lengths = _varints(np.frombuffer(bytes.fromhex(sizes), np.uint8)).reshape(len(ids), -1)
        words = lengths.sum(axis=1)
        if words.max() > np.iinfo(found.dtype).max:
            found = found.astype(np.uint32)
        found[ids] = words
        after = int(ids[-1])
    return found


def _varints(data: NDArray[np.uint8]) -> Ids:
    """Return the numbers of SQLite's varints, each of fewer than nine bytes."""
    last = np.flatnonzero(data < 0x80)  # noqa: PLR2004 - the last byte of a number
    more = np.diff(last, prepend=-1) - 1
    found: Ids = data[last].astype(np.int64)
    for back in range(1, int(more.max(initial=0)) + 1):
        longer = np.flatnonzero(more >= back)
        found[longer] |= (data[last[longer] - back].astype(np.int64) & 0x7F) << (7 * back)
    return found
