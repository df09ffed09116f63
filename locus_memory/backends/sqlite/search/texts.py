"""Text search by BM25, within one namespace or a tree of them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from locus_memory.backends.selection import Page
from locus_memory.backends.sqlite import queries
from locus_memory.backends.sqlite.items import Scope
from locus_memory.backends.sqlite.search.absent import AbsentWords
from locus_memory.backends.sqlite.search.filters import compile_filter
from locus_memory.backends.sqlite.search.pruning import (
    Word,
    best_of,
    most_of,
    split,
    weighed,
    with_heavy,
)
from locus_memory.store.filters import Condition

if TYPE_CHECKING:
    from locus_memory.backends.sqlite.search.posted.search import PostedSearch

__all__ = ["LongSearchError", "TextSearch"]

_USES: Final = 256
"""How many searches reuse the result of a check of a namespace's or word's size."""

_STEADY: Final = 32
"""Counts are renewed once the number of items has changed by one of this many."""

_UNASKED: Final = 2
"""How many searches a word is in before it is checked: most words never come again."""

_UNCOMMON: Final = 6
"""A word of fewer items than one of this many of the file is common in no large namespace.

Three quarters of a namespace are more, if it has at least a quarter of all items.
"""

_LITTLE: Final = 1e-9
"""The weight of common words: FTS5 gives no word less than a millionth."""

_MOST_WORDS, _MOST_BOUNDED = 12, 200
"""The words of a query, and the hits of a page, up to which work is bounded."""

_MORE: Final = 10
"""How many times the wanted hits are ranked by rarer words before the others count."""

_CHEAP: Final = 5_000
"""So many matches are ranked without further ado."""

_FEW: Final = 2 * _CHEAP
"""A search in a file of so few items is quick, whatever matches."""

_UNCOUNTED: Final = 1_000
"""In a file of so few items, matches are ranked without being counted before."""

_MANY: Final = 500
"""More matches are ranked faster by postings."""

_REMEMBERED: Final = 1_024
"""The number of cached namespaces or words."""


class LongSearchError(Exception):
    """A search that others wait for would rank many matches."""


class TextSearch:
    """A text search that caches which namespaces and words fill much of the database.

    To rank, FTS5 reads for each word in how many items it is. A namespace is a word as well, so
    a search for it reads no match of another namespace, but all of its own items. For a namespace
    that holds much of the database, it is faster to check the namespace of each match.

    A word that nearly all items have weighs nothing (to a word of more than half of the items,
    FTS5 gives a millionth), and ranking the matches of such words alone takes the longest. So these
    matches come after those of other words, and are searched only if the page is not full.

    In a large file, the postings of words are cached once searches have stepped through many.

    Args:
        capacity: How many bytes the cached postings may take; 0: there are none.
        shares_writes: Whether a search may read a write that is rolled back later: nothing is
            cached then.
    """

    def __init__(self, capacity: int = 0) -> None:
        self._capacity = capacity
        self._posted: PostedSearch | None = None
        self._absent = AbsentWords()
        self._large: dict[int, tuple[bool, int]] = {}
        self._common: dict[tuple[int | None, str], tuple[bool, int]] = {}
        self._counts: dict[str, tuple[int, int, int]] = {}
        self._is_quick = False

    @property
    def is_quick(self) -> bool:
        """Whether the last search ranked few matches, so that the next one may do so too."""
        return self._is_quick

    def find(
        self,
        connection: sqlite3.Connection,
        scope: Scope,
        words: Iterable[str],
        condition: Condition,
        page: Page,
        *,
        whole: bool = True,
        is_short: bool = False,
    ) -> list[Any]:
        """Return the matches of any of the words that satisfy the condition, the best first.

        Args:
            connection: The connection.
            scope: The namespaces.
            words: The words to find.
            condition: A filter.
            page: The wanted part of the hits.
            whole: Whether the rows are full items with their scores, or ids with
                revisions and scores.
            is_short: Whether others wait.

        Raises:
            LongSearchError: Others wait, and there are many matches.
        """
        if not page.limit:
            return []
        values: dict[str, object] = {}
        namespace, within = None, ""
        if not scope.recursive:
            found = connection.execute(queries.NAMESPACE, (scope.path,)).fetchone()
            if found is None:
                return []
            values["namespace"] = namespace = found[0]
            if not self._is_large(connection, namespace):
                within = _only(namespace)
        where, bound = compile_filter(condition, metadata="i.metadata", value="i.value")
        values |= bound | scope.bound_values
        search = _Search(connection, where, scope, values, within, is_short)
        found = self._ranked(search, namespace, [f'"{word}"' for word in words], page)
        return _items(connection, found) if whole else found

    def _ranked(
        self, search: _Search, namespace: int | None, quoted: list[str], page: Page
    ) -> list[Any]:
        """Return a page of the matches as ids, revisions and scores."""
        common = [each for each in quoted if self._is_common(search, namespace, each)]
        telling = [each for each in quoted if each not in common]
        if not common or not telling:
            return self._best(search, quoted, page)
        best = self._best(search, telling, page)
        if len(best) == page.limit:
            return best
        before = page.offset + len(best)
        self._check_time(search, _is_few(search.items()))
        if not best and page.offset:
            before = search.count(_any_of(telling))
        rest = Page(page.limit - len(best), max(0, page.offset - before))
        return best + search.page(f"({_any_of(common)} NOT {_any_of(telling)})", rest, _LITTLE)

    def _best(self, search: _Search, quoted: list[str], page: Page) -> list[Any]:
        """Return a page of the matches of any of the words, the first ones with bounded work."""
        items, limit = search.items(), page.offset + page.limit
        if not items:
            return []
        is_bounded = len(quoted) <= _MOST_WORDS and limit <= _MOST_BOUNDED
        if is_bounded:
            quoted = self._present(search, quoted)
        if not quoted:
            return []
        is_direct = bool(search.within) and (_is_few(items) or not is_bounded)
        counts = is_bounded and items > _UNCOUNTED and not is_direct and not self._is_warm(items)
        matches = sum(self._count(search, each, items) for each in quoted) if counts else items
        self._check_time(search, matches <= _MANY or _is_few(items))
        if is_direct or matches <= _MANY or items <= _UNCOUNTED:
            return search.page(_any_of(quoted), page)
        found = self._posted_best(search, quoted, limit, matches)
        if found is None and is_bounded:
            found = self._ranked_best(search, quoted, items, limit)
        return search.page(_any_of(quoted), page) if found is None else found[page.offset :]

    def _check_time(self, search: _Search, is_quick: bool) -> None:  # noqa: FBT001 - private
        """Note whether a search is quick.

        Raises:
            LongSearchError: It is not, and others wait for it.
        """
        self._is_quick = is_quick
        if search.is_short and not is_quick:
            raise LongSearchError

    def _posted_best(
        self, search: _Search, quoted: list[str], limit: int, matches: int
    ) -> list[Any] | None:
        """Return the best matches by cached postings, or `None` if these cannot be used."""
        if not self._capacity:
            return None
        from locus_memory.backends.sqlite.search.posted import search as posted  # noqa: PLC0415 - it loads numpy

        if self._posted is None:
            self._posted = posted.PostedSearch(self._capacity)
        target = posted.Target(
            search.connection, search.where, search.scope.recursive, search.values
        )
        rows, *words = search.totals()
        newest = search.connection.execute(queries.NEWEST_REVISION).fetchone()[0]
        state = posted.State(newest, posted.Totals(rows, sum(words)))
        found = self._posted.find(target, state, quoted, limit)
        if found is None:
            self._posted.cache.spend(matches)
        return found

    def _is_warm(self, items: int) -> bool:
        """Return whether cached postings rank a few items, whatever matches."""
        return self._posted is not None and self._posted.cache.is_ready and _is_few(items)

    def _ranked_best(self, search: _Search, quoted: list[str], items: int, limit: int) -> list[Any]:
        """Return the best matches as FTS5 ranks them."""
        words = weighed(items, [(each, self._count(search, each, items)) for each in quoted])
        matches = sum(word.having for word in words)
        if search.within or len(quoted) == 1 or matches <= _CHEAP:
            return search.page(_any_of(quoted), Page(limit))
        light, heavy = split(words, items)
        if heavy and len(light) > 1:
            found = search.best(light, _MORE * limit)
            best = with_heavy(found, search.texts(found), heavy, search.mean_length())[:limit]
            missed = found[-1][-1] + most_of(heavy) if found else 0.0
            if len(best) == limit and best[-1][-1] >= missed:
                return best
        return search.best(words, limit)

    def _present(self, search: _Search, quoted: list[str]) -> list[str]:
        """Return the words but those that no item of the namespace has; the scores are the same."""
        namespace = search.values.get("namespace")
        if search.within or self._absent is None or not isinstance(namespace, int):
            return quoted
        return self._absent.without(search.connection, namespace, quoted)

    def _count(self, search: _Search, word: str, items: int) -> int:
        """Return about how many items of the file have a word; `items` is how many there are."""
        known, uses, then = self._counts.get(word, (0, 0, 0))
        if uses == 0 or abs(items - then) * _STEADY > then:
            statement = queries.count_word(f"text : {word}")
            known = int(search.connection.execute(*statement).fetchone()[0])
            if len(self._counts) >= _REMEMBERED:
                self._counts.clear()
            uses, then = _USES, items
        self._counts[word] = known, uses - 1, then
        return known

    def _is_large(self, connection: sqlite3.Connection, namespace: int) -> bool:
        def look() -> bool:
            return connection.execute(queries.IS_LARGE, (namespace,)).fetchone() is not None

        return _remembered(self._large, namespace, look, unasked=0)

    def _is_common(self, search: _Search, namespace: int | None, word: str) -> bool:
        """Return whether nearly all items of a namespace, or without one all items, have a word."""

        def look() -> bool:
            items = search.items()
            if not search.within and self._count(search, word, items) * _UNCOMMON < items:
                return False
            match = "" if namespace is None else _only(namespace)
            values = {"match": f"{match}text : {word}", "namespace": namespace}
            return search.connection.execute(queries.IS_COMMON, values).fetchone() is not None

        return _remembered(self._common, (namespace, word), look, unasked=_UNASKED)


def _is_few(items: int) -> bool:
    return items <= _FEW


def _only(namespace: int) -> str:
    """Return the expression that restricts a match to a namespace."""
    return f'scope : "n{namespace}" AND '


_T = TypeVar("_T")


def _remembered(
    known: dict[_T, tuple[bool, int]], name: _T, look: Callable[[], bool], *, unasked: int
) -> bool:
    """Return a cached result, for `_USES` uses; a new name is false for `unasked` uses first."""
    found, uses = known.get(name, (False, unasked))
    if uses == 0:
        found, uses = look(), _USES
        if len(known) >= _REMEMBERED:
            known.clear()
    known[name] = found, uses - 1
    return found


def _items(connection: sqlite3.Connection, found: Sequence[tuple[int, int, float]]) -> list[Any]:
    """Return full items with their scores, as rows."""
    wanted = {"ids": json.dumps([item for item, _, _ in found])}
    rows = {row[0]: row[1:] for row in connection.execute(queries.ITEMS, wanted)}
    return [(*rows[revision], score) for _, revision, score in found]


def _varints(data: bytes) -> list[int]:
    """Return the numbers of SQLite's varints, each of fewer than nine bytes."""
    numbers, number = list[int](), 0
    for octet in data:
        number = number << 7 | octet & 0x7F
        if octet < 0x80:  # noqa: PLR2004 - the last byte of a number
            numbers.append(number)
            number = 0
    return numbers


def _any_of(words: Iterable[str]) -> str:
    return f"text : ({' OR '.join(words)})"


@dataclass(frozen=True, slots=True)
class _Search:
    """A search without its words.

    Attributes:
        connection: The connection.
        where: The compiled filter.
        scope: The namespaces.
        values: The parameters of the statement.
        within: The expression before each match.
        is_short: Whether others wait for it.
        known: The totals, once they are read.
    """

    connection: sqlite3.Connection
    where: str
    scope: Scope
    values: dict[str, object]
    within: str
    is_short: bool = False
    known: list[int] = field(default_factory=list)

    def page(self, match: str, page: Page, weight: float = 1.0) -> list[Any]:
        """Return a page of the matches: ids, revisions, and scores times the weight."""
        statement = queries.search_items(self.where, recursive=self.scope.recursive)
        values = self.values | {"match": self.within + match, "weight": weight}
        values |= {"limit": page.limit, "offset": page.offset}
        return self.connection.execute(statement, values).fetchall()

    def best(self, words: Sequence[Word], limit: int) -> list[Any]:
        """Return the best matches of any of the words."""
        page = Page(limit)
        if len(words) == 1:
            return self.page(_any_of([words[0].quoted]), page)
        return best_of(words, limit, lambda match: self.page(match, page))

    def texts(self, found: Iterable[Sequence[Any]]) -> dict[int, str]:
        """Return the texts of matches, by the ids of the items."""
        wanted = json.dumps([row[0] for row in found])
        return dict(self.connection.execute(queries.TEXTS, (wanted,)).fetchall())

    def mean_length(self) -> float:
        """Return the mean number of words of an item, with the word of its namespace."""
        rows, *words = self.totals()
        return max(1.0, sum(words) / max(1, rows))

    def items(self) -> int:
        """Return how many items the file has that have words, as FTS5 counts them."""
        return self.totals()[0]

    def totals(self) -> list[int]:
        """Return the number of rows, and of the words of each column.

        FTS5 keeps them as varints: https://www.sqlite.org/fts5.html#the_data_table
        """
        if not self.known:
            (totals,) = self.connection.execute(queries.TEXT_TOTALS).fetchone()
            self.known.extend(_varints(totals) or [0])
        return self.known

    def count(self, match: str) -> int:
        """Return the number of matches."""
        statement = queries.count_matches(self.where, recursive=self.scope.recursive)
        values = self.values | {"match": self.within + match}
        return int(self.connection.execute(statement, values).fetchone()[0])
