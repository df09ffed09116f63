"""The listing of namespaces: pages of those that hold an item, filtered."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from locus_memory.backends.opensearch.connection.connection import OpenSearchConnection
from locus_memory.backends.opensearch.items.documents import END, within
from locus_memory.backends.opensearch.items.paging import search
from locus_memory.backends.opensearch.items.scopes import expired
from locus_memory.store.encoding import decode_namespace
from locus_memory.store.item import Namespace
from locus_memory.store.listing import Listing

__all__ = ["list_namespaces"]

_PAGE: Final = 1_000


async def list_namespaces(
    connection: OpenSearchConnection, listing: Listing, limit: int, now: datetime
) -> list[Namespace]:
    """Return the namespaces that hold an item, in order."""
    if listing.max_depth == 0:
        return []
    low, high = listing.range()
    found: dict[Namespace, None] = {}
    while True:
        page = await _page(connection, low, high, now)
        found |= {cut: None for each in page if (cut := listing.cut(each)) is not None}
        if len(page) < _PAGE or len(found) >= limit:
            return list(found)[:limit]
        low = listing.beyond(page[-1])


async def _page(
    connection: OpenSearchConnection, low: str, high: str | None, now: datetime
) -> list[Namespace]:
    """Return some namespaces from `low` on, in order; both bounds are those of a `Listing`."""
    query = {"bool": {"must_not": [expired(now)]}}
    if high is not None:
        # The bound of a namespace is above all that is below it.
        query["bool"]["filter"] = [{"term": {"within": within(high[:-1] + END)}}]
    by_name = {"terms": {"field": "namespace"}}
    listed: dict[str, Any] = {"size": _PAGE, "sources": [{"path": by_name}]}
    if low:
        # No path is between these two, and the server begins after the one that it is given.
        listed["after"] = {"path": low.removesuffix(END)}
    body = {
        "query": query,
        "size": 0,
        "track_total_hits": False,
        "aggs": {"all": {"composite": listed}},
    }
    answer = await search(connection, body)
    buckets = answer["aggregations"]["all"]["buckets"]
    return [decode_namespace(bucket["key"]["path"]) for bucket in buckets]
