"""Items as documents: the requests of the store's verbs."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from locus_memory.backends.opensearch.connection.connection import OpenSearchConnection
from locus_memory.backends.opensearch.connection.driver_errors import described_item
from locus_memory.backends.opensearch.items.documents import (
    END,
    Address,
    Source,
    damage,
    item_of,
    microseconds,
    value_of,
    within,
)
from locus_memory.backends.opensearch.items.mapping import ITEMS
from locus_memory.backends.opensearch.items.paging import Search, find, search
from locus_memory.backends.opensearch.items.scopes import Query, Scope, expired
from locus_memory.backends.selection import KeyRange, Page
from locus_memory.errors import BackendUnavailableError
from locus_memory.store.checksum import has_vector, vector_checksum
from locus_memory.store.encoding import decode_namespace
from locus_memory.store.filters import Condition
from locus_memory.store.item import Namespace, StoreItem, embedding_numbers
from locus_memory.store.listing import Listing, listed

__all__ = [
    "clear",
    "compact",
    "get_values",
    "list_namespaces",
    "newest",
    "purge",
    "read_clock",
    "read_item",
    "read_value",
    "read_vector",
    "scan",
    "scan_keys",
]

_MISSING: Final = 404
_MOST_PREFIX: Final = 200
"""Characters; OpenSearch 2 takes no prefix and no range of 1,000 bytes."""

_NAMESPACES: Final = 1_000
"""The most namespaces of one request."""

_CLOCK: Final = {
    "size": 0,
    "query": {"match_none": {}},
    "aggs": {
        "now": {
            "scripted_metric": {
                "init_script": "state.none = 0L",
                "map_script": "state.none = 0L",
                "combine_script": "return 0L",
                "reduce_script": "return System.currentTimeMillis()",
            }
        }
    },
}
"""The search whose answer is the time; a cluster may allow no such script."""

_BAD_REQUEST: Final = 400

_ROUNDS: Final = 20
"""How often a deletion looks for what others wrote meanwhile."""

_CLEARED: Final = 20_000
"""The most items that one request deletes."""


async def _get(
    connection: OpenSearchConnection, address: Address, now: datetime, **params: str
) -> dict[str, Any] | None:
    """Return the document at an address as the server has it at this moment, or `None`."""
    given = {"routing": address.routing, **params}
    answer: dict[str, Any] = await connection.on(
        ITEMS, f"_doc/{address.id}", method="GET", params=given, ignore=(_MISSING,)
    )
    if not answer["found"] or _is_expired(answer["_source"], now):
        return None
    return answer


def _is_expired(source: Source, now: datetime) -> bool:
    moment = source.get("expires")
    return moment is not None and moment <= microseconds(now)


async def read_item(
    connection: OpenSearchConnection, address: Address, now: datetime
) -> StoreItem | None:
    """Return the item at an address, unless it is expired."""
    found = await _get(connection, address, now)
    if found is None:
        return None
    item = item_of(found["_source"])
    if (item.namespace, item.key) != (address.namespace, address.key):
        raise damage(address)
    return item


async def read_value(connection: OpenSearchConnection, address: Address, now: datetime) -> Any:
    """Return the value at an address, unless it is expired."""
    found = await _get(connection, address, now)
    return None if found is None else value_of(found["_source"], address)


async def get_values(
    connection: OpenSearchConnection, addresses: Sequence[Address], now: datetime
) -> dict[Address, Any]:
    """Return the values of the items that exist, by address."""
    names = [{"_id": each.id, "routing": each.routing} for each in addresses]
    documents = await connection.mget(names, ITEMS)
    return {
        address: value_of(document["_source"], address)
        for address, document in zip(addresses, documents, strict=True)
        if document["found"] and not _is_expired(document["_source"], now)
    }


async def read_vector(
    connection: OpenSearchConnection, address: Address, now: datetime
) -> list[float] | None:
    """Return the vector of the item at an address, unless it is expired; `None`: it has none.

    Raises:
        BackendCorruptError: The vector is damaged.
    """
    found = await _get(connection, address, now, stored_fields="_source,embedding")
    if found is None or not has_vector(found["_source"]["checksum"]):
        return None
    source = found["_source"]
    vector = b64decode("".join(found.get("fields", {}).get("embedding", ())))
    is_own = (source["namespace"], source["key"]) == address[:2]
    if not is_own or source.get("vector_checksum") != vector_checksum(address.checksum, vector):
        raise damage(address, "the vector of the item")
    return embedding_numbers(vector)


async def read_clock(connection: OpenSearchConnection) -> float | None:
    """Return the time of the cluster, in seconds since the epoch; `None`: it does not tell.

    No answer has it in a header, and who may only read our indexes may not ask for more.
    """
    answer = await connection.on(ITEMS, "_search", _CLOCK, ignore=(_BAD_REQUEST,))
    told = answer.get("aggregations")
    return None if told is None else told["now"]["value"] / 1000


async def scan(
    connection: OpenSearchConnection, scope: Scope, keys: KeyRange, limit: int
) -> list[StoreItem]:
    """Return full items of one namespace in key order."""
    wanted = _by_key(scope, keys, has_items=True)
    return [item_of(hit["_source"]) for hit in await find(connection, wanted, Page(limit))]


async def scan_keys(
    connection: OpenSearchConnection, scope: Scope, keys: KeyRange, limit: int
) -> list[str]:
    """Return keys of one namespace in order."""
    wanted = _by_key(scope, keys, has_items=False)
    return [hit["sort"][0] for hit in await find(connection, wanted, Page(limit))]


def _by_key(scope: Scope, keys: KeyRange, *, has_items: bool) -> Search:
    prefix = keys.prefix or ""
    begins = {"prefix": {"key": prefix[:_MOST_PREFIX]}}
    return Search(
        scope.where(begins) if prefix else scope.where(),
        [{"key": "desc" if keys.descending else "asc"}],
        scope.routing,
        # The query is exact unless the prefix is cut.
        prefix=prefix if len(prefix) > _MOST_PREFIX else "",
        after=None if keys.after is None else [keys.after],
        has_items=has_items,
    )


async def newest(
    connection: OpenSearchConnection, scope: Scope, condition: Condition, page: Page
) -> list[StoreItem]:
    """Return the items that satisfy the condition, the newest write first."""
    order = scope.order()
    if scope.recursive and await _has_shards(connection):
        # Only the clocks tell which of the writes on two shards is newer.
        order = scope.order({"updated": "desc"})
    wanted = Search(scope.having(condition), order, scope.routing, condition)
    return [item_of(hit["_source"]) for hit in await find(connection, wanted, page)]


async def _has_shards(connection: OpenSearchConnection) -> bool:
    """Return whether the index has more than one shard, whoever made it."""
    answer = await search(connection, {"query": {"match_none": {}}, "size": 0})
    count: int = answer["_shards"]["total"]
    return count > 1


async def clear(connection: OpenSearchConnection, scope: Scope) -> int:
    """Delete all items in the scope; return how many of them were not expired."""
    count = await _delete_by_query(connection, scope.where(), scope.routing)
    gone = {"bool": {"filter": [scope.place, expired(scope.now)]}}
    await _delete_by_query(connection, gone, scope.routing)
    return count


async def purge(connection: OpenSearchConnection, now: datetime, limit: int) -> None:
    """Delete some of the expired items."""
    # No search sees them, so none needs a refresh.
    await _delete_some(connection, expired(now), None, limit, refresh="false")


async def _delete_by_query(
    connection: OpenSearchConnection, query: Query, routing: str | None
) -> int:
    """Delete what a query finds, also where others write meanwhile; return how many."""
    count = 0
    for _ in range(_ROUNDS):
        # Another process may have written what only a refresh shows.
        await connection.refresh(ITEMS)
        while True:
            deleted, conflicts = await _delete_some(connection, query, routing, _CLEARED)
            count += deleted
            if deleted + conflicts < _CLEARED:
                break
        if not conflicts:
            return count
    raise BackendUnavailableError(
        f"opensearch {connection.place}: {count} items are deleted, others are still written"
    )


async def _delete_some(
    connection: OpenSearchConnection,
    query: Query,
    routing: str | None,
    limit: int,
    refresh: str = "true",
) -> tuple[int, int]:
    """Delete some of what a query finds; return how many, and how many have changed meanwhile."""
    params = {"conflicts": "proceed", "refresh": refresh, "max_docs": str(limit)}
    if routing is not None:
        params["routing"] = routing
    body = {"query": query}
    answer = await connection.on(ITEMS, "_delete_by_query", body, params=params, again=False)
    for failure in answer["failures"]:
        raise described_item(failure, connection.place)
    return answer["deleted"], answer["version_conflicts"]


async def compact(connection: OpenSearchConnection, now: datetime) -> None:
    """Delete what has expired, and rewrite the files without deleted documents."""
    await _delete_by_query(connection, expired(now), None)
    await connection.on(ITEMS, "_forcemerge", params={"only_expunge_deletes": "true"})


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
    pages: dict[str, Any] = {"size": _NAMESPACES, "sources": [{"path": by_name}]}
    if low:
        # No path is between these two, and the server begins after the one that it is given.
        pages["after"] = {"path": low.removesuffix(END)}
    body = {
        "query": query,
        "size": 0,
        "track_total_hits": False,
        "aggs": {"all": {"composite": pages}},
    }
    answer = await search(connection, body)
    buckets = answer["aggregations"]["all"]["buckets"]
    return [decode_namespace(each["key"]["path"]) for each in buckets], len(buckets) < _NAMESPACES
