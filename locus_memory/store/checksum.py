"""The checksums of items, which detect altered, truncated and moved items.

An item has one number of 64 bits: a CRC-32 of its name and its value, another of its name and its
metadata, and in the lowest bit whether it has a vector. So a reader of the value alone can check
the value. A vector has a CRC-32 of its name and its bytes, kept beside it. The numbers are signed,
as in databases.

A CRC-32 detects any single damage of up to 32 bits in a row, and all but one in 2**32 of other
damages. It does not protect against deliberate changes.
"""

from __future__ import annotations

from typing import Any, Final
from zlib import crc32

import orjson

__all__ = [
    "canonical",
    "check_item",
    "has_vector",
    "item_checksum",
    "name_checksum",
    "value_matches",
    "vector_checksum",
]

_SIGN: Final = 2**63
_HALF: Final = 32
_NEGATIVE_ZERO: Final = b"-0.0"


def name_checksum(path: bytes, key: bytes) -> int:
    """Return the start of the checksums of an item.

    Args:
        path: The namespace in the form of `encode_namespace`, in UTF-8: the last of its control
            characters marks its end.
        key: The key in the form of `encode_text`.
    """
    return crc32(path + key)


def item_checksum(
    name: int, value: bytes, metadata: bytes, *, vector: bool, extra: bytes = b""
) -> int:
    """Return the checksum of an item.

    Args:
        name: The `name_checksum`.
        value: JSON, the same in each call for the item.
        metadata: Likewise.
        vector: Whether the item has a vector.
        extra: Other data that the store covers, of the same length in each item.
    """
    rest = crc32(extra + metadata, name ^ vector)
    return (crc32(value, name) << _HALF | rest & ~1 | vector) - _SIGN


def check_item(
    checksum: int, name: int, value: bytes, metadata: bytes, *, extra: bytes = b""
) -> None:
    """Check that an item has a checksum; the arguments are those of `item_checksum`.

    Raises:
        ValueError: It has another one.
    """
    vector = has_vector(checksum)
    if checksum != item_checksum(name, value, metadata, vector=vector, extra=extra):
        raise ValueError("the checksum does not match")


def value_matches(checksum: int, name: int, value: bytes) -> bool:
    """Whether the item was written with this value."""
    return checksum + _SIGN >> _HALF == crc32(value, name)


def has_vector(checksum: int) -> bool:
    """Whether the item was written with a vector."""
    return bool(checksum & 1)


def vector_checksum(name: int, vector: bytes) -> int:
    """Return the checksum of the vector of an item.

    Args:
        name: The `name_checksum` of the item.
        vector: The numbers, four bytes each.
    """
    return crc32(vector, name)


def canonical(value: Any) -> bytes:
    """Return JSON that is the same for values that a database may treat as equal.

    The order of the keys does not matter, nor does the sign of zero.
    """
    encoded = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    if _NEGATIVE_ZERO in encoded:
        return orjson.dumps(_unsigned(value), option=orjson.OPT_SORT_KEYS)
    return encoded


def _unsigned(value: Any) -> Any:
    if isinstance(value, float):
        return value + 0.0
    if isinstance(value, dict):
        return {key: _unsigned(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_unsigned(child) for child in value]
    return value
