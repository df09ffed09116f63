"""The listing of namespaces: those of the registry that hold an item."""

from __future__ import annotations

from locus_memory.backends.redis.items.spaces import PAGE, Spaces
from locus_memory.store.item import Namespace
from locus_memory.store.listing import Listing

__all__ = ["list_namespaces"]


async def list_namespaces(spaces: Spaces, listing: Listing, limit: int) -> list[Namespace]:
    """Return the namespaces that hold an item, in order."""
    low, high = listing.range()
    found: dict[Namespace, None] = {}
    while len(found) < limit and listing.max_depth != 0:
        page = await spaces.registered(low.encode(), high)
        for space in await spaces.holding([s for s in page if listing.cut(s.namespace)]):
            found[space.namespace[: listing.max_depth]] = None
        if len(page) < PAGE:
            break
        low = listing.beyond(page[-1].namespace)
    return list(found)[:limit]
