"""The rows of puts: checked, encoded and ready to write; and items read from rows."""

from __future__ import annotations

from array import array
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Final, Self

import orjson

from locus_memory._internal.quoting import quote
from locus_memory.backends.oracle.connection.driver import Binds, Row
from locus_memory.backends.oracle.items.naming import Address, split
from locus_memory.backends.oracle.items.tokens import tokens_of
from locus_memory.backends.oracle.schema import NEVER
from locus_memory.errors import BackendCorruptError
from locus_memory.store.checksum import (
    canonical,
    check_item,
    has_vector,
    item_checksum,
    name_checksum,
    vector_checksum,
)
from locus_memory.store.encoding import decode_namespace, decode_text
from locus_memory.store.item import Put, Restored, StoreItem, timestamp
from locus_memory.store.json_values import encode_json, encode_metadata
from locus_memory.store.text import count_tokens, indexed

__all__ = [
    "ItemRow",
    "damaged",
    "expiry",
    "item_of",
    "micros",
    "read_vector",
    "word_name",
]

_MICRO: Final = 1_000_000
_EPOCH: Final = timestamp(0)

_LONGEST_WORD: Final = 48
"""Bytes of a word that is its own name in the index; a longer one has a digest of 64."""


def micros(moment: datetime) -> int:
    """Return the microseconds since the epoch of a moment."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def expiry(row: ItemRow, now: datetime) -> int:
    """Return when the item of a row expires, in microseconds since the epoch, or `NEVER`."""
    if row.past is not None:
        return NEVER if row.past.expires_at is None else micros(row.past.expires_at)
    if row.ttl is None:
        return NEVER
    return min(micros(now) + round(row.ttl * _MICRO), NEVER - 1)


def word_name(word: str) -> bytes:
    """Return the name of a word in the index, which no other word has."""
    name = word.encode()
    return name if len(name) <= _LONGEST_WORD else blake2b(name).digest()


@dataclass(frozen=True, slots=True)
class ItemRow:
    """The row of a put, encoded.

    Attributes:
        address: The place of the item.
        document: The JSON of `[value, metadata]`, exactly as encoded.
        tokens: The tokens of filters.
        words: How often each stem occurs.
        checksum: The checksum of the item.
        ttl: Seconds, or `None`.
        vector: The vector as little-endian float32, or `None`.
        past: The restored item, which has a version and moments of its own, or `None`.
    """

    address: Address
    document: bytes
    tokens: list[str]
    words: Counter[str]
    checksum: int
    ttl: float | None
    vector: bytes | None
    past: Restored | None = None

    @classmethod
    def of(cls, address: Address, put: Put, vector: bytes | None) -> Self:
        """Return the row of a put; value, metadata and text are checked."""
        value, metadata = put.value, put.metadata
        stored, described = encode_json(value), encode_metadata(metadata)
        words = count_tokens(indexed(value, put.text))
        return cls(
            address,
            b"[" + stored + b"," + described + b"]",
            tokens_of(value, metadata or {}),
            words,
            item_checksum(
                _name(address.path, address.key),
                canonical(value),
                canonical(metadata or {}),
                vector=vector is not None,
            ),
            put.ttl,
            vector,
            put if isinstance(put, Restored) else None,
        )

    def word_rows(self) -> list[Binds]:
        """Return the binds of the item's words."""
        name = self.address.name
        return [
            {"word": word_name(word), "name": name, "times": times}
            for word, times in self.words.items()
        ]

    def vector_row(self) -> Binds | None:
        """Return the binds of the item's vector, if it has one."""
        if self.vector is None:
            return None
        address = self.address
        return {
            "name": address.name,
            "dimension": len(self.vector) // 4,
            "checksum": vector_checksum(_name(address.path, address.key), self.vector),
            "embedding": array("f", self.vector),
        }

    def fields(self, *, native_json: bool) -> str | bytes:
        """Return the bind of the tokens: a text for the type JSON, bytes for a BLOB."""
        encoded = orjson.dumps(self.tokens)
        return encoded.decode() if native_json else encoded


def _name(path: str, key: str) -> int:
    """Return the checksum of a name, with which the checksums of its item begin."""
    return name_checksum(path.encode(), key.encode())


def item_of(row: Row, score: float | None = None) -> StoreItem:
    """Return the item of a row with `queries.COLUMNS`.

    Raises:
        BackendCorruptError: The item is damaged.
    """
    name, long_name, version, created_at, updated_at, expires_at, checksum, document = row[:8]
    try:
        path, key = split(long_name or name)
        value, metadata = orjson.loads(document)
        check_item(checksum, _name(path, key), canonical(value), canonical(metadata))
        return StoreItem(
            namespace=decode_namespace(path),
            key=decode_text(key),
            value=value,
            metadata=metadata,
            created_at=_moment(created_at),
            updated_at=_moment(updated_at),
            version=version,
            score=score,
            expires_at=None if expires_at == NEVER else _moment(expires_at),
        )
    except (KeyError, StopIteration, TypeError, ValueError, OverflowError) as error:
        raise damaged(long_name or name) from error


def _moment(number: int) -> datetime:
    return _EPOCH + timedelta(microseconds=number)


def read_vector(row: Row) -> bytes:
    """Return the vector of a row of name, whole name, its checksum, the item's, and the vector.

    Raises:
        BackendCorruptError: It is not the one that was written.
    """
    name, long_name, own, checksum, embedding = row
    try:
        vector = array("f", embedding).tobytes()
        path, key = split(long_name or name)
        if own == vector_checksum(_name(path, key), vector) and has_vector(checksum):
            return vector
    except (TypeError, ValueError) as error:
        raise damaged(long_name or name, "the vector of the item") from error
    raise damaged(long_name or name, "the vector of the item")


def damaged(whole: bytes, what: str = "the item") -> BackendCorruptError:
    """Return the error that names an item, whose name may be damaged as well."""
    named = repr(whole)
    with suppress(KeyError, StopIteration, ValueError):
        path, key = split(whole)
        named = f"{quote(decode_text(key))} of {quote(decode_namespace(path))}"
    return BackendCorruptError(f"oracle: {what} {named} is damaged")
