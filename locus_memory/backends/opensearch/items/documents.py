"""Items as documents: their ids, their fields, and the items that they are read into.

The id of a document is a digest of the namespace and the key, since the server takes ids of at most
512 bytes. The true names are fields, and each read checks them with the rest of the item.
"""

from __future__ import annotations

import secrets
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, NamedTuple, Self

from locus_memory.backends.opensearch.items.mapping import vector_value
from locus_memory.backends.opensearch.search.tokens import field_terms
from locus_memory.backends.selection import damaged_item, path_of
from locus_memory.errors import (
    BackendCorruptError,
    InvalidArgumentError,
    InvalidEmbeddingError,
    InvalidKeyError,
    InvalidNamespaceError,
)
from locus_memory.store.checksum import (
    check_item,
    item_checksum,
    name_checksum,
    value_matches,
    vector_checksum,
)
from locus_memory.store.encoding import decode_namespace, encode_text
from locus_memory.store.item import Namespace, Put, Restored, StoreItem, embedding_numbers
from locus_memory.store.json_values import decode_json, encode_json, encode_metadata
from locus_memory.store.text import searchable

__all__ = [
    "END",
    "Address",
    "Document",
    "Source",
    "item_of",
    "microseconds",
    "routing_of",
    "value_of",
    "within",
]

END: Final = "\x01"
"""Ends each label of an encoded namespace, and is in none."""

Source = Mapping[str, Any]
"""The fields of a document that the server returns."""

_LONGEST_NAME: Final = 32_000
"""Bytes of a namespace or a key; a term of the index has at most 32,766."""

_LONGEST_DOCUMENT: Final = 20_000_000
"""Characters of a value, of metadata or of a text; a server's parser refuses longer strings."""

_MOST_DIMENSIONS: Final = 16_000
"""https://docs.opensearch.org/latest/mappings/supported-field-types/knn-vector/"""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_DAMAGED: Final = (AttributeError, KeyError, OverflowError, TypeError, ValueError)


def microseconds(moment: datetime) -> int:
    """Return a moment as microseconds since the epoch."""
    return (moment - _EPOCH) // _MICROSECOND


def _moment(number: int) -> datetime:
    return _EPOCH + timedelta(microseconds=number)


def _digest(text: str, size: int) -> str:
    return urlsafe_b64encode(blake2b(text.encode(), digest_size=size).digest()).decode()


@lru_cache(maxsize=1024)
def routing_of(path: str) -> str:
    """Return the routing of a namespace: all its items are on one shard."""
    return _digest(path, 12)


def within(path: str) -> str:
    """Return the term of all items in a namespace and below it."""
    return _digest(path, 24)


@lru_cache(maxsize=1024)
def _withins(path: str) -> tuple[str, ...]:
    """Return the terms of an item of a namespace."""
    labels = path.split(END)[:-1]
    return tuple(within(END.join([*labels[:depth], ""])) for depth in range(1, len(labels) + 1))


class Address(NamedTuple):
    """The place of an item, and the version that a conditional write expects there.

    Attributes:
        path: The encoded namespace.
        key: The key.
        if_version: The expected version, or `None`.
    """

    path: str
    key: str
    if_version: int | None = None

    @classmethod
    def of(cls, namespace: Namespace, key: str, if_version: int | None = None) -> Self:
        """Return the address of an item."""
        return cls(path_of(namespace), key, if_version)

    @property
    def id(self) -> str:
        """The id of the document: 48 characters that no other item has."""
        return _digest(f"{self.path}\x01{self.key}", 36)

    @property
    def routing(self) -> str:
        """The routing of the document."""
        return routing_of(self.path)

    @property
    def namespace(self) -> Namespace:
        """The namespace of the item."""
        return decode_namespace(self.path)

    @property
    def checksum(self) -> int:
        """The checksum of the name."""
        return name_checksum(self.path.encode(), encode_text(self.key).encode())

    def check(self) -> Self:
        """Return the address, if its names are not too long to be written.

        Raises:
            InvalidNamespaceError: The namespace is.
            InvalidKeyError: The key is.
        """
        limit = f"of OpenSearch has at most {_LONGEST_NAME:,} bytes"
        if len(self.path.encode()) > _LONGEST_NAME:
            raise InvalidNamespaceError(f"a namespace {limit}")
        if len(self.key.encode()) > _LONGEST_NAME:
            raise InvalidKeyError(f"a key {limit}")
        return self


class Document(NamedTuple):
    """A put, encoded and ready to write.

    Attributes:
        address: The place of the item.
        operation: The token of the put.
        fields: The fields that do not depend on the moment of the write.
        ttl: Seconds, or `None`.
        dimension: The length of the embedding, or 0.
        past: The restored item with its version and moments; `None`: it is a put.
    """

    address: Address
    operation: str
    fields: dict[str, Any]
    ttl: float | None
    dimension: int
    past: Restored | None = None

    @classmethod
    def of(cls, put: Put, vector: bytes | None) -> Self:
        """Return the document of a put; value, metadata and text are checked.

        Args:
            put: The put.
            vector: Its embedding, as `check_embedding` returns it.

        Raises:
            InvalidArgumentError: A field is invalid or too long.
        """
        address = Address.of(put.namespace, put.key, put.if_version).check()
        value, metadata = encode_json(put.value), encode_metadata(put.metadata)
        words = searchable(put.value, put.text)
        if max(len(value), len(metadata), len(words)) > _LONGEST_DOCUMENT:
            raise InvalidArgumentError(
                f"a value, metadata or a text of OpenSearch has at most {_LONGEST_DOCUMENT:,} bytes"
            )
        name = address.checksum
        fields = {
            "namespace": address.path,
            "within": _withins(address.path),
            "key": put.key,
            "value": value.decode(),
            "metadata": metadata.decode(),
            "checksum": item_checksum(name, value, metadata, vector=vector is not None),
            "terms": field_terms(put.value, put.metadata or {}),
        }
        if words:
            fields["text"] = words
        if vector is not None:
            fields |= _vector_fields(name, vector)
        past = put if isinstance(put, Restored) else None
        return cls(address, secrets.token_hex(8), fields, put.ttl, len(vector or b"") // 4, past)

    def written(self, now: datetime) -> dict[str, Any]:
        """Return the fields of a write at this moment; the script adds version and creation."""
        fields = {**self.fields, "operation": self.operation, "updated": microseconds(now)}
        if self.ttl is not None:
            fields["expires"] = microseconds(now + timedelta(seconds=self.ttl))
        if self.past is not None:
            fields["updated"] = microseconds(self.past.updated_at)
            if self.past.expires_at is not None:
                fields["expires"] = microseconds(self.past.expires_at)
        return fields

    @property
    def restored(self) -> dict[str, int] | None:
        """The version and the creation time of a restored item; `None`: it is a put."""
        if self.past is None:
            return None
        return {"version": self.past.version, "created": microseconds(self.past.created_at)}


def _vector_fields(name: int, vector: bytes) -> dict[str, Any]:
    dimension = len(vector) // 4
    if dimension > _MOST_DIMENSIONS:
        raise InvalidEmbeddingError(
            f"the embedding has {dimension} dimensions, OpenSearch holds {_MOST_DIMENSIONS:,}"
        )
    return {
        **vector_value(embedding_numbers(vector)),
        "dimension": dimension,
        "embedding": b64encode(vector).decode(),
        "vector_checksum": vector_checksum(name, vector),
    }


def item_of(source: Source, score: float | None = None) -> StoreItem:
    """Return the item of a document.

    Raises:
        BackendCorruptError: It is damaged.
    """
    try:
        address = Address(source["namespace"], source["key"])
        value, metadata = source["value"].encode(), source["metadata"].encode()
        checksum, expires = source["checksum"], source.get("expires")
        check_item(checksum, address.checksum, value, metadata)
        return StoreItem(
            namespace=address.namespace,
            key=address.key,
            value=decode_json(value),
            metadata=decode_json(metadata),
            created_at=_moment(source["created"]),
            updated_at=_moment(source["updated"]),
            version=source["version"],
            score=score,
            expires_at=None if expires is None else _moment(expires),
        )
    except _DAMAGED as error:
        raise damage(_named(source)) from error


def value_of(source: Source, address: Address) -> Any:
    """Return the value of the document at an address.

    Raises:
        BackendCorruptError: It is damaged, or the document of another item.
    """
    try:
        value = source["value"].encode()
        is_whole = (source["namespace"], source["key"]) == address[:2]
        if is_whole and value_matches(source["checksum"], address.checksum, value):
            return decode_json(value)
    except _DAMAGED as error:
        raise damage(address) from error
    raise damage(address)


def _named(source: Source) -> Address | None:
    with suppress(*_DAMAGED):
        decode_namespace(source["namespace"])
        return Address(source["namespace"], source["key"])
    return None


def damage(address: Address | None, what: str = "the item") -> BackendCorruptError:
    """Return the error that names an item, whose name may be damaged as well."""
    if address is None:
        return BackendCorruptError(f"opensearch: {what} has a damaged name")
    return damaged_item("opensearch", address.namespace, address.key, what)
