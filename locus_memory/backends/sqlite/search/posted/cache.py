"""The cache of the postings of words, as the transaction of a search sees them.

It is made of one state of the file. Items that are put later have a higher revision, and are read
beside it; deleted ones are dropped when the hits are read. After many changes it is made again.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from locus_memory.backends.sqlite import queries
from locus_memory.backends.sqlite.search.posted.postings import (
    Ids,
    Lengths,
    Postings,
    read_lengths,
    read_postings,
)
from locus_memory.backends.sqlite.search.posted.ranking import Text, Totals
from locus_memory.store.text import count_searchable, stem

__all__ = ["RECENT", "STEADY", "PostingCache", "ScopeIds", "State", "View"]

RECENT: Final = 2_000
"""So many items may be newer than the cache."""

STEADY: Final = 32
"""The cache is dropped once one of this many items is deleted, or newer."""

_WORTH: Final = 2
"""How many postings searches step through, for each item, before the lengths are read."""

_SHARE: Final = 4
"""The postings of a word may take one of this many parts of the cache."""

_WORD_BYTES: Final = 640
"""How many bytes a word takes besides its postings, about: a word that no item has takes these."""


class State(NamedTuple):
    """A state of the text index.

    Attributes:
        newest: The newest revision.
        totals: The number of items and of words.
    """

    newest: int
    totals: Totals

    def is_older(self, other: State) -> bool:
        """Return whether this is the state before: a put has a new revision, a delete has none."""
        mine, others = (self.newest, -self.totals.rows), (other.newest, -other.totals.rows)
        return mine < others


class _Word(NamedTuple):
    """The postings of a word, or `None` if they are not of use, and the state they are of."""

    postings: Postings | None
    state: State

    @property
    def size(self) -> int:
        """How many bytes it takes in memory, about."""
        return _WORD_BYTES + (0 if self.postings is None else self.postings.size)


class ScopeIds(NamedTuple):
    """The state in which a scope was read, and the ids of its items; `None`: they are many."""

    state: State
    ids: Ids | None


@dataclass(frozen=True, slots=True)
class View:
    """The cache as one search uses it.

    Attributes:
        state: The state of the lengths.
        lengths: The number of words of each item, by its id.
        scopes: The ids of the items of scopes, as far as they are not newer.
        words: The stems of the query's words with their postings, in the order of the query.
    """

    state: State
    lengths: Lengths
    scopes: dict[object, ScopeIds]
    words: Sequence[tuple[str, Postings]]


class PostingCache:
    """A cache of the postings of the last words, shared by the reader threads.

    Args:
        capacity: How many bytes the postings may take; 0: there is no cache.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._size = 0
        self._spent = 0
        self._lengths: tuple[State, Lengths] | None = None
        self._words: OrderedDict[str, _Word] = OrderedDict()
        self._texts: dict[int, Text] = {}
        self._scopes: dict[object, ScopeIds] = {}
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """The size of all words and their postings in bytes."""
        return self._size

    @property
    def is_ready(self) -> bool:
        """Whether the lengths of all items are cached."""
        return self._lengths is not None

    def spend(self, postings: int) -> None:
        """Count the postings that a search without the cache stepped through."""
        self._spent += postings

    def view(
        self, connection: sqlite3.Connection, state: State, quoted: Iterable[str]
    ) -> View | None:
        """Return the postings of words, or `None` if the search cannot use the cache.

        Args:
            connection: The connection.
            state: The state that the transaction sees.
            quoted: The words as a query has them.
        """
        with self._lock:
            lengths = self._lengths_for(connection, state)
            if lengths is None:
                return None
            words: list[tuple[str, Postings]] = []
            for each in quoted:
                word = stem(each.strip('"'))
                postings = self._postings(connection, state, word, each)
                if postings is None:
                    return None
                words.append((word, postings))
            return View(*lengths, self._scopes, words)

    def drop(self) -> None:
        """Forget everything."""
        with self._lock:
            self._clear()

    def _clear(self) -> None:
        self._lengths = None
        # A search may still use those of before.
        self._scopes = {}
        self._words.clear()
        self._texts.clear()
        self._size = self._spent = 0

    def _lengths_for(
        self, connection: sqlite3.Connection, state: State
    ) -> tuple[State, Lengths] | None:
        """Return the lengths with their state, if they are of use in another state."""
        rows = state.totals.rows
        if self._lengths is None:
            if not self._capacity or self._spent < _WORTH * rows:
                return None
            lengths = read_lengths(connection)
            self._clear()
            self._lengths = None if lengths is None else (state, lengths)
            return self._lengths
        return None if state.is_older(self._lengths[0]) else self._lengths

    def _postings(
        self, connection: sqlite3.Connection, state: State, word: str, quoted: str
    ) -> Postings | None:
        held = self._words.get(word)
        if held is None:
            held = _Word(self._read(connection, word, quoted), state)
            self._words[word] = held
            self._size += held.size
            while self._size > self._capacity and len(self._words) > 1:
                self._size -= self._words.popitem(last=False)[1].size
        if state.is_older(held.state):
            return None
        self._words.move_to_end(word)
        return held.postings

    def _read(self, connection: sqlite3.Connection, word: str, quoted: str) -> Postings | None:
        found = read_postings(connection, word, quoted)
        if found is None or found.size * _SHARE > self._capacity:
            return None
        return found

    def texts(
        self, connection: sqlite3.Connection, revisions: Sequence[tuple[int, int]]
    ) -> list[Text]:
        """Return the words of items that are newer than the cache.

        Args:
            connection: The connection.
            revisions: The ids and the revisions of the items.
        """
        found = {revision: self._texts.get(revision) for _, revision in revisions}
        unknown = {item: revision for item, revision in revisions if found[revision] is None}
        if unknown:
            rows = connection.execute(queries.TEXTS, (json.dumps(list(unknown)),))
            for item, text in rows:
                counts = count_searchable(text)
                # One more: the word of the namespace.
                found[unknown[item]] = Text(sum(counts.values()) + 1, counts)
            self._texts.update({each: text for each, text in found.items() if text is not None})
        return [text for _, revision in revisions if (text := found[revision]) is not None]
