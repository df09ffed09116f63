"""Items as documents: the requests of the store's verbs."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from locus_memory.backends.opensearch.connection.connection import OpenSearchConnection
from locus_memory.backends.opensearch.items.documents import (
    Address,
    Source,
    damage,
    item_of,
    microseconds,
    value_of,
)
from locus_memory.backends.opensearch.items.mapping import ITEMS
from locus_memory.backends.opensearch.items.paging import Search, find, search
from locus_memory.backends.opensearch.items.scopes import Query, Scope, expired
from locus_memory.backends.selection import KeyRange, Page
from locus_memory.errors import BackendUnavailableError
from locus_memory.store.checksum import has_vector, vector_checksum
from locus_memory.store.filters import Condition
from locus_memory.store.item import StoreItem, embedding_numbers

__all__ = [
    "clear",
    "compact",
    "get_values",
    "newest",
    "purge",
    "read_item",
    "read_value",
    "read_vector",
    "scan",
    "scan_keys",
]

_MISSING: Final = 404
_MOST_NAMES: Final = 1_000
"""The most names of one request."""

_MOST_PREFIX: Final = 200
"""Characters; OpenSearch 2 takes no prefix and no range of 1,000 bytes."""

_ROUNDS: Final = 20
"""How often a deletion looks for what others wrote meanwhile."""

_CLEARED: Final = 20_000
"""The most items that one request deletes."""


async def _get(
    connection: OpenSearchConnection, address: Address, now: datetime, **params: str
) -> dict[str, Any] | None:
    """Return the document at an address as the server has it at this moment, or `None`."""
    path = f"/{connection.index(ITEMS)}/_doc/{address.id}"
    given = {"routing": address.routing, **params}
    answer: dict[str, Any] = await connection.request(
        "GET", path, params=given, ignore=(_MISSING,), again=True
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
    found: dict[Address, Any] = {}
    for start in range(0, len(addresses), _MOST_NAMES):
        part = addresses[start : start + _MOST_NAMES]
        names = [{"_id": each.id, "routing": each.routing} for each in part]
        documents = await connection.mget(names, ITEMS)
        for address, document in zip(part, documents, strict=True):
            if document["found"] and not _is_expired(document["_source"], now):
                found[address] = value_of(document["_source"], address)
    return found


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
    path = f"/{connection.index(ITEMS)}/_delete_by_query"
    answer = await connection.request("POST", path, {"query": query}, params=params, again=False)
    for failure in answer["failures"]:
        raise connection.refusal(failure)
    return answer["deleted"], answer["version_conflicts"]


async def compact(connection: OpenSearchConnection, now: datetime) -> None:
    """Delete what has expired, and rewrite the files without deleted documents."""
    await _delete_by_query(connection, expired(now), None)
    path = f"/{connection.index(ITEMS)}/_forcemerge"
    params = {"only_expunge_deletes": "true"}
    await connection.request("POST", path, params=params, again=True)
