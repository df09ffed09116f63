"""The rows of puts: checked, encoded and ready to write."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NamedTuple, Self

import orjson

from locus_memory.backends.postgresql.items.columns import (
    MARK,
    join_column,
    join_names,
    join_paths,
)
from locus_memory.backends.postgresql.items.documents import (
    NO_METADATA,
    encode_document,
    encode_object,
    join_documents,
)
from locus_memory.backends.postgresql.items.naming import Address, name_in, path_of, scope_of
from locus_memory.backends.postgresql.search.words import index_all, index_words
from locus_memory.store.checksum import (
    canonical,
    item_checksum,
    name_checksum,
    vector_checksum,
)
from locus_memory.store.encoding import encode_text
from locus_memory.store.item import Namespace, Put, check_key, check_ttl

__all__ = ["Columns", "Row", "checksum_name", "embeddings_of", "interval"]


def interval(ttl: float | None) -> str | None:
    """Return a number of seconds as the server reads it."""
    return None if ttl is None else f"{ttl:.6f} seconds"


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
    """

    address: Address
    value: str
    metadata: str
    words: str
    length: int
    checksum: int
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
        """Return the row of a put; value, metadata and text are checked."""
        stored = encode_document(value)
        words, length = index_words(value, text)
        return cls(
            address,
            stored,
            encode_object(metadata),
            words,
            length,
            checksum_of(address, value, metadata, vector=embedding is not None),
            ttl,
            embedding,
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


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of several puts, encoded; separate `Row`s would take half as long again.

    Attributes:
        names: The names of the items in the database.
        paths: The encoded namespaces.
        keys: The encoded keys.
        ttls: Seconds, or `None`; empty if nothing expires.
        lengths: The numbers of words.
        metadata: The metadata in the format of `documents`; empty if there is none.
        values: The values, likewise, joined.
        words: The texts of `tsvector`s.
        checksums: The checksums of the items.
    """

    names: Sequence[str]
    paths: Sequence[str]
    keys: Sequence[str]
    ttls: Sequence[float | None]
    lengths: Sequence[int]
    metadata: Sequence[str]
    values: str
    words: Sequence[str]
    checksums: Sequence[int]

    @classmethod
    def of(
        cls,
        namespaces: Iterable[Namespace],
        keys: Iterable[str],
        values: Sequence[Any],
        metadata: Iterable[Mapping[str, Any] | None] = (),
        *,
        ttls: Iterable[float | None] = (),
        texts: Sequence[str | None] = (),
    ) -> Self:
        """Check puts without a condition or an embedding, and return their columns."""
        paths = [path_of(namespace) for namespace in namespaces]
        encoded = [encode_text(check_key(key)) for key in keys]
        documents = join_documents(values, MARK)
        words, lengths = index_all(values, texts or [None] * len(values))
        given = list(metadata)
        stored = [encode_object(each) for each in given]
        return cls(
            names=list(map(name_in, paths, encoded)),
            paths=paths,
            keys=encoded,
            ttls=[check_ttl(ttl) for ttl in ttls],
            lengths=lengths,
            metadata=stored,
            values=documents,
            words=words,
            checksums=[
                item_checksum(checksum_name(path, key), canonical(value), document, vector=False)
                for path, key, value, document in zip(
                    paths, encoded, values, _canonical_metadata(given), strict=False
                )
            ],
        )

    @classmethod
    def of_puts(cls, puts: Sequence[Put]) -> Self:
        """Check puts without a condition or an embedding, and return their columns."""
        return cls.of(
            [put.namespace for put in puts],
            [put.key for put in puts],
            [put.value for put in puts],
            [put.metadata for put in puts],
            ttls=[put.ttl for put in puts],
            texts=[put.text for put in puts],
        )

    @classmethod
    def of_rows(cls, rows: Sequence[Row]) -> Self:
        """Return the columns of rows."""
        addresses, values, metadata, words, lengths, checksums, ttls, _ = zip(*rows, strict=True)
        names, paths, keys, _ = zip(*addresses, strict=True)
        documents = join_column(values)
        return cls(names, paths, keys, ttls, lengths, metadata, documents, words, checksums)

    @property
    def is_distinct(self) -> bool:
        """Whether no two puts are for the same item."""
        return len(set(self.names)) == len(self.names)

    def addresses(self) -> list[str]:
        """Return names, scopes, paths and keys, joined; one scope and path if all are the same."""
        paths = self.paths[:1] if len(set(self.paths)) == 1 else self.paths
        scopes = map(scope_of, paths)
        return [
            join_names(self.names),
            join_column(scopes),
            join_paths(paths),
            join_column(self.keys),
        ]

    def contents(self) -> list[str]:
        """Return times to live, lengths, metadata, values, words and checksums, joined."""
        return [
            join_column(interval(ttl) or "" for ttl in self.ttls),
            join_column(map(str, self.lengths)),
            join_column(["" if each == NO_METADATA else each for each in self.metadata]),
            self.values,
            join_column(self.words),
            join_column(map(str, self.checksums)),
        ]


def _canonical_metadata(given: Sequence[Mapping[str, Any] | None]) -> Iterable[bytes]:
    """Return metadata in the form that checksums cover; nothing if no put has any."""
    return [canonical(each or {}) for each in given] or repeat(canonical({}))
