r"""The rows of puts, checked and encoded, and the columns of a batch.

A column is one text that the server splits: asyncpg takes as long for each element of a `text[]` as
for a whole parameter. A column holds numbers, JSON, digests, words, encoded keys, encoded paths or
names, and only a path or a name contains the character `\x01`. A path has it at the end, and never
twice in a row; a name has it neither at its start nor at its end, and never three times in a row.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Self

import orjson

from locus_memory.backends.postgresql.items.documents import (
    NO_METADATA,
    encode_document,
    encode_object,
)
from locus_memory.backends.postgresql.items.naming import Address, scope_of
from locus_memory.backends.postgresql.search.words import index_words
from locus_memory.store.checksum import (
    canonical,
    item_checksum,
    name_checksum,
    vector_checksum,
)
from locus_memory.store.item import Put, Restored

__all__ = [
    "Row",
    "addresses_of",
    "checksum_name",
    "contents_of",
    "embeddings_of",
    "join_column",
    "join_names",
    "join_paths",
    "past_of",
]


MARK: Final = "\x01"


def join_column(column: Iterable[str]) -> str:
    """Return a column as one text."""
    return MARK.join(column)


def join_paths(paths: Iterable[str]) -> str:
    """Return encoded namespaces as one text, each without the mark at its end."""
    return (MARK + MARK).join([path[:-1] for path in paths])


def join_names(names: Iterable[str]) -> str:
    """Return names of items as one text."""
    return (MARK + MARK + MARK).join(names)


class Row(NamedTuple):
    """The row of a put, encoded and ready to write.

    Attributes:
        address: The place of the item.
        value: The value in the format of `documents`.
        metadata: The metadata, likewise.
        words: The text of a `tsvector`.
        length: The number of words.
        checksum: The checksum of the item.
        ttl: Seconds, or `None`.
        embedding: The text of a `vector`, or `None`.
        past: The version and the moments of an item that is restored, or `None`.
    """

    address: Address
    value: str
    metadata: str
    words: str
    length: int
    checksum: int
    ttl: float | None = None
    embedding: str | None = None
    past: Restored | None = None

    @classmethod
    def of(cls, address: Address, put: Put, embedding: str | None = None) -> Self:
        """Return the row of a put; value, metadata and text are checked."""
        stored = encode_document(put.value)
        words, length = index_words(put.value, put.text)
        return cls(
            address,
            stored,
            encode_object(put.metadata),
            words,
            length,
            checksum_of(address, put.value, put.metadata, vector=embedding is not None),
            put.ttl,
            embedding,
            put if isinstance(put, Restored) else None,
        )

    @property
    def vector_checksum(self) -> str:
        """The checksum of the embedding, as text; empty without an embedding."""
        if self.embedding is None:
            return ""
        numbers = orjson.loads(self.embedding)
        sent = struct.pack(f">{len(numbers)}f", *numbers)
        return str(vector_checksum(checksum_name(self.address.path, self.address.key), sent))


def checksum_name(path: str, key: str) -> int:
    """Return the checksum of a name, with which the checksums of its item begin."""
    return name_checksum(path.encode(), key.encode())


def checksum_of(
    address: Address, value: Any, metadata: Mapping[str, Any] | None, *, vector: bool
) -> int:
    """Return the checksum of an item, with its documents as `jsonb` returns them."""
    name = checksum_name(address.path, address.key)
    return item_checksum(name, canonical(value), canonical(metadata or {}), vector=vector)


def embeddings_of(rows: Sequence[Row]) -> tuple[str, str]:
    """Return the embeddings of rows and their checksums, joined."""
    vectors = join_column(row.embedding or "" for row in rows)
    return vectors, join_column(row.vector_checksum for row in rows)


def past_of(rows: Sequence[Row]) -> list[str]:
    """Return the names of rows that are restored, their versions and moments, joined."""
    past = [row.past for row in rows if row.past is not None]
    return [
        join_names(row.address.name for row in rows),
        join_column(str(each.version) for each in past),
        join_column(str(each.created_at) for each in past),
        join_column(str(each.updated_at) for each in past),
        join_column("" if each.expires_at is None else str(each.expires_at) for each in past),
    ]


def addresses_of(rows: Sequence[Row]) -> list[str]:
    """Return names, scopes, paths and keys, joined; one scope and path if all are the same."""
    addresses = [row.address for row in rows]
    paths = [each.path for each in addresses]
    if len(set(paths)) == 1:
        paths = paths[:1]
    return [
        join_names(each.name for each in addresses),
        join_column(map(scope_of, paths)),
        join_paths(paths),
        join_column(each.key for each in addresses),
    ]


def contents_of(rows: Sequence[Row]) -> list[str]:
    """Return times to live, lengths, metadata, values, words and checksums, joined."""
    _, values, metadata, words, lengths, checksums, ttls, _, _ = zip(*rows, strict=True)
    return [
        join_column("" if ttl is None else f"{ttl:.6f} seconds" for ttl in ttls),
        join_column(map(str, lengths)),
        join_column("" if each == NO_METADATA else each for each in metadata),
        join_column(values),
        join_column(words),
        join_column(map(str, checksums)),
    ]
