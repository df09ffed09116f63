r"""The terms of a document's field for filters: one for each path and value; pure.

A term is an encoded path, `\x00`, a letter for the type, and the value. Terms of one path and
type are in the order of their values, so that one field without types serves equality, ranges and
existence, and a document with many keys adds no field to the index:

| letter | value |
|---|---|
| `z` | null |
| `b` | `0` or `1` |
| `n` | a number, see `number_text` |
| `s` | a text, see `string_text` |
| `d`, `l` | a digest of an object or a list |
| `c` | an element of the list at the path: its own letter and value |
"""

from __future__ import annotations

import math
import struct
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any, Final

from locus_memory.store.encoding import encode_text
from locus_memory.store.filters import MISSING, lookup

__all__ = [
    "ELEMENT",
    "MARK",
    "OVERFLOW",
    "ROOT",
    "SHORT",
    "digest",
    "extend",
    "field_terms",
    "number_text",
    "string_text",
    "value_text",
]

MARK: Final = "\x00"
"""Follows a path, and precedes a digest; `encode_text` leaves none."""

OVERFLOW: Final = MARK
"""The only term of a document that would have too many: each filter returns it to be checked."""

ELEMENT: Final = "c"
"""The letter of an element of a list."""

ROOT: Final = ""
"""The encoded path of a whole document."""

SHORT: Final = 128
"""Characters of a text that its term has; the rest is in a digest."""

_MOST: Final = 20_000
"""Terms of a document."""

_LONGEST: Final = 60
"""Characters of an encoded path; a longer one is a digest. OpenSearch 2 takes no range and no
prefix of 1,000 bytes, and a path and the text of a string together have at most 756."""

_SIGN: Final = 2**63
_ALL: Final = 2**64 - 1


def digest(text: str) -> str:
    """Return 32 characters that no other text has."""
    return urlsafe_b64encode(blake2b(text.encode(), digest_size=24).digest()).decode()


def extend(path: str, step: str) -> str:
    """Return the encoded path of a part of the document at `path`."""
    extended = f"{path}{encode_text(step)}\x01"
    return extended if len(extended) <= _LONGEST else MARK + digest(extended)


def number_text(number: float) -> str:
    """Return a text for a number, in the order of numbers; integers and floats are compared.

    It is the sortable form of the largest double that is not above the number, and what an
    integer of 64 bits has beyond that.
    """
    floor = float(number)
    if floor > number:
        floor = math.nextafter(floor, -math.inf)
    (bits,) = struct.unpack(">Q", struct.pack(">d", floor + 0.0))
    rest = int(number) - int(floor) if isinstance(number, int) else 0
    return f"{bits ^ (_ALL if bits & _SIGN else _SIGN):016x}" + (f"{rest:03x}" if rest else "")


def string_text(text: str) -> str:
    """Return a text for a string of a document, in the order of strings up to `SHORT`."""
    if len(text) <= SHORT:
        return encode_text(text)
    return encode_text(text[:SHORT]) + MARK + digest(text)


def value_text(value: Any) -> str:
    """Return the letter and the text of a JSON value: the same for equal values only."""
    if value is None:
        return "z"
    if isinstance(value, bool):
        return f"b{value:d}"
    if isinstance(value, str):
        return "s" + string_text(value)
    if isinstance(value, int | float):
        return "n" + number_text(value)
    if isinstance(value, Mapping):
        return _object_text({key: value_text(child) for key, child in value.items()})
    return _list_text(map(value_text, value))


def _object_text(parts: Mapping[str, str]) -> str:
    fields = (f"{len(key)}:{key}{len(parts[key])}:{parts[key]}" for key in sorted(parts))
    return "d" + digest("".join(fields))


def _list_text(parts: Iterator[str]) -> str:
    return "l" + digest("".join(f"{len(part)}:{part}" for part in parts))


def field_terms(value: Any, metadata: Any) -> list[str]:
    """Return the terms of an item: those of its metadata, then those that only its value has.

    Args:
        value: The value.
        metadata: The metadata, a JSON object.
    """
    terms: dict[str, None] = {}
    _walk(terms, metadata, ROOT, MISSING)
    _walk(terms, value, ROOT, metadata)
    return list(terms) if len(terms) <= _MOST else [OVERFLOW]


def _walk(terms: dict[str, None], document: Any, path: str, first: Any) -> str:
    """Add the terms of a document and its parts; return its `value_text`.

    Args:
        terms: The terms found so far.
        document: The document.
        path: Its path.
        first: What the metadata has at this path, which a filter sees first.
    """
    if len(terms) > _MOST:
        return ""  # all of them give way to `OVERFLOW`
    # No filter has the path of a whole document.
    is_seen = first is MISSING and path != ROOT
    if isinstance(document, Mapping):
        parts = {key: _walk_part(terms, child, path, key, first) for key, child in document.items()}
        text = _object_text(parts)
    elif isinstance(document, list):
        steps = enumerate(document)
        elements = [_walk_part(terms, child, path, str(n), first) for n, child in steps]
        text = _list_text(iter(elements))
        if is_seen:
            terms.update(dict.fromkeys(f"{path}{MARK}{ELEMENT}{each}" for each in elements))
    else:
        text = value_text(document)
    if is_seen:
        terms[f"{path}{MARK}{text}"] = None
    return text


def _walk_part(terms: dict[str, None], child: Any, path: str, step: str, first: Any) -> str:
    if "." in step:
        # No path of a filter leads there.
        return value_text(child)
    below = MISSING if first is MISSING else lookup((step,), first)
    return _walk(terms, child, extend(path, step), below)
