"""The listing of namespaces: pages of those that hold an item, filtered."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from locus_memory.backends.oracle.connection.connection import OraclePool
from locus_memory.backends.oracle.items.naming import BEYOND, LONGEST, first_of, is_cut, split
from locus_memory.backends.oracle.items.queries import NAMESPACES, WHOLE_NAME
from locus_memory.backends.oracle.items.rows import micros
from locus_memory.store.encoding import decode_namespace
from locus_memory.store.item import Namespace
from locus_memory.store.listing import Listing

__all__ = ["list_namespaces"]

_PAGE: Final = 500
_ALL: Final = 2**62
_LEAST: Final = b"\0"
"""Below every name; an empty RAW is NULL."""


async def list_namespaces(
    pool: OraclePool, listing: Listing, limit: int, now: datetime
) -> list[Namespace]:
    """Return the namespaces that hold an item, in order."""
    if listing.max_depth == 0:
        return []
    low, high = listing.range()
    first, found = low.encode() or _LEAST, dict[Namespace, None]()
    bound = BEYOND if high is None else high.encode()
    if len(bound) > LONGEST:
        bound = first_of(bound) + BEYOND
    while True:
        page, is_last = await _read(pool, first, bound, now)
        found |= {cut: None for each in page if (cut := listing.cut(each)) is not None}
        if is_last or len(found) >= limit:
            return list(found)[:limit]
        first = listing.beyond(page[-1]).encode()


async def _read(
    pool: OraclePool, first: bytes, bound: bytes, now: datetime
) -> tuple[list[Namespace], bool]:
    """Return a page of namespaces in order, and whether it is the last one."""
    binds = {"low": first_of(first), "high": bound, "now": micros(now)}
    rows = await pool.fetch(NAMESPACES, {**binds, "most": _PAGE})
    if not any(is_cut(scope) for (scope,) in rows) and len(first) <= LONGEST:
        return [decode_namespace(scope.decode()) for (scope,) in rows], len(rows) < _PAGE
    # Names that are cut are in no order: all of them are sorted here.
    rows = await pool.fetch(NAMESPACES, {**binds, "most": _ALL})
    return sorted([await _namespace(pool, scope) for (scope,) in rows]), True


async def _namespace(pool: OraclePool, scope: bytes) -> Namespace:
    if not is_cut(scope):
        return decode_namespace(scope.decode())
    rows = await pool.fetch(WHOLE_NAME, {"scope": scope})
    # The namespace may have been emptied in the meantime.
    return decode_namespace(split(rows[0][0])[0]) if rows else ()
