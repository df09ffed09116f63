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
from locus_memory.store.listing import Listing, listed

__all__ = ["list_namespaces"]

_PAGE: Final = 500
_ALL: Final = 2**62
_LEAST: Final = b"\0"
"""Below every name; an empty RAW is NULL."""


async def list_namespaces(
    pool: OraclePool, listing: Listing, limit: int, now: datetime
) -> list[Namespace]:
    """Return the namespaces that hold an item, in order."""
    return await listed(listing, limit, lambda low, high: _read(pool, low, high, now))


async def _read(
    pool: OraclePool, low: str, high: str | None, now: datetime
) -> tuple[list[Namespace], bool]:
    """Return a page of namespaces in order, and whether it is the last one."""
    first, bound = low.encode() or _LEAST, BEYOND if high is None else high.encode()
    if len(bound) > LONGEST:
        bound = first_of(bound) + BEYOND
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
