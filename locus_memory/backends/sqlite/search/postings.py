"""Text search over cached postings: the hits and scores of FTS5, in a tenth of its time.

In a large file, FTS5 steps through every item that has a word, in each statement. Here the items of
a word are kept as arrays, and ranked all at once by FTS5's own formula: see `ranking.py`. The cache
is made of one state of the file. Items that are put later have a higher revision, and are read
beside it; deleted ones are dropped when the hits are read. After many changes it is made again.
"""

from __future__ import annotations

import json
import re
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from locus_memory.backends.sqlite import queries
from locus_memory.backends.sqlite.items import OutdatedError
from locus_memory.backends.sqlite.search.ranking import (
    Ids,
    Lengths,
    Postings,
    Text,
    Weighed,
    best_first,
    best_of,
    score_of,
    scores_of,
    shared,
)
from locus_memory.backends.sqlite.search.texts import Hit, Matches
from locus_memory.store.text import count_searchable, stem

__all__ = ["PostedSearch"]

_RECENT: Final = 2_000
"""So many items may be newer than the cache."""

_STEADY: Final = 32
"""The cache is made again once as many writes as one of this many items are newer."""

_FEW: Final = 4_096
"""A scope of so few items is ranked by itself."""

_REMEMBERED: Final = 256
"""The number of scopes whose ids are cached."""

_SHARE: Final = 4
"""The postings of a word may take one of this many parts of the cache."""

_WORD_BYTES: Final = 640
"""How many bytes a word takes besides its postings, about: a word that no item has takes these."""

_CHUNK: Final = 65_536
"""The number of lengths that are read at a time."""

_SPARSE: Final = 8
"""An array with a place for each id may be so many times as long as there are items."""

_SMALL: Final = 1_000_000
"""The array may have so many places in any case."""

_SCOPE = re.compile(r"n\d+")
"""Words that look like the scope of a namespace, which is in the index as well."""


class _View(NamedTuple):
    """The cache as one search uses it.

    Attributes:
        newest: The revision of the lengths.
        lengths: The number of words of each item, by its id.
        words: The stems of the query's words with their postings, in the order of the query.
        scopes: The ids of the items of scopes that have few.
    """

    newest: int
    lengths: Lengths
    words: Sequence[tuple[str, Postings]]
    scopes: dict[Any, Ids | None]


class _Recent(NamedTuple):
    """An item that is newer than the cache, and whether the search may find it."""

    id: int
    revision: int
    is_wanted: bool
    text: Text


class PostedSearch:
    """A text search by the postings of the last words, shared by the reader threads.

    Args:
        capacity: How many bytes the postings may take.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._size = 0
        self._newest, self._latest = -1, -1
        self._lengths: Lengths | None = None
        self._words: OrderedDict[str, Postings | None] = OrderedDict()
        self._texts: dict[int, Text] = {}
        self._scopes: dict[Any, Ids | None] = {}
        self._lock = threading.Lock()

    def find(self, matches: Matches, quoted: Sequence[str], limit: int) -> list[Hit] | None:
        """Return the best matches of any of the words, or `None` if FTS5 has to find them.

        Args:
            matches: The scope and the filter.
            quoted: The words as a query has them.
            limit: How many matches to return, at least 1.

        Raises:
            OutdatedError: The transaction is older than the cache.
        """
        with self._lock:
            view = self._view(matches, quoted)
            recent = None if view is None else self._recent(matches, view)
            if view is not None and recent is None:
                self._clear()
                view = self._view(matches, quoted)
                recent = []
        if view is None or recent is None:
            return None
        asked = {word for word, _ in view.words}
        # Few new items have a word of the query: the others cost one look.
        matching = [each for each in recent if not each.text.counts.keys().isdisjoint(asked)]
        known, totals = len(view.lengths), matches.totals
        replaced = np.array(sorted(each.id for each in recent if each.id < known), np.int64)
        words = [
            Weighed(
                word,
                postings,
                totals.weight(
                    postings.count(known, replaced)
                    + sum(word in each.text.counts for each in matching)
                ),
            )
            for word, postings in view.words
        ]
        found = [
            (each.id, each.revision, score_of(each.text, words, totals))
            for each in matching
            if each.is_wanted
        ]
        ids = self._ids(matches, view)
        if ids is None:
            parts = best_first(partial(best_of, words, view.lengths, totals, replaced), limit)
        else:
            scores = scores_of(ids, words, view.lengths, totals)
            scores[shared(replaced, ids)[1]] = 0.0
            parts = iter([(ids[scores > 0], scores[scores > 0])])
        for ids, scores in parts:
            score = dict(zip(ids.tolist(), scores.tolist(), strict=True))
            found += [(item, revision, score[item]) for item, revision in matches.of_those(score)]
            # All scores of the next parts are lower than those of this part.
            if len(scores) and sum(row[2] >= scores[-1] for row in found) >= limit:
                break
        return sorted(found, key=lambda row: (-row[2], -row[1]))[:limit]

    def _ids(self, matches: Matches, view: _View) -> Ids | None:
        """Return the cached items of a scope that has few, in order; `None`: it has more.

        A filter does not count, and some may be replaced or deleted by now.
        """
        name = matches.values.get("namespace"), matches.recursive and matches.values["path"]
        held = view.scopes.get(name, ())
        if not isinstance(held, tuple):
            return held
        found = matches.ids(view.newest, len(view.lengths), _FEW)
        ids = None if found is None else np.array(found, np.int64)
        if len(view.scopes) >= _REMEMBERED:
            view.scopes.clear()
        view.scopes[name] = ids
        return ids

    def _view(self, matches: Matches, quoted: Sequence[str]) -> _View | None:
        """Return the postings of words, or `None` if the search cannot use the cache."""
        connection = matches.connection
        (newest,) = connection.execute(queries.NEWEST_REVISION).fetchone()
        if newest < self._latest:
            raise OutdatedError
        if (newest - self._newest) * _STEADY > max(matches.totals.rows, _STEADY):
            self._clear()
        self._latest = newest
        if self._lengths is None:
            self._newest, self._lengths = newest, _read_lengths(connection)
        words = [(stem(each.strip('"')), each) for each in quoted]
        found = [(word, self._postings(connection, word, each)) for word, each in words]
        if self._lengths is None:
            return None
        usable = [(word, postings) for word, postings in found if postings is not None]
        is_usable = len(usable) == len(found)
        return _View(self._newest, self._lengths, usable, self._scopes) if is_usable else None

    def _clear(self) -> None:
        self._lengths = None
        # A search may still use those of before.
        self._words, self._texts, self._scopes = OrderedDict(), {}, {}
        self._size = 0

    def _postings(self, connection: sqlite3.Connection, word: str, quoted: str) -> Postings | None:
        if word not in self._words:
            found = _read_postings(connection, word, quoted)
            if found is not None and found.size * _SHARE > self._capacity:
                found = None
            self._words[word] = found
            self._size += _size(found)
            while self._size > self._capacity and len(self._words) > 1:
                self._size -= _size(self._words.popitem(last=False)[1])
        self._words.move_to_end(word)
        return self._words[word]

    def _recent(self, matches: Matches, view: _View) -> list[_Recent] | None:
        """Return the items that are newer than the cache; `None`: too many.

        In a small file they are those of the whole file, and the scores are those of FTS5. In a
        large one they are those of the scope: what is put or deleted elsewhere changes the weights
        by at most one of `_STEADY`.
        """
        everywhere = matches.totals.rows < _RECENT * _STEADY
        found = matches.newer(view.newest, len(view.lengths), _RECENT, everywhere=everywhere)
        if found is None:
            return None
        unknown = [item for item, revision, _ in found if revision not in self._texts]
        if unknown:
            counts = {
                item: count_searchable(text)
                for item, text in matches.connection.execute(queries.TEXTS, (json.dumps(unknown),))
            }
            for item, revision, _ in found:
                if item in counts:
                    # One more: the word of the namespace.
                    text = Text(sum(counts[item].values()) + 1, counts[item])
                    self._texts[revision] = text
        return [
            _Recent(item, revision, bool(wanted), self._texts[revision])
            for item, revision, wanted in found
        ]


def _size(postings: Postings | None) -> int:
    """Return how many bytes a word takes in memory, about."""
    return _WORD_BYTES + (0 if postings is None else postings.size)


def _read_postings(connection: sqlite3.Connection, word: str, quoted: str) -> Postings | None:
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
    found = Postings.of(_numbers(connection.execute(statement, (word,)).fetchone()[0]))
    (count,) = connection.execute(queries.COUNT_MATCHES, (f"text : {quoted}", -1)).fetchone()
    return found if len(found.ids) == count else None


def _numbers(listed: Any) -> Ids:
    """Return the numbers of a list that SQLite made; a list of one may be a number."""
    found: Ids = np.fromstring("" if listed is None else str(listed), dtype=np.int64, sep=",")
    return found


def _read_lengths(connection: sqlite3.Connection) -> Lengths | None:
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
