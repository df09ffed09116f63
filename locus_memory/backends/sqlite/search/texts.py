"""Searches on a connection: the matches of words, and the newest items, that satisfy a filter."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, NamedTuple, Self

from locus_memory.backends.selection import Page
from locus_memory.backends.sqlite import queries
from locus_memory.backends.sqlite.items import Scope, item_of, scored
from locus_memory.backends.sqlite.search.filters import compile_filter
from locus_memory.store.filters import Condition
from locus_memory.store.item import StoreItem

__all__ = ["Hit", "Matches", "Totals", "newest"]

_LEAST: Final = 1e-6
"""The weight that FTS5 gives a word of more than half of the items."""

_K: Final = 2.2
"""The most of its weight that a word adds to a score, in FTS5's BM25: 1 + `k1`."""

_SHARE_OF_RARE: Final = 0.125
"""The most of the items that have the rare words together."""

_FIRST, _GROWTH = 256, 8
"""The number of revisions that are read first, and how many times as many are read next."""

Hit = tuple[int, int, float]
"""The id, the revision and the score of an item."""


class Totals(NamedTuple):
    """The number of indexed items of a file, and of all their words."""

    rows: int
    words: int

    @classmethod
    def of(cls, connection: sqlite3.Connection) -> Self:
        """Return the totals that a transaction sees.

        FTS5 keeps them as varints: https://www.sqlite.org/fts5.html#the_data_table
        """
        numbers, number = list[int](), 0
        for octet in connection.execute(queries.TEXT_TOTALS).fetchone()[0]:
            number = number << 7 | octet & 0x7F
            if octet < 0x80:  # noqa: PLR2004 - the last byte of a number
                numbers.append(number)
                number = 0
        rows, *words = numbers or [0]
        return cls(rows, sum(words))

    def weight(self, having: int) -> float:
        """Return the weight of a word that so many items have."""
        rows = max(self.rows, having)
        return max(_LEAST, math.log((rows - having + 0.5) / (having + 0.5)))

    @property
    def mean(self) -> float:
        """The mean number of words of an item, with the word of its namespace."""
        return self.words / self.rows


@dataclass(frozen=True, slots=True)
class Matches:
    """A search without its words.

    Attributes:
        connection: The connection.
        where: The compiled filter.
        recursive: Whether the namespaces below `:path` are searched, or `:namespace`.
        values: The parameters of the statements.
        totals: The numbers of the file.
    """

    connection: sqlite3.Connection
    where: str
    recursive: bool
    values: dict[str, object]
    totals: Totals

    @classmethod
    def of(
        cls, connection: sqlite3.Connection, scope: Scope, condition: Condition
    ) -> Matches | None:
        """Return the search of a scope, or `None` if there is nothing in it."""
        where, values = compile_filter(condition, metadata="i.metadata", value="i.value")
        values |= scope.bound_values
        if scope.recursive:
            found = connection.execute(queries.ANY_BELOW, values).fetchone()
        else:
            found = connection.execute(queries.NAMESPACE, (scope.path,)).fetchone()
            values["namespace"] = found and found[0]
        if found is None:
            return None
        return cls(connection, where, scope.recursive, values, Totals.of(connection))

    def page(self, quoted: Sequence[str], page: Page, *, is_many: bool) -> list[Hit]:
        """Return a page of the matches of any of the words as FTS5 ranks them, the best first.

        A namespace is a word of the index as well: with it, FTS5 reads no match of another one, but
        all items of its own. Of a large namespace it is faster to check each match.

        Args:
            quoted: The words.
            page: Which of the matches.
            is_many: Whether many items have one of the words: those with a rare one come first.
        """
        namespace = self.values.get("namespace")
        large = self.connection.execute(queries.IS_LARGE, (namespace,)).fetchone()
        scope = "" if namespace is None or large else f'scope : "n{namespace}" AND '
        most = page.offset + page.limit
        counts = {each: self._count(each) for each in quoted} if is_many else {}
        # Always the rarest first: the last digits of a sum depend on the order.
        words = sorted(counts, key=counts.__getitem__) or quoted
        found = self._of_rare(words, counts, scope, most) if is_many else None
        if found is None:
            return self._ranked(f"{scope}{_any_of(words)}", page)
        return found[page.offset : most]

    def _of_rare(
        self, words: Sequence[str], counts: Mapping[str, int], scope: str, most: int
    ) -> list[Hit] | None:
        """Return the best items, if all of them have a rare word; `None`: there may be others.

        An item without one scores less than the sum of what each common word adds at most. This is
        the idea of MaxScore: Turtle and Flood, Query evaluation: strategies and optimizations,
        1995, https://doi.org/10.1016/0306-4573(95)00020-H
        """
        ends = accumulate(counts[each] for each in words)
        size = sum(end <= self.totals.rows * _SHARE_OF_RARE for end in ends)
        rare, common = words[:size], words[size:]
        bound, best = (_K * sum(self.totals.weight(counts[w]) for w in ws) for ws in (common, rare))
        if not common or best <= bound:
            return None
        first = Page(limit=most, offset=0)
        found = self._ranked(f"{scope}{_any_of(rare)}", first)
        if len(found) < most or found[-1][2] <= bound:
            return None
        # An item that has a common word as well is found again, with its whole score.
        both = f"{scope}{_any_of(rare)} AND {_any_of(common)}"
        more = {hit[0]: hit for hit in (*found, *self._ranked(both, first))}
        return sorted(more.values(), key=lambda hit: (hit[2], hit[1]), reverse=True)[:most]

    def _ranked(self, match: str, page: Page) -> list[Hit]:
        statement = queries.search_items(self.where, recursive=self.recursive)
        values = {**self.values, "match": match, "limit": page.limit, "offset": page.offset}
        return self.connection.execute(statement, values).fetchall()

    def _count(self, word: str) -> int:
        (found,) = self.connection.execute(queries.COUNT_MATCHES, (_any_of([word]), -1)).fetchone()
        return int(found)

    def are_more(self, quoted: Sequence[str], most: int) -> bool:
        """Return whether more than `most` items of the file have any of the words."""
        found = self.connection.execute(queries.COUNT_MATCHES, (_any_of(quoted), most + 1))
        return int(found.fetchone()[0]) > most

    def newer(self, after: int, known: int, most: int, *, everywhere: bool) -> list[Hit] | None:
        """Return the items of the scope, or of the file, after a revision; `None`: too many.

        Each is an id, a revision, and whether the search may find it. Items without a text are left
        out, unless their ids are below `known`: they may have had one.
        """
        statement = queries.newer(self.where, recursive=self.recursive, everywhere=everywhere)
        values = {**self.values, "after": after, "known": known, "most": most + 1}
        found = self.connection.execute(statement, values).fetchall()
        return None if len(found) > most else found

    def ids(self, until: int, below: int, most: int) -> list[int] | None:
        """Return the ids of the scope's items, or `None` if there are more than `most`.

        They are below a number, in order, and of items until a revision.
        """
        statement = queries.ids_until(recursive=self.recursive)
        values = {**self.values, "until": until, "most": most + 1}
        found = self.connection.execute(statement, values).fetchall()
        return None if len(found) > most else sorted(item for (item,) in found if item < below)

    def of_those(self, ids: Iterable[int]) -> list[tuple[int, int]]:
        """Return the ids and revisions of those of the items that the search may find."""
        statement = queries.of_those(self.where, recursive=self.recursive)
        values = {**self.values, "ids": json.dumps(list(ids))}
        return self.connection.execute(statement, values).fetchall()


def _any_of(quoted: Iterable[str]) -> str:
    return f"text : ({' OR '.join(quoted)})"


def newest(
    connection: sqlite3.Connection, scope: Scope, condition: Condition, page: Page
) -> list[StoreItem]:
    """Return the items that satisfy the condition, the newest write first."""
    where, values = compile_filter(condition, metadata="i.metadata", value="i.value")
    values |= scope.bound_values | {"limit": page.limit, "offset": page.offset}
    if not scope.recursive:
        return [scored(row) for row in connection.execute(queries.newest_items(where), values)]
    found = _found(connection, queries.newest_of(where), values, page.offset + page.limit)
    wanted = [item for _, item in found[page.offset : page.offset + page.limit]]
    rows = connection.execute(queries.ITEMS, {"ids": json.dumps(wanted)})
    # The rows come in the order of the ids.
    return [item_of(row[1:]) for row in rows]


def _found(
    connection: sqlite3.Connection, statement: str, values: Mapping[str, Any], count: int
) -> list[tuple[int, int]]:
    """Return the revisions and ids of the newest writes of all namespaces, at least `count`.

    The revisions are read in parts, the last ones first, so a filter is evaluated for few items
    more than it takes to find the wanted ones, whatever namespaces these are in.
    """
    found: list[tuple[int, int]] = []
    (high,) = connection.execute(queries.NEWEST_REVISION).fetchone()
    size = _FIRST
    while high > 0 and len(found) < count:
        part = {**values, "low": high - size, "high": high}
        found += connection.execute(statement, part).fetchall()
        high, size = high - size, size * _GROWTH
    return found
