"""Items as rows: what the store's verbs ask the database for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, NamedTuple, Self

from locus_memory.backends.postgresql import queries
from locus_memory.backends.postgresql.columns import join_column, join_paths
from locus_memory.backends.postgresql.connection import PostgreSQLPool, Record
from locus_memory.backends.postgresql.documents import (
    NO_METADATA,
    decode_document,
    encode_document,
    encode_documents,
    encode_object,
)
from locus_memory.backends.postgresql.queries import Arguments
from locus_memory.backends.postgresql.words import index_words
from locus_memory.errors import BackendCorruptError, VersionConflictError
from locus_memory.store.encoding import (
    decode_namespace,
    decode_text,
    encode_namespace,
    encode_text,
    namespace_upper_bound,
    prefix_upper_bound,
)
from locus_memory.store.filters import Condition
from locus_memory.store.item import (
    Namespace,
    Put,
    StoreItem,
    check_key,
    check_limit,
    check_namespace,
    check_ttl,
    check_version,
)

__all__ = [
    "Address",
    "Columns",
    "KeyRange",
    "Page",
    "Row",
    "Scope",
    "clear",
    "decoded",
    "get_values",
    "id_of",
    "item_of",
    "newest",
    "purge",
    "put_columns",
    "read_item",
    "scan",
    "scan_keys",
    "write",
]

_DIGEST_BYTES: Final = 16

_MOST: Final = 2**62
"""The server's integers are not much larger."""


@lru_cache(maxsize=1024)
def _digest(path: str) -> str:
    return blake2b(path.encode(), digest_size=_DIGEST_BYTES).hexdigest()


@lru_cache(maxsize=1024)
def _path(namespace: Namespace) -> str:
    return encode_namespace(check_namespace(namespace))


def path_of(namespace: Namespace) -> str:
    """Return the encoded namespace, checked."""
    try:
        return _path(namespace)
    except TypeError:
        # What cannot be a key of the cache is no namespace either.
        return encode_namespace(check_namespace(namespace))


def _id_of(path: str, key: str) -> str:
    # A path ends with a character that no key has, so no two pairs are alike.
    return blake2b((path + key).encode(), digest_size=_DIGEST_BYTES).hexdigest()


def id_of(namespace: Namespace, key: str) -> str:
    """Return what the database knows an item by, its namespace and key checked."""
    return _id_of(path_of(namespace), encode_text(check_key(key)))


class Address(NamedTuple):
    """Where an item is, and the version a conditional write expects there.

    Attributes:
        id: The digest of path and key: what the database knows the item by.
        path: The encoded namespace.
        key: The encoded key.
        if_version: What is expected, or `None`.
    """

    id: str
    path: str
    key: str
    if_version: int | None

    @classmethod
    def of(cls, namespace: Namespace, key: str, if_version: int | None = None) -> Self:
        """Return the address of an item, checked."""
        path = path_of(namespace)
        name = encode_text(check_key(key))
        return cls(_id_of(path, name), path, name, check_version(if_version))

    @property
    def scope(self) -> str:
        """The digest of the namespace alone."""
        return _digest(self.path)


class Row(NamedTuple):
    """What a put brings, encoded and ready to write.

    Attributes:
        address: Where to.
        value: As `documents` has it.
        metadata: Likewise.
        words: The text of a `tsvector`.
        length: How many words there are.
        ttl: Seconds, or `None`.
        embedding: The text of a `vector`, or `None`.
    """

    address: Address
    value: str
    metadata: str
    words: str
    length: int
    ttl: float | None
    embedding: str | None

    @classmethod
    def of(
        cls,
        address: Address,
        value: Any,
        metadata: Mapping[str, Any] | None,
        *,
        ttl: float | None,
        text: str | None,
        embedding: str | None = None,
    ) -> Self:
        """Return the row of a put, checked."""
        stored = encode_document(value)
        words, length = index_words(value, text)
        return cls(
            address, stored, encode_object(metadata), words, length, check_ttl(ttl), embedding
        )


@dataclass(frozen=True, slots=True)
class Columns:
    """What several puts bring, encoded; to make a `Row` of each takes half as long again."""

    ids: Sequence[str]
    paths: Sequence[str]
    keys: Sequence[str]
    ttls: Sequence[float | None]
    lengths: Sequence[int]
    metadata: Sequence[str]
    values: Sequence[str]
    words: Sequence[str]

    @classmethod
    def of(cls, puts: Sequence[Put]) -> Self:
        """Return the columns of puts without a condition or an embedding, checked."""
        paths = [path_of(put.namespace) for put in puts]
        keys = [encode_text(check_key(put.key)) for put in puts]
        values = encode_documents([put.value for put in puts])
        texts = [index_words(put.value, put.text) for put in puts]
        return cls(
            ids=list(map(_id_of, paths, keys)),
            paths=paths,
            keys=keys,
            ttls=[check_ttl(put.ttl) for put in puts],
            lengths=[length for _, length in texts],
            metadata=[encode_object(put.metadata) for put in puts],
            values=values,
            words=[words for words, _ in texts],
        )

    @classmethod
    def of_rows(cls, rows: Sequence[Row]) -> Self:
        """Return the columns of rows."""
        addresses, values, metadata, words, lengths, ttls, _ = zip(*rows, strict=True)
        ids, paths, keys, _ = zip(*addresses, strict=True)
        return cls(ids, paths, keys, ttls, lengths, metadata, values, words)

    def names(self) -> list[str]:
        """Return ids, scopes, paths and keys, joined; one scope and path if all share them."""
        paths = self.paths[:1] if len(set(self.paths)) == 1 else self.paths
        scopes = map(_digest, paths)
        return [
            join_column(self.ids),
            join_column(scopes),
            join_paths(paths),
            join_column(self.keys),
        ]

    def contents(self, now: datetime) -> list[str]:
        """Return expiries, lengths, metadata, values and words, joined."""
        expiries = ["" if ttl is None else str(_expiry(ttl, now)) for ttl in self.ttls]
        metadata = ["" if each == NO_METADATA else each for each in self.metadata]
        lengths = map(str, self.lengths)
        return list(map(join_column, (expiries, lengths, metadata, self.values, self.words)))


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a search looks, and when."""

    path: str
    bound: str | None
    recursive: bool
    now: datetime

    @classmethod
    def of(cls, namespace: Namespace, now: datetime, *, recursive: bool) -> Self:
        """Return the scope of a search, checked."""
        path = path_of(namespace)
        return cls(path, namespace_upper_bound(namespace), recursive, now)

    def condition(self, table: str, arguments: Arguments) -> str:
        """Return the condition that a row of a table is in the scope."""
        if not self.recursive:
            return f"{table}.scope = {arguments.bind(_digest(self.path), 'uuid')}"
        path, low = f"{table}.path", arguments.bind(self.path, "text")
        high = arguments.bind(self.bound or "", "text")
        return (
            f"left({path}, 300) >= left({low}, 300) AND {path} >= {low} AND "
            f"left({path}, 300) <= left({high}, 300) AND {path} < {high}"
        )

    def by_key(self, arguments: Arguments) -> str:
        """Return the condition that the item `i` is in the namespace, as the index of keys is."""
        path = arguments.bind(self.path, "text")
        return f"left(i.path, 300) = left({path}, 300) AND i.path = {path}"

    def live(self, arguments: Arguments) -> str:
        """Return the condition that the item `i` has not expired."""
        return f"(i.expires_at IS NULL OR i.expires_at > {arguments.bind(self.now, 'timestamptz')})"


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of the hits is wanted."""

    limit: int
    offset: int = 0

    @classmethod
    def of(cls, limit: object, offset: object = 0) -> Self:
        """Return the page, checked."""
        return cls(min(check_limit(limit), _MOST), min(check_limit(offset, "offset"), _MOST))


async def write(
    pool: PostgreSQLPool, operations: Sequence[Row | Address], now: datetime
) -> list[int]:
    """Put the rows and delete what is at the addresses, in one round trip.

    Returns:
        A put's new version, or whether there was something to delete, in order.

    Raises:
        VersionConflictError: One `if_version` does not hold; nothing is written.
    """
    addresses = [each.address if isinstance(each, Row) else each for each in operations]
    if any(address.if_version is not None for address in addresses):
        return await _write_in_order(pool, operations, now)
    ids = {address.id for address in addresses}
    rows = [each for each in operations if isinstance(each, Row)]
    if not rows:
        return await _delete_many(pool, addresses, now)
    if len(ids) < len(rows) or len(rows) < len(operations):
        return await _write_in_order(pool, operations, now)
    if len(rows) == 1 and rows[0].embedding is None:
        return [await _put(pool, rows[0], now)]
    return await _put_many(pool, rows, now)


async def _put(pool: PostgreSQLPool, row: Row, now: datetime) -> int:
    statement = queries.PUT_OVER_VECTOR if pool.features.has_vector else queries.PUT
    address = row.address
    names = address.id, address.scope, address.path, address.key
    content = _expiry(row.ttl, now), row.length, row.metadata, row.value, row.words
    version: int = await pool.fetchval(statement, *names, *content, now)
    return version


def _expiry(ttl: float | None, now: datetime) -> datetime | None:
    return None if ttl is None else now + timedelta(seconds=ttl)


async def put_columns(pool: PostgreSQLPool, columns: Columns, now: datetime) -> list[int]:
    """Put what is in the columns, no two of one item, in one round trip; return the versions."""
    statement = queries.PUT_MANY_OVER_VECTORS if pool.features.has_vector else queries.PUT_MANY
    return _versions(await pool.fetchval(statement, now, *columns.names(), *columns.contents(now)))


async def _put_many(pool: PostgreSQLPool, rows: Sequence[Row], now: datetime) -> list[int]:
    columns = Columns.of_rows(rows)
    if all(row.embedding is None for row in rows):
        return await put_columns(pool, columns, now)
    arguments = *columns.names(), *columns.contents(now), _embeddings(rows)
    return _versions(await pool.fetchval(queries.PUT_MANY_VECTORS, now, *arguments))


def _versions(found: str) -> list[int]:
    return list(map(int, found.split()))


def _embeddings(rows: Sequence[Row]) -> str:
    return join_column(row.embedding or "" for row in rows)


def _nothing(address: Address) -> Row:
    """Return a row without a value: the server deletes what is there."""
    return Row(address, "", "", "", 0, None, None)


async def _write_in_order(
    pool: PostgreSQLPool, operations: Sequence[Row | Address], now: datetime
) -> list[int]:
    addresses = [each.address if isinstance(each, Row) else each for each in operations]
    rows = [each if isinstance(each, Row) else _nothing(each) for each in operations]
    conditions = join_column(
        "" if each.if_version is None else str(min(each.if_version, _MOST)) for each in addresses
    )
    columns = Columns.of_rows(rows)
    arguments = *columns.names(), conditions, *columns.contents(now)
    if not pool.features.has_vector:
        found = await pool.fetch(queries.WRITE, now, *arguments)
    else:
        found = await pool.fetch(queries.WRITE_VECTORS, now, *arguments, _embeddings(rows))
    if found[0]["conflict"]:
        lost = addresses[found[0]["number"] - 1]
        raise VersionConflictError(lost.if_version or 0, found[0]["result"])
    return [row["result"] for row in found]


async def _delete_many(
    pool: PostgreSQLPool, addresses: Sequence[Address], now: datetime
) -> list[int]:
    ids = join_column(address.id for address in addresses)
    rows = await pool.fetch(queries.DELETE_MANY, ids, now)
    deleted = {row["id"].hex for row in rows}
    results: list[int] = []
    for address in addresses:
        results.append(address.id in deleted)
        deleted.discard(address.id)
    return results


async def clear(pool: PostgreSQLPool, scope: Scope) -> int:
    """Delete everything in the scope; return how many items that were not expired."""
    # Nothing sorts between a path and its first descendant's.
    bound = scope.bound if scope.recursive else scope.path + "\x01"
    count: int = await pool.fetchval(queries.CLEAR, scope.path, scope.now, bound)
    return count


async def purge(pool: PostgreSQLPool, now: datetime, limit: int) -> None:
    """Delete some of the items that have expired."""
    await pool.execute(queries.PURGE, now, limit)


async def read_item(pool: PostgreSQLPool, address: Address, now: datetime) -> StoreItem | None:
    """Return the item at an address, unless it is expired."""
    row = await pool.fetchrow(queries.GET, address.id, now)
    return None if row is None else item_of(row)


async def get_values(pool: PostgreSQLPool, ids: list[str], now: datetime) -> dict[str, Any]:
    """Return the values of those items that are there, by id."""
    rows = await pool.fetch(queries.GET_MANY, join_column(ids), now)
    return {row["id"].hex: decoded(row["value"]) for row in rows}


def decoded(stored: str) -> Any:
    """Return a stored value.

    Raises:
        BackendCorruptError: It is none.
    """
    try:
        return decode_document(stored)
    except (KeyError, ValueError) as error:
        raise BackendCorruptError("postgresql: a stored value is damaged") from error


def item_of(row: Record, score: float | None = None) -> StoreItem:
    """Return the item of a row with `queries.COLUMNS`.

    Raises:
        BackendCorruptError: It is damaged.
    """
    try:
        return StoreItem(
            namespace=decode_namespace(row["path"]),
            key=decode_text(row["key"]),
            value=decode_document(row["value"]),
            metadata=decode_document(row["metadata"]),
            created_at=row["created_at"],
            updated_at=row["updated_at"],
            version=row["version"],
            score=score,
            expires_at=row["expires_at"],
        )
    except (KeyError, StopIteration, TypeError, ValueError) as error:
        raise BackendCorruptError(f"postgresql: the item {row['key']!r} is damaged") from error


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Which keys of a namespace a scan wants."""

    prefix: str | None
    after: str | None
    descending: bool = False

    def conditions(self, arguments: Arguments) -> list[str]:
        """Return the conditions on the items `i`."""
        found: list[str] = []
        if self.prefix:
            low = encode_text(self.prefix)
            found.append(_beyond(">=", arguments.bind(low, "text")))
            high = prefix_upper_bound(low)
            found += [] if high is None else [_beyond("<", arguments.bind(high, "text"))]
        if self.after is not None:
            sign = "<" if self.descending else ">"
            found.append(_beyond(sign, arguments.bind(encode_text(self.after), "text")))
        return found


def _beyond(sign: str, name: str) -> str:
    # The first part is what the index knows: 300 characters.
    return f"left(i.key, 300) {sign[0]}= left({name}, 300) AND i.key {sign} {name}"


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
    here = scope.by_key(arguments), scope.live(arguments)
    statement = queries.scan_items(
        (*here, *keys.conditions(arguments)),
        arguments.bind(limit, "bigint"),
        columns=columns,
        descending=keys.descending,
    )
    return await pool.fetch(statement, *arguments.values)


async def newest(
    pool: PostgreSQLPool, scope: Scope, condition: Condition, page: Page
) -> list[StoreItem]:
    """Return the items that satisfy the condition, the newest write first."""
    arguments = Arguments()
    limit, offset = arguments.bind(page.limit, "bigint"), arguments.bind(page.offset, "bigint")
    here = scope.condition("i", arguments), scope.live(arguments)
    conditions = (*here, arguments.compile(condition))
    statement = queries.newest_items(conditions, limit, offset, recursive=scope.recursive)
    return [item_of(row) for row in await pool.fetch(statement, *arguments.values)]
