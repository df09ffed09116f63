"""The listing of namespaces: pages of those that hold an item, filtered."""

from __future__ import annotations

from typing import Final

from locus_memory.backends.postgresql.connection.connection import PostgreSQLPool
from locus_memory.backends.postgresql.items.queries import NAMESPACES
from locus_memory.store.encoding import decode_namespace
from locus_memory.store.item import Namespace
from locus_memory.store.listing import Listing, listed

__all__ = ["list_namespaces"]

_PAGE: Final = 500
_SPARE: Final = 8
"""A page has so many more namespaces than are wanted: some may be the same once they are cut."""


async def list_namespaces(
    pool: PostgreSQLPool, listing: Listing, limit: int, now: str
) -> list[Namespace]:
    """Return the namespaces that hold an item, in order."""
    size = (limit + _SPARE + 1) // 2

    async def read(low: str, high: str | None) -> tuple[list[Namespace], bool]:
        nonlocal size
        size = min(_PAGE, 2 * size)
        rows = await pool.fetch(NAMESPACES, low, now, high, size)
        return [decode_namespace(row["path"]) for row in rows], len(rows) < size

    return await listed(listing, limit, read)
