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
"""How many searches go by what was found of the size of a namespace, or of a word."""

_UNASKED: Final = 2
"""How many searches a word is in before it is asked whether it is common: most never come again."""

_LITTLE: Final = 1e-9
"""What such words weigh: FTS5 gives no word less than a millionth."""

_REMEMBERED: Final = 1_024
"""Of how many of them."""


class TextSearch:
    """Searches, and remembers which namespaces and which words fill much of the database.

    To rank, FTS5 reads of each word in how many items it is. A namespace is a word as well, so
    that a search for it meets no match of another namespace, and all of its items are read for
    its sake. For one that holds much of the database, it is quicker to look where each match is.

    A word that nearly all items there have weighs nothing (what more than half have, FTS5 gives a
    millionth), and to rank what only such words find takes the longest of all. So that comes
    after what the others find, and is looked for only where the page is not full by then.
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
        """Return what has any of the words and satisfies the condition, the best first.

        Args:
            connection: Where to search.
            scope: Which namespaces.
            words: What to search for.
            condition: A filter.
            page: Which part of the hits is wanted.
            whole: Whether the rows are of full items with their scores, or of ids with
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
        """Whether nearly all items have a word: those of a namespace, or without one, all."""

        def look() -> bool:
            match = "" if namespace is None else _only(namespace)
            values = {"match": f"{match}text : {word}", "namespace": namespace}
            return connection.execute(queries.IS_COMMON, values).fetchone() is not None

        return _remembered(self._common, (namespace, word), look, unasked=_UNASKED)


def _only(namespace: int) -> str:
    """Return what restricts a match to a namespace."""
    return f'scope : "n{namespace}" AND '


_T = TypeVar("_T")


def _remembered(
    known: dict[_T, tuple[bool, int]], name: _T, look: Callable[[], bool], *, unasked: int
) -> bool:
    """Return what is remembered, for so many uses; what is new is no, for `unasked` uses."""
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
    """A search but for its words.

    Attributes:
        connection: Where to search.
        where: The compiled filter.
        scope: Which namespaces.
        values: What the statement binds.
        within: What comes before each match.
        whole: Whether full items are wanted, or ids.
    """

    connection: sqlite3.Connection
    where: str
    scope: Scope
    values: dict[str, object]
    within: str
    whole: bool

    def page(self, match: str, page: Page, weight: float = 1.0) -> list[Any]:
        """Return a page of the matches as rows, the best first, scores times the weight."""
        recursive = self.scope.recursive
        statement = queries.search_items(self.where, recursive=recursive, whole=self.whole)
        values = self.values | {"match": self.within + match, "weight": weight}
        values |= {"limit": page.limit, "offset": page.offset}
        return self.connection.execute(statement, values).fetchall()

    def count(self, match: str) -> int:
        """Return how many matches there are."""
        statement = queries.count_matches(self.where, recursive=self.scope.recursive)
        values = self.values | {"match": self.within + match}
        return int(self.connection.execute(statement, values).fetchone()[0])
