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
from locus_memory.store.listing import Listing, listed

__all__ = ["list_namespaces"]

_PAGE: Final = 1_000


async def list_namespaces(
    connection: OpenSearchConnection, listing: Listing, limit: int, now: datetime
) -> list[Namespace]:
    """Return the namespaces that hold an item, in order."""
    return await listed(listing, limit, lambda low, high: _page(connection, low, high, now))


async def _page(
    connection: OpenSearchConnection, low: str, high: str | None, now: datetime
) -> tuple[list[Namespace], bool]:
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
    return [decode_namespace(each["key"]["path"]) for each in buckets], len(buckets) < _PAGE
