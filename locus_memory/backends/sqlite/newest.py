"""The newest items of a namespace or a tree of them, on a connection."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heapreplace
from itertools import islice
from typing import Any

from locus_memory.backends.selection import Page
from locus_memory.backends.sqlite import queries
from locus_memory.backends.sqlite.items import Scope, item_of, scored
from locus_memory.backends.sqlite.search.filters import compile_filter
from locus_memory.store.filters import Condition
from locus_memory.store.item import StoreItem

__all__ = ["newest"]


def newest(
    connection: sqlite3.Connection, scope: Scope, condition: Condition, page: Page
) -> list[StoreItem]:
    """Return the items that satisfy the condition, the newest write first."""
    where, values = compile_filter(condition, metadata="i.metadata", value="i.value")
    values |= scope.bound_values | {"limit": page.limit, "offset": page.offset}
    if not scope.recursive:
        return [scored(row) for row in connection.execute(queries.newest_items(where), values)]
    found = islice(_merged(connection, queries.newest_of(where), values), page.offset, None)
    wanted = [item for _, item in islice(found, page.limit)]
    rows = connection.execute(queries.ITEMS, {"ids": json.dumps(wanted)})
    # The rows come in the order of the ids.
    return [item_of(row[1:]) for row in rows]


def _merged(
    connection: sqlite3.Connection, statement: str, values: Mapping[str, Any]
) -> Iterator[tuple[int, int]]:
    """Yield the revisions and ids of the items of all namespaces, the newest write first.

    A namespace is read only when its newest write may be the next one.
    """
    queue: list[tuple[int, int, sqlite3.Cursor | None]] = [
        (-newest, namespace, None)
        for namespace, newest in connection.execute(queries.NEWEST_WRITES, values)
        if newest is not None
    ]
    heapify(queue)
    items: dict[int, int] = {}
    while queue:
        newest, namespace, rows = queue[0]
        if rows is None:
            rows = connection.execute(statement, {**values, "namespace": namespace})
        else:
            yield -newest, items[namespace]
        following = rows.fetchone()
        if following is None:
            heappop(queue)
            continue
        revision, items[namespace] = following
        # No two items have one revision, so cursors are never compared.
        heapreplace(queue, (-revision, namespace, rows))
