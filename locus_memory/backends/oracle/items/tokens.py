"""The tokens of an item, by which filters are searched in the database.

A token is a digest of a path, or of a path and the scalar at it. A filter becomes a condition on
tokens that every matching item satisfies; the items found are compared with the filter itself. So
no text of a caller is part of a statement, and no type of JSON is read in Oracle's way.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, Final

import orjson

__all__ = ["ANY", "path_token", "tokens_of", "value_token"]

ANY: Final = "*"
"""The token of an item with more tokens than are stored: every condition holds."""

_MOST: Final = 350
"""Tokens of an item: their JSON has less than 4,000 bytes, the limit of a text that is bound. An
item with more is compared in each search."""

_DIGEST: Final = 6


def path_token(path: tuple[str, ...]) -> str:
    """Return the token of the items that have a value at a path."""
    return _token(orjson.dumps(path))


def value_token(path: tuple[str, ...], value: Any) -> str | None:
    """Return the token of the items with a scalar at a path; `None` for a list or an object."""
    if isinstance(value, dict | list | tuple):
        return None
    return _token(orjson.dumps(path) + _canonical(value))


def tokens_of(value: Any, metadata: Any) -> list[str]:
    """Return the distinct tokens of an item."""
    found: dict[str, None] = {}
    for document in (metadata, value):
        for token in _tokens((), document):
            found[token] = None
            if len(found) > _MOST:
                return [ANY]
    return list(found)


def _tokens(path: tuple[str, ...], value: Any) -> Iterator[str]:
    if path:
        yield path_token(path)
        token = value_token(path, value)
        if token is not None:
            yield token
    if isinstance(value, dict):
        # A field whose name has dots is found by no filter.
        for name, child in value.items():
            yield from _tokens((*path, name), child)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _tokens((*path, str(index)), child)


def _canonical(value: Any) -> bytes:
    """Return the same bytes for equal scalars, such as `1` and `1.0`, and only for those."""
    if isinstance(value, float) and value.is_integer():
        return b"%d" % int(value)
    return orjson.dumps(value)


def _token(content: bytes) -> str:
    return b64encode(blake2b(content, digest_size=_DIGEST).digest()).decode()
