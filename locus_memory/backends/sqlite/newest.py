"""The newest items of a namespace or a tree of them, on a connection."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from locus_memory.backends.selection import Page
from locus_memory.backends.sqlite import queries
from locus_memory.backends.sqlite.items import Scope, item_of, scored
from locus_memory.backends.sqlite.search.filters import compile_filter
from locus_memory.store.filters import Condition
from locus_memory.store.item import StoreItem

__all__ = ["newest"]

_FIRST, _GROWTH = 256, 8
"""The number of revisions that are read first, and how many times as many are read next."""


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
