"""Items as documents: the requests of the store's verbs."""

from __future__ import annotations

import asyncio
import random
from base64 import b64decode
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from locus_memory.backends.opensearch.connection.connection import OpenSearchConnection
from locus_memory.backends.opensearch.items.documents import (
    Address,
    Document,
    Source,
    damage,
    item_of,
    microseconds,
    value_of,
)
from locus_memory.backends.opensearch.items.mapping import ITEMS
from locus_memory.backends.opensearch.items.paging import Search, find, search
from locus_memory.backends.opensearch.items.scopes import Query, Scope, expired, is_in_range
from locus_memory.backends.opensearch.items.scripts import lines_of
from locus_memory.backends.selection import KeyRange, Page
from locus_memory.errors import BackendUnavailableError, VersionConflictError
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
    "write",
]

Operation = Document | Address
"""A put, or the address of a delete."""

_MOST_LINES: Final = 1_000
_MOST_BYTES: Final = 4_000_000
"""About the most of one request; the server takes 100 MB by default."""

_ATTEMPTS: Final = 12
"""How often a write is sent again that the server gave up, since others write the same item."""

_CONFLICT, _MISSING = 409, 404
_ROUNDS: Final = 20
_CLEARED: Final = 20_000
"""The most items that one request deletes."""


async def write(
    connection: OpenSearchConnection, operations: Sequence[Operation], now: datetime
) -> list[int]:
    """Put the documents and delete those at the addresses, in as few requests as possible.

    Returns:
        For each put the new version, for each delete whether the item existed, in order.

    Raises:
        VersionConflictError: One `if_version` does not hold; the other operations are done.
        BackendError: The server refused an operation; others may be done.
    """
    results: list[int] = []
    try:
        for part in _parts(operations, now):
            results += await _write_part(connection, part, now)
    finally:
        connection.dirty(ITEMS)
    return results


Part = list[tuple[Operation, list[bytes]]]
Answer = dict[str, Any]


def _parts(operations: Sequence[Operation], now: datetime) -> Iterable[Part]:
    """Yield the operations with their lines, in parts that fit into one request."""
    part: Part = []
    size = 0
    for each in operations:
        lines = lines_of(each, now)
        length = sum(map(len, lines))
        if part and (len(part) >= _MOST_LINES or size + length > _MOST_BYTES):
            yield part
            part, size = [], 0
        part.append((each, lines))
        size += length
    yield part


async def _write_part(connection: OpenSearchConnection, part: Part, now: datetime) -> list[int]:
    """Write what fits into one request; an error is raised once all of it is settled."""
    answers: dict[int, Answer] = {}
    left = list(range(len(part)))
    for attempt in range(_ATTEMPTS):
        if attempt:
            await asyncio.sleep(random.uniform(0, 0.01 * 2**attempt))  # noqa: S311 - no secret
        lines = [line for place in left for line in part[place][1]]
        found = await connection.bulk(lines, ITEMS)
        answers |= zip(left, found, strict=True)
        left = [place for place in left if answers[place]["status"] == _CONFLICT]
        if not left:
            break
    else:
        raise BackendUnavailableError(
            f"opensearch {connection.place}: an item is written by too many at once"
        )
    results: list[int] = []
    for place, (operation, _) in enumerate(part):
        if isinstance(operation, Document):
            results.append(_put_result(connection, operation, answers[place], now))
        else:
            results.append(await _delete_result(connection, operation, answers[place], now))
    return results


def _put_result(
    connection: OpenSearchConnection, document: Document, answer: Answer, now: datetime
) -> int:
    if "error" in answer:
        raise connection.refusal(answer)
    source: Source = answer["get"].get("_source", {})
    version: int = source.get("version", 0)
    if answer["result"] != "noop" or source.get("operation") == document.operation:
        return version
    is_gone = source.get("expires", microseconds(now) + 1) <= microseconds(now)
    raise _conflict(document.address, 0 if is_gone else version)


async def _delete_result(
    connection: OpenSearchConnection, address: Address, answer: Answer, now: datetime
) -> int:
    is_missing = answer.get("error", {}).get("type") == "document_missing_exception"
    if "error" in answer and not is_missing:
        raise connection.refusal(answer)
    if answer.get("result") == "deleted":
        return 1
    if address.if_version is not None:
        # The script deleted nothing, and an answer of a delete has no version.
        item = None if is_missing else await read_item(connection, address, now)
        actual = 0 if item is None else item.version
        if actual != address.if_version:
            raise _conflict(address, actual)
    return 0


def _conflict(address: Address, actual: int) -> VersionConflictError:
    return VersionConflictError(address.if_version or 0, actual, address.namespace, address.key)


async def _get(
    connection: OpenSearchConnection, address: Address, now: datetime, **params: str
) -> dict[str, Any] | None:
    """Return the document at an address as the server has it at this moment, or `None`."""
    path = f"/{connection.index(ITEMS)}/_doc/{address.id}"
    given = {"routing": address.routing, **params}
    answer: Answer = await connection.request(
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
    path = f"/{connection.index(ITEMS)}/_mget"
    for start in range(0, len(addresses), _MOST_LINES):
        part = addresses[start : start + _MOST_LINES]
        names = [{"_id": each.id, "routing": each.routing} for each in part]
        answer = await connection.request("POST", path, {"docs": names}, again=True)
        for address, document in zip(part, answer["docs"], strict=True):
            if "error" in document:
                raise connection.refusal(document)
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
    order = [{"key": "desc" if keys.descending else "asc"}]
    query = scope.where(*is_in_range(keys))
    return Search(query, order, scope.routing, has_items=has_items)


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
