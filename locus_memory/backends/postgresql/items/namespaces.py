"""The listing of namespaces: pages of those that hold an item, filtered."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from locus_memory.backends.postgresql.connection.connection import PostgreSQLPool
from locus_memory.backends.postgresql.items.queries import NAMESPACES
from locus_memory.store.encoding import decode_namespace
from locus_memory.store.item import Namespace
from locus_memory.store.listing import Listing

__all__ = ["list_namespaces"]

_PAGE: Final = 500
_SPARE: Final = 8
"""A page has so many more namespaces than are wanted: some may be the same once they are cut."""


async def list_namespaces(
    pool: PostgreSQLPool, listing: Listing, limit: int, now: datetime
) -> list[Namespace]:
    """Return the namespaces that hold an item, in order."""
    if listing.max_depth == 0:
        return []
    low, high = listing.range()
    found: dict[Namespace, None] = {}
    size = min(_PAGE, limit + _SPARE)
    while True:
        rows = await pool.fetch(NAMESPACES, low, now, high, size)
        page = [decode_namespace(row["path"]) for row in rows]
        found |= {cut: None for each in page if (cut := listing.cut(each)) is not None}
        if len(page) < size or len(found) >= limit:
            return list(found)[:limit]
        low, size = listing.beyond(page[-1]), min(_PAGE, 2 * size)
