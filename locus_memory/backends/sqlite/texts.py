"""Text search by BM25, within one namespace or a tree of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Final

from locus_memory.backends.sqlite import queries
from locus_memory.backends.sqlite.filters import compile_filter
from locus_memory.backends.sqlite.items import Page, Scope, scored
from locus_memory.store.filters import Condition
from locus_memory.store.item import StoreItem

__all__ = ["TextSearch"]

_USES: Final = 256
"""How many searches of a namespace go by what was found of its size."""

_REMEMBERED: Final = 1_024
"""Of how many namespaces."""


class TextSearch:
    """Searches, and remembers which namespaces fill much of the database.

    To rank, FTS5 reads of each word in how many items it is. A namespace is a word as well, so
    that a search for it meets no match of another namespace, and all of its items are read for
    its sake. For one that holds much of the database, it is quicker to look where each match is.
    """

    def __init__(self) -> None:
        self._large: dict[int, tuple[bool, int]] = {}

    def find(
        self,
        connection: sqlite3.Connection,
        scope: Scope,
        words: Iterable[str],
        condition: Condition,
        page: Page,
    ) -> list[StoreItem]:
        """Return the items with any of the words that satisfy the condition, the best first."""
        any_word = " OR ".join(f'"{word}"' for word in words)
        match = f"text : ({any_word})"
        values: dict[str, object] = {}
        if not scope.recursive:
            found = connection.execute(queries.NAMESPACE, (scope.path,)).fetchone()
            if found is None:
                return []
            values["namespace"] = found[0]
            if not self._is_large(connection, found[0]):
                match = f'scope : "n{found[0]}" AND {match}'
        where, bound = compile_filter(condition, metadata="i.metadata", value="i.value")
        statement = queries.search_items(where, recursive=scope.recursive)
        values |= {"limit": page.limit, "offset": page.offset, "match": match}
        values |= bound | scope.bound_values
        return [scored(row) for row in connection.execute(statement, values)]

    def _is_large(self, connection: sqlite3.Connection, namespace: int) -> bool:
        large, uses = self._large.get(namespace, (False, 0))
        if uses == 0:
            large, uses = bool(connection.execute(queries.IS_LARGE, (namespace,)).fetchone()), _USES
            if len(self._large) >= _REMEMBERED:
                self._large.clear()
        self._large[namespace] = large, uses - 1
        return large
