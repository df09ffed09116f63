"""Items as rows: the work of the store's verbs on a connection, inside its transaction."""

from __future__ import annotations

import json
import sqlite3
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Self, TypeVar

from locus_memory._internal.quoting import quote
from locus_memory.backends.selection import KeyRange, Past, PathScope, path_of
from locus_memory.backends.sqlite import queries
from locus_memory.errors import BackendCorruptError, VersionConflictError
from locus_memory.store.checksum import (
    check_item,
    has_vector,
    item_checksum,
    name_checksum,
    vector_checksum,
)
from locus_memory.store.encoding import (
    decode_namespace,
    decode_text,
    encode_text,
)
from locus_memory.store.item import (
    Namespace,
    StoreItem,
    embedding_numbers,
    timestamp,
)
from locus_memory.store.json_values import decode_json
from locus_memory.store.listing import Listing

__all__ = [
    "Address",
    "OutdatedError",
    "Row",
    "Scope",
    "clear",
    "exists",
    "get_values",
    "item_of",
    "item_of_hit",
    "items_of_matches",
    "items_of_vectors",
    "namespaces",
    "read_item",
    "read_items",
    "read_vector",
    "scan",
    "scan_keys",
    "scored",
    "write",
]

T = TypeVar("T")

_FIRST_PAGE, _PAGE = 16, 500
_EXTRA: Final = struct.Struct("<qddd")
_NEVER: Final = float("inf")


class OutdatedError(Exception):
    """A search has seen a later state of the file than this transaction does."""


class Address(NamedTuple):
    """The encoded name of an item, and the version that a conditional write expects there."""

    path: str
    key: str
    if_version: int | None

    @classmethod
    def of(cls, namespace: Namespace, key: str, if_version: int | None = None) -> Self:
        """Return the address of an item."""
        return cls(path_of(namespace), encode_text(key), if_version)


class Row(NamedTuple):
    """The row of a put, encoded and ready to write; `past` is that of a restored item."""

    address: Address
    value: bytes
    metadata: bytes
    text: str
    ttl: float | None
    vector: bytes | None
    past: Past | None = None


class Scope(PathScope[float]):
    """The namespaces of a search, and its moment."""

    __slots__ = ()

    @property
    def bound_values(self) -> dict[str, Any]:
        """The values of the parameters `:path`, `:bound` and `:now`."""
        return {"path": self.path, "bound": self.bound, "now": self.now}


def write(
    connection: sqlite3.Connection, operations: Sequence[Row | Address], now: float
) -> list[int | bool]:
    """Put the rows, delete the items at the addresses, and delete a few expired items.

    Returns:
        For each put the new version, for each delete whether the item existed, in order.

    Raises:
        VersionConflictError: One `if_version` does not hold.
    """
    codes = _codes(operations)
    results: list[int | bool] = [
        _put(connection, each, now, code)
        if isinstance(each, Row)
        else _delete(connection, each, now)
        for each, code in zip(operations, codes, strict=True)
    ]
    for item, namespace, text, revision in connection.execute(queries.EXPIRED, (now,)).fetchall():
        _remove(connection, _Found(namespace, item, text, revision, 0, now, now))
    connection.execute(queries.SET_MOMENT, (now,))
    return results


def _codes(operations: Sequence[Row | Address]) -> Sequence[bytes | None]:
    """Return the code of each vector that is put."""
    vectors = [each.vector if isinstance(each, Row) else None for each in operations]
    if not any(vectors):
        return vectors
    from locus_memory.backends.sqlite.search.codes import encode_all  # noqa: PLC0415 - loads numpy

    return encode_all(vectors)


_NOTHING: Final[tuple[Any, ...]] = (None,) * 8
_NO_VECTOR: Final[tuple[Any, ...]] = (None,) * 3
_NOT_AS_WRITTEN: Final = (
    AttributeError,
    KeyError,
    OverflowError,
    StopIteration,
    TypeError,
    ValueError,
    struct.error,
)


class _Found(NamedTuple):
    """The ids of the namespace and the item at an address, if they exist.

    An expired item is at version 0, like an item that does not exist.
    """

    namespace: int | None
    item: int | None
    text: str | None
    revision: int | None
    version: int
    created_at: float
    updated_at: float


def _find(connection: sqlite3.Connection, address: Address, now: float) -> _Found:
    row = connection.execute(queries.FIND, (address.key, address.path)).fetchone()
    namespace, item, text, revision, version, created_at, updated_at, expires_at = row or _NOTHING
    if version is None or (expires_at is not None and expires_at <= now):
        version, created_at, updated_at = 0, now, now
    if address.if_version is not None and address.if_version != version:
        namespace, key = decode_namespace(address.path), decode_text(address.key)
        raise VersionConflictError(address.if_version, version, namespace, key)
    return _Found(namespace, item, text, revision, version, created_at, updated_at)


def _put(connection: sqlite3.Connection, row: Row, now: float, code: bytes | None) -> int:
    address = row.address
    found = _find(connection, address, now)
    expires_at = None if row.ttl is None else now + row.ttl
    updated_at = max(now, found.updated_at)
    past = row.past or Past(found.version + 1, found.created_at, updated_at, expires_at)
    version, times = past.version, past[1:]
    name = name_checksum(address.path.encode(), address.key.encode())
    checksum = item_checksum(
        name, row.value, row.metadata, vector=row.vector is not None, extra=_extra(version, *times)
    )
    documents = row.metadata.decode(), row.value.decode()
    content = version, *times, *documents, row.text, checksum
    connection.execute(queries.TAKE_REVISIONS, (1,))
    namespace, item = found.namespace, found.item
    if namespace is None:
        namespace = connection.execute(queries.ADD_NAMESPACE, (address.path,)).lastrowid
    if item is None:
        place = namespace, address.key
        item = connection.execute(queries.ADD_ITEM, (*place, *content)).lastrowid
    else:
        connection.execute(queries.CHANGE_ITEM, (*content, item))
        _remove_vector(connection, found)
    if row.text != found.text:
        _remove_text(connection, found)
        # An item without text is not indexed: short-lived items, as of a queue, leave no trace.
        if row.text:
            connection.execute(queries.ADD_TEXT, (item, namespace, row.text))
    if row.vector is not None:
        dimension = len(row.vector) // 4
        vector = dimension, row.vector, vector_checksum(name, row.vector)
        connection.execute(queries.ADD_VECTOR, (item, namespace, *vector))
        connection.execute(queries.ADD_CODE, (namespace, dimension, code))
    return version


def _extra(version: int, created_at: float, updated_at: float, expires_at: float | None) -> bytes:
    """Return the other data that a checksum covers: all of an item but its text."""
    expires = _NEVER if expires_at is None else expires_at
    return _EXTRA.pack(version, created_at, updated_at, expires)


def _delete(connection: sqlite3.Connection, address: Address, now: float) -> bool:
    found = _find(connection, address, now)
    _remove(connection, found)
    return found.version > 0


def _remove(connection: sqlite3.Connection, found: _Found) -> None:
    """Delete an item, its words, its vector, and its namespace if it is empty then."""
    if found.item is not None:
        connection.execute(queries.TAKE_REVISIONS, (1,))
        _remove_text(connection, found)
        _remove_vector(connection, found)
        connection.execute(queries.REMOVE_ITEM, (found.item,))
        connection.execute(queries.REMOVE_EMPTY, (found.namespace,))


def _remove_text(connection: sqlite3.Connection, found: _Found) -> None:
    if found.item is not None and found.text:
        connection.execute(queries.REMOVE_TEXT, (found.item, found.namespace, found.text))


def _remove_vector(connection: sqlite3.Connection, found: _Found) -> None:
    values = {"id": found.revision, "namespace": found.namespace}
    connection.execute(queries.REMOVE_CODE, values)
    connection.execute(queries.REMOVE_VECTOR, values)


def clear(connection: sqlite3.Connection, scope: Scope) -> int:
    """Delete all items in the scope; return how many of them were not expired."""
    # No path is between a path and that of its first descendant.
    bound = scope.bound if scope.recursive else scope.path + "\x01"
    values = {**scope.bound_values, "bound": bound}
    items, count = connection.execute(queries.COUNT, values).fetchone()
    connection.execute(queries.TAKE_REVISIONS, (items,))
    for statement in queries.CLEAR:
        connection.execute(statement, values)
    return int(count)


def read_item(connection: sqlite3.Connection, address: Address, now: float) -> StoreItem | None:
    """Return the item at an address, unless it is expired."""
    values = {"path": address.path, "key": address.key, "now": now}
    found = connection.execute(queries.GET, values).fetchone()
    return None if found is None else item_of(found)


def item_of(row: Sequence[Any], score: float | None = None) -> StoreItem:
    """Return the item of a row.

    Raises:
        BackendCorruptError: The row is damaged.
    """
    path, key, value, metadata, created_at, updated_at, version, expires_at, checksum = row
    try:
        if checksum is not None:
            times = created_at, updated_at, expires_at
            extra = _extra(version, *times)
            check_item(checksum, name_checksum(path, key), value, metadata, extra=extra)
        created = timestamp(created_at)
        return StoreItem(
            decode_namespace(path.decode()),
            decode_text(key.decode()),
            decode_json(value),
            decode_json(metadata),
            created,
            created if updated_at == created_at else timestamp(updated_at),
            version,
            score,
            None if expires_at is None else timestamp(expires_at),
        )
    except _NOT_AS_WRITTEN as error:
        raise BackendCorruptError(f"sqlite: {_described(path, key)} is damaged") from error


def _decoded(stored: bytes, decode: Callable[[str], T], what: str) -> T:
    try:
        return decode(stored.decode())
    except _NOT_AS_WRITTEN as error:
        raise BackendCorruptError(f"sqlite: {what} is damaged") from error


def _described(path: Any, key: Any) -> str:
    """Return the description of an item in an error; its name may be damaged as well."""
    try:
        name, namespace = decode_text(key.decode()), decode_namespace(path.decode())
    except _NOT_AS_WRITTEN:
        name, namespace = key, path
    return f"the item {quote(name)} of {quote(namespace)}"


def exists(connection: sqlite3.Connection, address: Address, now: float) -> bool:
    """Return whether there is an item at an address that is not expired."""
    values = {"path": address.path, "key": address.key, "now": now}
    return connection.execute(queries.EXISTS, values).fetchone() is not None


def get_values(
    connection: sqlite3.Connection, addresses: Sequence[Address], now: float
) -> dict[Address, Any]:
    """Return the values of the items that exist, by address."""
    return {each: item.value for each, item in read_items(connection, addresses, now).items()}


def read_items(
    connection: sqlite3.Connection, addresses: Sequence[Address], now: float
) -> dict[Address, StoreItem]:
    """Return the items that exist, by address."""
    found = ((each, read_item(connection, each, now)) for each in addresses)
    return {address: item for address, item in found if item is not None}


def read_vector(connection: sqlite3.Connection, address: Address, now: float) -> list[float] | None:
    """Return the vector of the item at an address, unless it has none or is expired.

    Raises:
        BackendCorruptError: The vector is damaged or lost.
    """
    values = {"path": address.path, "key": address.key, "now": now}
    checksum, vector, own = connection.execute(queries.GET_VECTOR, values).fetchone() or _NO_VECTOR
    if checksum is not None:
        _check_vector((address.path.encode(), address.key.encode()), checksum, vector, own)
    return None if vector is None else embedding_numbers(bytes(vector))


def _check_vector(name: tuple[bytes, bytes], checksum: Any, vector: Any, own: Any) -> None:
    """Raise unless a vector is the one that was written with its item, or neither has one.

    Raises:
        BackendCorruptError: The vector is damaged, lost or of another item.
    """
    is_there = isinstance(vector, bytes)
    genuine = isinstance(checksum, int) and has_vector(checksum) is is_there
    if not genuine or (is_there and own != vector_checksum(name_checksum(*name), vector)):
        raise BackendCorruptError(f"sqlite: the vector of {_described(*name)} is damaged")


def item_of_hit(hit: Sequence[Any], score: float | None = None) -> StoreItem:
    """Return the item of a row that begins with its vector, the vector's checksum and its item.

    Raises:
        BackendCorruptError: The item or the vector is damaged, or the vector is of another item.
    """
    vector, own, is_current, *row = hit
    item = item_of(row, score)
    path, key, checksum = row[0], row[1], row[-1]
    if checksum is not None:
        _check_vector((path, key), checksum, vector if is_current else None, own)
    return item


def scored(row: tuple[Any, ...]) -> StoreItem:
    """Return the item of a row that ends with its score."""
    *columns, score = row
    return item_of(columns, score)


def scan(
    connection: sqlite3.Connection, scope: Scope, keys: KeyRange, limit: int
) -> list[StoreItem]:
    """Return full items of one namespace in key order."""
    return [item_of(row) for row in _scan(connection, scope, keys, limit, whole=True)]


def scan_keys(
    connection: sqlite3.Connection, scope: Scope, keys: KeyRange, limit: int
) -> list[str]:
    """Return keys of one namespace in order."""
    rows = _scan(connection, scope, keys, limit, whole=False)
    return [_decoded(key, decode_text, "the key of an item") for (key,) in rows]


def _scan(
    connection: sqlite3.Connection, scope: Scope, keys: KeyRange, limit: int, *, whole: bool
) -> sqlite3.Cursor:
    low, high = keys.bounds()
    statement = queries.scan_items(whole=whole, descending=keys.descending)
    values = scope.bound_values | {"low": low, "high": high, "limit": limit}
    return connection.execute(statement, values)


def items_of_matches(
    connection: sqlite3.Connection, found: Sequence[tuple[int, int, float]]
) -> list[StoreItem]:
    """Return the items of ids, revisions and scores, with the scores."""
    wanted = {"ids": json.dumps([item for item, _, _ in found])}
    rows = {row[0]: row[1:] for row in connection.execute(queries.ITEMS, wanted)}
    return [item_of(rows[revision], score) for _, revision, score in found]


def items_of_vectors(
    connection: sqlite3.Connection, scores: Mapping[int, float]
) -> dict[int, StoreItem]:
    """Return the items of vectors, by the vectors' ids, each with its score.

    Raises:
        BackendCorruptError: An item does not exist.
    """
    rows = connection.execute(queries.ITEMS_OF_VECTORS, {"ids": json.dumps(list(scores))})
    found = {number: item_of_hit(hit, scores[number]) for number, *hit in rows}
    if len(found) < len(scores):
        raise BackendCorruptError("sqlite: a vector is damaged: its item does not exist")
    return found


def namespaces(
    connection: sqlite3.Connection, listing: Listing, limit: int, now: float
) -> list[Namespace]:
    """Return the namespaces that hold an item, in order."""
    if listing.max_depth == 0:
        return []
    low, high = listing.range()
    found: dict[Namespace, None] = {}
    size = min(_PAGE, max(limit, _FIRST_PAGE))
    while len(found) < limit:
        values = {"low": low, "high": high, "now": now, "limit": size}
        rows = connection.execute(queries.LIST_NAMESPACES, values)
        what = "the name of a namespace"
        page = [_decoded(path, decode_namespace, what) for (path,) in rows]
        found |= {cut: None for each in page if (cut := listing.cut(each)) is not None}
        if len(page) < size:
            break
        size = min(_PAGE, 2 * size)
        low = listing.beyond(page[-1])
    return list(found)[:limit]
