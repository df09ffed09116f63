"""Items in the format of the scripts, and the places of their keys."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, Self

from locus_memory._internal.quoting import quote
from locus_memory.backends.selection import Past, damaged_item
from locus_memory.errors import BackendCorruptError
from locus_memory.store.checksum import (
    check_item,
    has_vector,
    item_checksum,
    name_checksum,
    value_matches,
    vector_checksum,
)
from locus_memory.store.encoding import encode_namespace, encode_text
from locus_memory.store.item import (
    Delete,
    Namespace,
    Put,
    Restored,
    StoreItem,
    check_text,
    timestamp,
)
from locus_memory.store.json_values import decode_json, encode_json, encode_metadata
from locus_memory.store.text import indexed, tokens

__all__ = [
    "Kind",
    "Operation",
    "decode_item",
    "decode_value",
    "decode_values",
    "decode_vector",
    "encoded",
    "encoded_name",
    "expires",
    "moment",
    "rows",
    "terms",
]

_NONE: Final = "-"
_WRAP: Final = 2**64
_NO_METADATA: Final = b"{}"


class Kind(NamedTuple):
    """The common properties of several operations of a batch.

    Attributes:
        namespace: The namespace.
        if_version: The version that the item must have, or `None`.
        parts: A letter for each argument after the key; none for a delete. They are `v` for the
            value, `m` for metadata, `t` for the text, `c` for the checksums and `e` for the
            embedding.
        ttl: Seconds, or `None`.
        past: The version and the moments of a restored item, or `None`.
    """

    namespace: Namespace
    if_version: int | None
    parts: str = ""
    ttl: float | None = None
    past: Past | None = None

    def header(self, number: int, now: float | None, count: int) -> str:
        """Return the header for the script, before the arguments.

        Args:
            number: The number of the namespace, from 1.
            now: The present moment, in seconds since the epoch; `None`: the server's.
            count: The number of operations of this kind that follow.
        """
        expected = _NONE if self.if_version is None else str(self.if_version)
        expires, past = _NONE, f"{_NONE} {_NONE} {_NONE}"
        if self.ttl is not None:
            expires = f"+{self.ttl!r}" if now is None else moment(now + self.ttl)
        if self.past is not None:
            expires = _NONE if self.past.expires_at is None else moment(self.past.expires_at)
            past = (
                f"{self.past.version} {moment(self.past.created_at)} {moment(self.past.updated_at)}"
            )
        return f"{self.parts or _NONE} {count} {number} {expected} {expires} {past}"


class Operation(NamedTuple):
    """A put or a delete, encoded: the key, then the arguments of its kind."""

    kind: Kind
    arguments: Sequence[bytes]

    @classmethod
    def delete(cls, namespace: Namespace, key: str, if_version: int | None = None) -> Self:
        """Return the deletion of an item."""
        return cls(Kind(namespace, if_version), (key.encode(),))

    @property
    def dimension(self) -> int:
        """The length of its embedding; 0 without one."""
        return len(self.arguments[-1]) // 4 if self.kind.parts.endswith("e") else 0

    @property
    def text_size(self) -> int:
        """The size of its words in the index, in bytes."""
        place = self.kind.parts.find("t")
        return 0 if place < 0 else len(self.arguments[1 + place])


def encoded(given: Put | Delete, vector: bytes | None, *, has_text: bool) -> Operation:
    """Return a put, with its vector, or a delete; value, metadata and text are checked.

    Args:
        given: The operation.
        vector: Its embedding as float32 bytes.
        has_text: Whether texts are indexed.
    """
    namespace, key = given.namespace, given.key
    if isinstance(given, Delete):
        return Operation.delete(namespace, key, given.if_version)
    # The value is checked before any other code reads it.
    value = encode_json(given.value)
    parts, arguments = "v", [key.encode(), value]
    metadata = encode_metadata(given.metadata)
    if metadata != _NO_METADATA:
        parts += "m"
        arguments.append(metadata)
    if not has_text:
        check_text(given.text, "text")
    elif text := terms(tokens(indexed(given.value, given.text))):
        parts += "t"
        arguments.append(text)
    place = name_checksum(*encoded_name(namespace, key))
    checksum = b"%016x" % (item_checksum(place, value, metadata, vector=bool(vector)) % _WRAP)
    if vector:
        checksum += b".%08x" % vector_checksum(place, vector)
    arguments.append(checksum)
    parts += "c"
    if vector:
        parts += "e"
        arguments.append(vector)
    past = Past.of(given) if isinstance(given, Restored) else None
    return Operation(Kind(namespace, given.if_version, parts, given.ttl, past), arguments)


def encoded_name(namespace: Namespace, key: str) -> tuple[bytes, bytes]:
    """Return the name of an item in the form that its checksums cover."""
    return _encoded_path(namespace), encode_text(key).encode()


@lru_cache(maxsize=1024)
def _encoded_path(namespace: Namespace) -> bytes:
    return encode_namespace(namespace).encode()


def _unpacked(head: bytes) -> tuple[int, int | None] | None:
    """Return the checksums of an item and of its vector; `None`: an earlier version wrote it.

    Raises:
        ValueError: The head is damaged.
    """
    _, _, _, *packed, _ = head.split(b" ")
    if not packed:
        return None
    checksum, _, own = packed[0].partition(b".")
    number = int(checksum, 16)
    signed = number - _WRAP if number >= _WRAP // 2 else number
    return signed, int(own, 16) if own else None


def terms(words: Sequence[str]) -> bytes:
    """Return the length of a text in words, then each stem with its count; empty: no words.

    Stems have only letters and digits, so neither a space nor a `=` is part of one.
    """
    # Most stems occur once, and formatting a number is slow.
    counts = Counter(words).items()
    pairs = [stem + "=1" if count == 1 else f"{stem}={count}" for stem, count in counts]
    return f"{len(words)} {' '.join(pairs)}".encode() if words else b""


def expires(head: bytes) -> bool:
    """Return whether the item with this head expires, or has expired."""
    return not head.endswith(_NONE.encode())


def moment(seconds: float) -> str:
    """Return seconds since the epoch as a text that Lua reads as the same number."""
    return repr(float(seconds))


def decode_item(
    namespace: Namespace, row: Sequence[bytes], score: float | None = None
) -> StoreItem:
    """Return the item of a row: key, head, value and metadata (empty for `{}`).

    Raises:
        BackendCorruptError: The item is damaged.
    """
    key, head, *documents = row
    try:
        checksums = _unpacked(head)
        if checksums is not None:
            place = name_checksum(*encoded_name(namespace, key.decode()))
            check_item(checksums[0], place, documents[0], documents[1] or _NO_METADATA)
        value, metadata = decode_values(row)
        version, created, updated, *_, expires = head.split(b" ")
        return StoreItem(
            namespace=namespace,
            key=key.decode(),
            value=value,
            metadata=metadata,
            created_at=timestamp(float(created)),
            updated_at=timestamp(float(updated)),
            version=int(version),
            score=score,
            expires_at=None if expires == _NONE.encode() else timestamp(float(expires)),
        )
    except (BackendCorruptError, OverflowError, TypeError, ValueError) as error:
        raise _damaged(namespace, key) from error


def _damaged(namespace: Namespace, key: bytes) -> BackendCorruptError:
    return damaged_item("redis", namespace, key.decode(errors="backslashreplace"))


def decode_value(namespace: Namespace, key: str, head: bytes, value: bytes) -> Any:
    """Return the value of an item that was read without its metadata.

    Raises:
        BackendCorruptError: The item is damaged.
    """
    try:
        checksums = _unpacked(head)
        name = name_checksum(*encoded_name(namespace, key))
        if checksums is None or value_matches(checksums[0], name, value):
            return decode_json(value)
    except ValueError as error:
        raise _damaged(namespace, key.encode()) from error
    raise _damaged(namespace, key.encode())


def decode_vector(
    namespace: Namespace, key: str, found: tuple[bytes, bytes, int]
) -> list[float] | None:
    """Return the vector of an item; `None` if it has none.

    Args:
        namespace: The namespace.
        key: The key.
        found: The head of the item, its vector, and whether this is exactly as it was written: a
            vector set changes the last digits.

    Raises:
        BackendCorruptError: The vector is damaged or lost.
    """
    head, vector, is_exact = found
    try:
        checksum, own = _unpacked(head) or (None, None)
        name = name_checksum(*encoded_name(namespace, key))
        is_lost = checksum is not None and has_vector(checksum) is not bool(vector)
        is_other = is_exact and own is not None and own != vector_checksum(name, vector)
        if is_lost or is_other:
            raise damaged_item("redis", namespace, key, "the vector of the item")
        return list(struct.unpack(f"<{len(vector) // 4}f", vector)) if vector else None
    except (ValueError, struct.error) as error:
        raise damaged_item("redis", namespace, key, "the vector of the item") from error


def decode_values(row: Sequence[bytes]) -> tuple[Any, dict[str, Any]]:
    """Return the value and the metadata of a row: key, head, value and metadata.

    Raises:
        BackendCorruptError: They are not JSON.
    """
    key, _, value, metadata = row
    try:
        return decode_json(value), decode_json(metadata) if metadata else {}
    except ValueError as error:
        raise BackendCorruptError(f"redis: the item {quote(key)} is damaged") from error


def rows(flat: Sequence[Any], width: int) -> Iterator[Sequence[Any]]:
    """Yield `width` elements at a time."""
    return (flat[start : start + width] for start in range(0, len(flat), width))
