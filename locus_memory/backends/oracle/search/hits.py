"""Pages of hits that match a filter, collected from pages of hits that may match it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from locus_memory.backends.oracle.connection.connection import OraclePool
from locus_memory.backends.oracle.connection.driver import Row
from locus_memory.backends.oracle.items.queries import Arguments
from locus_memory.backends.oracle.items.ranges import Scope
from locus_memory.backends.oracle.items.rows import item_of
from locus_memory.backends.oracle.search.filters import compile_filter
from locus_memory.backends.selection import Page, is_everything
from locus_memory.store.filters import Condition, matches
from locus_memory.store.item import StoreItem

__all__ = ["Query", "hits_of", "selected"]

_LEAST: Final = 32
_LARGEST: Final = 500

Query = Callable[[int, int], Awaitable[list[Row]]]
"""Returns the rows of a page, given how many hits to skip, and the size of the page."""


def selected(pool: OraclePool, scope: Scope, condition: Condition, arguments: Arguments) -> str:
    """Return the SQL condition that at least the items of a scope and of a filter satisfy."""
    fits = compile_filter(condition, arguments, native_json=pool.features.native_json)
    return f"{scope.condition(arguments)} AND {scope.live(arguments)} AND ({fits})"


async def hits_of(
    scope: Scope, condition: Condition, query: Query, page: Page
) -> list[tuple[StoreItem, Any]]:
    """Return a page of the hits that match, each with the last column of its row.

    Args:
        scope: The namespaces.
        condition: The filter.
        query: Returns rows that begin with the columns of an item; the score comes last.
        page: The page.
    """
    if not page.limit:
        return []
    if scope.is_exact and is_everything(condition):
        rows = await query(page.offset, page.limit)
        return [(item_of(row), row[-1]) for row in rows]
    found: list[tuple[StoreItem, Any]] = []
    seen: set[bytes] = set()
    offset, size = 0, max(_LEAST, min(page.offset + page.limit, _LARGEST))
    while len(found) < page.offset + page.limit:
        rows = await query(offset, size)
        # A write in between may move a hit to the next page.
        for row in (row for row in rows if row[0] not in seen):
            seen.add(row[0])
            item = item_of(row)
            if scope.holds(item.namespace) and matches(condition, item.value, item.metadata):
                found.append((item, row[-1]))
        if len(rows) < size:
            break
        offset, size = offset + size, _LARGEST
    return found[page.offset : page.offset + page.limit]
