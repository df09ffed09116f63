"""Items as rows: the database calls of the store's verbs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from pgvector import Vector

from locus_memory._internal.quoting import quote
from locus_memory.backends.postgresql.connection.connection import (
    Connection,
    PostgreSQLPool,
    Record,
)
from locus_memory.backends.postgresql.items import queries
from locus_memory.backends.postgresql.items.documents import decode_document
from locus_memory.backends.postgresql.items.naming import (
    AFTER_KEYS,
    LONGEST,
    Address,
    first_name,
    name_bound,
    whole_name,
)
from locus_memory.backends.postgresql.items.queries import NAMESPACES
from locus_memory.backends.postgresql.items.ranges import Scope, key_condition
from locus_memory.backends.postgresql.items.rows import (
    Row,
    addresses_of,
    checksum_name,
    contents_of,
    embeddings_of,
    join_column,
    join_names,
    past_of,
)
from locus_memory.backends.postgresql.search.filters import Arguments
from locus_memory.backends.selection import KeyRange, Page, at_most
from locus_memory.errors import BackendCorruptError, VersionConflictError
from locus_memory.store.checksum import (
    canonical,
    check_item,
    has_vector,
    value_matches,
    vector_checksum,
)
from locus_memory.store.encoding import decode_namespace, decode_text
from locus_memory.store.filters import Condition
from locus_memory.store.item import Namespace, StoreItem
from locus_memory.store.listing import Listing, listed

__all__ = [
    "clear",
    "exists",
    "get_values",
    "item_of",
    "list_namespaces",
    "newest",
    "purge",
    "read_item",
    "read_items",
    "read_value",
    "read_vector",
    "scan",
    "scan_keys",
    "write",
]

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


_FEW_SCOPES, _MANY_SCOPES = 64, 2_000
"""The newest items of so many namespaces are read one namespace after the other."""

_MANY_ITEMS: Final = 50_000
"""Of more namespaces, so many items are sorted as quickly."""

_HEADER: Final = 4
"""Bytes that `vector_send` writes before the numbers."""

OF_BEFORE: Final = 0
"""The checksum of a row from a version without checksums."""

_MOST_VERSION: Final = 2**62
"""About the largest integer of the server."""


async def write(pool: PostgreSQLPool, operations: Sequence[Row | Address], now: str) -> list[int]:
    """Put the rows and delete the items at the addresses, in one round trip.

    Returns:
        For each put the new version, for each delete whether the item existed, in order.

    Raises:
        VersionConflictError: One `if_version` does not hold; nothing is written.
    """
    addresses = [each.address if isinstance(each, Row) else each for each in operations]
    if any(address.if_version is not None for address in addresses):
        return await _write_in_order(pool, operations, now)
    names = {address.name for address in addresses}
    rows = [each for each in operations if isinstance(each, Row)]
    if not rows:
        return await _delete_many(pool, addresses, now)
    if len(names) < len(rows) or len(rows) < len(operations):
        return await _write_in_order(pool, operations, now)
    return await _put_many(pool, rows, now)


async def _put_many(pool: PostgreSQLPool, rows: Sequence[Row], now: str) -> list[int]:
    statement = queries.PUT_MANY_OVER_VECTORS if pool.features.has_vector else queries.PUT_MANY
    vectors: Sequence[str] = ()
    if any(row.embedding is not None for row in rows):
        statement, vectors = queries.PUT_MANY_VECTORS, embeddings_of(rows)
    arguments = now, *addresses_of(rows), *contents_of(rows), *vectors
    if rows[0].past is None:
        return list(map(int, (await pool.fetchval(statement, *arguments)).split()))

    async def work(connection: Connection) -> None:
        await connection.fetchval(pool.sql(statement), *arguments)
        await connection.execute(pool.sql(queries.SET_PAST), *past_of(rows))

    await pool.transact(work)
    return [0] * len(rows)


async def _write_in_order(
    pool: PostgreSQLPool, operations: Sequence[Row | Address], now: str
) -> list[int]:
    addresses = [each.address if isinstance(each, Row) else each for each in operations]
    # A row without a value: the server deletes the item.
    rows = [
        each if isinstance(each, Row) else Row(each, "", "", "", 0, OF_BEFORE)
        for each in operations
    ]
    conditions = join_column(
        "" if each.if_version is None else str(min(each.if_version, _MOST_VERSION))
        for each in addresses
    )
    arguments = *addresses_of(rows), conditions, *contents_of(rows)
    if not pool.features.has_vector:
        found = await pool.fetch(queries.WRITE, now, *arguments)
    else:
        found = await pool.fetch(queries.WRITE_VECTORS, now, *arguments, *embeddings_of(rows))
    if found[0]["conflict"]:
        lost = addresses[found[0]["number"] - 1]
        raise VersionConflictError(
            lost.if_version or 0,
            found[0]["result"],
            decode_namespace(lost.path),
            decode_text(lost.key),
        )
    return [row["result"] for row in found]


async def _delete_many(pool: PostgreSQLPool, addresses: Sequence[Address], now: str) -> list[int]:
    names = join_names(address.name for address in addresses)
    rows = await pool.fetch(queries.DELETE_MANY, names, now)
    deleted = {row["name"] for row in rows}
    results: list[int] = []
    for address in addresses:
        results.append(address.name in deleted)
        deleted.discard(address.name)
    return results


async def purge(pool: PostgreSQLPool, now: str, limit: int) -> None:
    """Delete some of the expired items."""
    await pool.execute(queries.PURGE, now, limit)


async def clear(pool: PostgreSQLPool, scope: Scope) -> int:
    """Delete all items in the scope; return how many of them were not expired."""
    low, high = scope.path, scope.high
    names = first_name(low), name_bound(high if scope.recursive else low + AFTER_KEYS)
    count: int = await pool.fetchval(queries.CLEAR, low, scope.now, high, *names)
    return count


async def read_item(pool: PostgreSQLPool, address: Address, now: str) -> StoreItem | None:
    """Return the item at an address, unless it is expired."""
    row = await pool.fetchrow(queries.GET, address.name, now)
    return None if row is None else item_of(row)


async def read_value(pool: PostgreSQLPool, address: Address, now: str) -> Any:
    """Return the value at an address, unless it is expired."""
    row = await pool.fetchrow(queries.GET_VALUE, address.name, now)
    return None if row is None else _value_of(row, address)


async def exists(pool: PostgreSQLPool, address: Address, now: str) -> bool:
    """Return whether there is an item at an address that is not expired."""
    return await pool.fetchval(queries.EXISTS, address.name, now) is not None


async def get_values(
    pool: PostgreSQLPool, addresses: Sequence[Address], now: str
) -> dict[Address, Any]:
    """Return the values of the items that exist, by address."""
    places = {address.name: address for address in addresses}
    rows = await pool.fetch(queries.GET_MANY, join_names(places), now)
    found = ((places[row["name"]], row) for row in rows)
    return {address: _value_of(row, address) for address, row in found}


async def read_items(
    pool: PostgreSQLPool, addresses: Sequence[Address], now: str
) -> dict[Address, StoreItem]:
    """Return the items that exist, by address."""
    places = {address.name: address for address in addresses}
    rows = await pool.fetch(queries.GET_ITEMS, join_names(places), now)
    return {places[row["name"]]: item_of(row) for row in rows}


def _value_of(row: Record, address: Address) -> Any:
    """Return the value of an item that was read without its metadata.

    Raises:
        BackendCorruptError: The item is damaged.
    """
    path, key, checksum = address.path, address.key, row["checksum"]
    try:
        value = decode_document(row["value"])
        name = checksum_name(path, key)
        if checksum == OF_BEFORE or value_matches(checksum, name, canonical(value)):
            return value
    except (KeyError, ValueError) as error:
        raise _damaged(path, key) from error
    raise _damaged(path, key)


def _damaged(path: str, key: str, what: str = "the item") -> BackendCorruptError:
    """Return the error that names an item, whose name may be damaged as well."""
    name: tuple[object, object] = key, path
    with suppress(KeyError, StopIteration):
        name = decode_text(key), decode_namespace(path)
    named = f"{quote(name[0])} of {quote(name[1])}"
    return BackendCorruptError(f"postgresql: {what} {named} is damaged")


async def read_vector(pool: PostgreSQLPool, address: Address, now: str) -> list[float] | None:
    """Return the vector of the item at an address, as the server sends it, or `None`.

    A missing vector is not damage: a user who drops the extension drops the vectors.

    Raises:
        BackendCorruptError: The vector is damaged.
    """
    row = await pool.fetchrow(queries.GET_VECTOR, address.name, now)
    if row is None or row["sent"] is None:
        return None
    sent: bytes = row["sent"]
    if row["checksum"] != OF_BEFORE:
        own = vector_checksum(checksum_name(address.path, address.key), sent[_HEADER:])
        if row["own"] != own or not has_vector(row["checksum"]):
            raise _damaged(address.path, address.key, "the vector of the item")
    return Vector.from_binary(sent).to_list()


def item_of(row: Record, score: float | None = None) -> StoreItem:
    """Return the item of a row with `queries.COLUMNS`.

    Raises:
        BackendCorruptError: The item is damaged.
    """
    path, key, checksum = row["path"], row["key"], row["checksum"]
    try:
        value, metadata = decode_document(row["value"]), decode_document(row["metadata"])
        if checksum != OF_BEFORE:
            check_item(checksum, checksum_name(path, key), canonical(value), canonical(metadata))
        return StoreItem(
            namespace=decode_namespace(path),
            key=decode_text(key),
            value=value,
            metadata=metadata,
            created_at=row["created_at"],
            updated_at=row["updated_at"],
            version=row["version"],
            score=score,
            expires_at=row["expires_at"],
        )
    except (KeyError, StopIteration, TypeError, ValueError) as error:
        raise _damaged(path, key) from error


async def scan(pool: PostgreSQLPool, scope: Scope, keys: KeyRange, limit: int) -> list[StoreItem]:
    """Return full items of one namespace in key order."""
    return [item_of(row) for row in await _scan(pool, scope, keys, limit, queries.COLUMNS)]


async def scan_keys(pool: PostgreSQLPool, scope: Scope, keys: KeyRange, limit: int) -> list[str]:
    """Return keys of one namespace in order."""
    return [decode_text(row["key"]) for row in await _scan(pool, scope, keys, limit, "i.key")]


async def _scan(
    pool: PostgreSQLPool, scope: Scope, keys: KeyRange, limit: int, columns: str
) -> list[Record]:
    arguments = Arguments()
    conditions = key_condition(keys, scope.path, arguments), scope.live(arguments)
    page = arguments.bind(limit, "bigint")
    ordered = queries.scan_items(conditions, page, columns=columns, descending=keys.descending)
    rows = await pool.fetch(ordered, *arguments.values)
    if all(len(whole_name(scope.path, row["key"])) <= LONGEST for row in rows):
        return rows
    # Names that were cut are in no order, and the first of them may not be on this page.
    sorted_ = queries.sort_items(conditions, page, columns=columns, descending=keys.descending)
    return await pool.fetch(sorted_, *arguments.values)


async def newest(
    pool: PostgreSQLPool, scope: Scope, condition: Condition, page: Page
) -> list[StoreItem]:
    """Return the items that satisfy the condition, the newest write first.

    Of a tree of a few namespaces, or of many items, the newest of each namespace are read. Else all
    items are sorted.
    """
    if scope.recursive:
        found = await _newest_of_each(pool, scope, condition, page, _FEW_SCOPES)
        if found is None and await _has_more(pool, scope, _MANY_ITEMS):
            found = await _newest_of_each(pool, scope, condition, page, _MANY_SCOPES)
        if found is not None:
            return found
    arguments = Arguments()
    limit, offset = arguments.bind(page.limit, "bigint"), arguments.bind(page.offset, "bigint")
    here = scope.condition("i", arguments), scope.live(arguments)
    conditions = (*here, arguments.compile(condition))
    statement = queries.newest_items(conditions, limit, offset, recursive=scope.recursive)
    return [item_of(row) for row in await pool.fetch(statement, *arguments.values)]


async def _newest_of_each(
    pool: PostgreSQLPool, scope: Scope, condition: Condition, page: Page, scopes: int
) -> list[StoreItem] | None:
    """Return the newest items of a tree, or `None` if it has more than so many namespaces."""
    arguments = Arguments()
    arguments.bind(scope.path, "text")
    live = scope.live(arguments)
    arguments.bind(scope.high, "text")
    limit, offset = arguments.bind(page.limit, "bigint"), arguments.bind(page.offset, "bigint")
    first = arguments.bind(at_most(page.limit + page.offset), "bigint")
    most = arguments.bind(scopes + 1, "integer")
    conditions = live, arguments.compile(condition)
    statement = queries.newest_of_each(conditions, limit, offset, first=first, most=most)
    rows = await pool.fetch(statement, *arguments.values)
    if rows[0]["scopes"] > scopes:
        return None
    return [item_of(row) for row in rows if row["path"] is not None]


async def _has_more(pool: PostgreSQLPool, scope: Scope, items: int) -> bool:
    """Return whether a scope has more than so many items, with expired ones."""
    arguments = Arguments()
    most = arguments.bind(items + 1, "bigint")
    statement = queries.count_items(scope.condition("i", arguments), most)
    return bool(await pool.fetchval(statement, *arguments.values) > items)
