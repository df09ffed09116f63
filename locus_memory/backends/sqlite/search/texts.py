"""Text search by BM25, within one namespace or a tree of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from locus_memory.backends.selection import Page
from locus_memory.backends.sqlite import queries
from locus_memory.backends.sqlite.items import Scope
from locus_memory.backends.sqlite.search.filters import compile_filter
from locus_memory.store.filters import Condition

__all__ = ["TextSearch"]

_USES: Final = 256
"""How many searches reuse the result of a check of a namespace's or word's size."""

_UNASKED: Final = 2
"""How many searches a word is in before it is checked: most words never come again."""

_LITTLE: Final = 1e-9
"""The weight of common words: FTS5 gives no word less than a millionth."""

_REMEMBERED: Final = 1_024
"""The number of cached namespaces or words."""


class TextSearch:
    """A text search that caches which namespaces and words fill much of the database.

    To rank, FTS5 reads for each word in how many items it is. A namespace is a word as well, so
    a search for it reads no match of another namespace, but all of its own items. For a namespace
    that holds much of the database, it is faster to check the namespace of each match.

    A word that nearly all items have weighs nothing (to a word of more than half of the items,
    FTS5 gives a millionth), and ranking the matches of such words alone takes the longest. So these
    matches come after those of other words, and are searched only if the page is not full.
    """

    def __init__(self) -> None:
        self._large: dict[int, tuple[bool, int]] = {}
        self._common: dict[tuple[int | None, str], tuple[bool, int]] = {}

    def find(
        self,
        connection: sqlite3.Connection,
        scope: Scope,
        words: Iterable[str],
        condition: Condition,
        page: Page,
        *,
        whole: bool = True,
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
        """
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
        search = _Search(connection, where, scope, values, within, whole)
        quoted = [f'"{word}"' for word in words]
        common = [each for each in quoted if self._is_common(connection, namespace, each)]
        telling = [each for each in quoted if each not in common]
        if not common or not telling:
            return search.page(_any_of(quoted), page)
        best = search.page(_any_of(telling), page)
        if len(best) == page.limit:
            return best
        before = page.offset + len(best)
        if not best and page.offset:
            before = search.count(_any_of(telling))
        rest = Page(page.limit - len(best), max(0, page.offset - before))
        return best + search.page(f"({_any_of(common)} NOT {_any_of(telling)})", rest, _LITTLE)

    def _is_large(self, connection: sqlite3.Connection, namespace: int) -> bool:
        def look() -> bool:
            return connection.execute(queries.IS_LARGE, (namespace,)).fetchone() is not None

        return _remembered(self._large, namespace, look, unasked=0)

    def _is_common(self, connection: sqlite3.Connection, namespace: int | None, word: str) -> bool:
        """Return whether nearly all items of a namespace, or without one all items, have a word."""

        def look() -> bool:
            match = "" if namespace is None else _only(namespace)
            values = {"match": f"{match}text : {word}", "namespace": namespace}
            return connection.execute(queries.IS_COMMON, values).fetchone() is not None

        return _remembered(self._common, (namespace, word), look, unasked=_UNASKED)


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
        whole: Whether to return full items, or ids.
    """

    connection: sqlite3.Connection
    where: str
    scope: Scope
    values: dict[str, object]
    within: str
    whole: bool

    def page(self, match: str, page: Page, weight: float = 1.0) -> list[Any]:
        """Return a page of the matches as rows, the best first, with scores times the weight."""
        recursive = self.scope.recursive
        statement = queries.search_items(self.where, recursive=recursive, whole=self.whole)
        values = self.values | {"match": self.within + match, "weight": weight}
        values |= {"limit": page.limit, "offset": page.offset}
        return self.connection.execute(statement, values).fetchall()

    def count(self, match: str) -> int:
        """Return the number of matches."""
        statement = queries.count_matches(self.where, recursive=self.scope.recursive)
        values = self.values | {"match": self.within + match}
        return int(self.connection.execute(statement, values).fetchone()[0])
