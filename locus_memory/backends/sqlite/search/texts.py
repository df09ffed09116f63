"""Text search by BM25, within one namespace or a tree of them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from locus_memory.backends.selection import Page
from locus_memory.backends.sqlite import queries
from locus_memory.backends.sqlite.items import Scope
from locus_memory.backends.sqlite.search.matches import Hit, Matches
from locus_memory.store.filters import Condition

if TYPE_CHECKING:
    from locus_memory.backends.sqlite.search.postings import PostedSearch

__all__ = ["TextSearch"]

_UNCOUNTED: Final = 1_000
"""In a file of so few items, FTS5 ranks whatever matches."""

_MANY: Final = 500
"""More matches are ranked faster by postings."""


class TextSearch:
    """A text search by FTS5, which ranks many matches by postings that are cached.

    FTS5 counts the items of each word in each statement, and steps through all of them.

    Args:
        capacity: How many bytes the cached postings may take; 0: there are none.
    """

    def __init__(self, capacity: int = 0) -> None:
        self._capacity = capacity

    @cached_property
    def posted(self) -> PostedSearch:
        """The search by postings, made at first use."""
        from locus_memory.backends.sqlite.search.postings import PostedSearch  # noqa: PLC0415 - it loads numpy

        return PostedSearch(self._capacity)

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

        Raises:
            OutdatedError: The transaction is older than the cache.
        """
        matches = Matches.of(connection, scope, condition) if page.limit else None
        if matches is None:
            return []
        found = self._found(matches, [f'"{word}"' for word in words], page)
        return _items(connection, found) if whole else found

    def _found(self, matches: Matches, quoted: Sequence[str], page: Page) -> list[Hit]:
        is_many = matches.totals.rows > _UNCOUNTED and matches.are_more(quoted, _MANY)
        if self._capacity and is_many:
            found = self.posted.find(matches, quoted, page.offset + page.limit)
            if found is not None:
                return found[page.offset :]
        return matches.page(quoted, page)


def _items(connection: sqlite3.Connection, found: Sequence[Hit]) -> list[Any]:
    """Return full items with their scores, as rows."""
    wanted = {"ids": json.dumps([item for item, _, _ in found])}
    rows = {row[0]: row[1:] for row in connection.execute(queries.ITEMS, wanted)}
    return [(*rows[revision], score) for _, revision, score in found]
