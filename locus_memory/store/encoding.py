"""Encoding of keys and namespaces as texts, in an order that a database can keep.

No two encodings are equal, for any characters, and a namespace's descendants follow it. Texts are
compared by code point, like UTF-8 bytes.
"""

from __future__ import annotations

from functools import lru_cache

from locus_memory.store.item import Namespace

__all__ = [
    "decode_namespace",
    "decode_text",
    "encode_namespace",
    "encode_text",
    "namespace_upper_bound",
    "prefix_upper_bound",
]

# A label ends with \x01, and the characters up to \x02 are escaped by \x02. So the encoding
# is injective, keeps the order of tuples, has no NUL (which PostgreSQL cannot hold), and a
# namespace's encoding is a prefix of exactly its own descendants'.
_END = "\x01"
_AFTER_END = "\x02"
_ESCAPES = str.maketrans({"\x00": "\x02\x02", "\x01": "\x02\x03", "\x02": "\x02\x04"})
_UNESCAPES = {"\x02": "\x00", "\x03": "\x01", "\x04": "\x02"}


def encode_text(text: str) -> str:
    """Return `text` with the first three control characters escaped; the order is kept."""
    return text if text.isprintable() else text.translate(_ESCAPES)


def decode_text(encoded: str) -> str:
    """Return the text that `encode_text` wrote."""
    if "\x02" not in encoded:
        return encoded
    head, *rest = encoded.split("\x02")
    parts = [head]
    pieces = iter(rest)
    for piece in pieces:
        # An escaped \x00 is the pair \x02\x02, which the split returns as an empty piece.
        following = piece or "\x02" + next(pieces)
        parts.append(_UNESCAPES[following[0]] + following[1:])
    return "".join(parts)


def encode_namespace(namespace: Namespace) -> str:
    """Return one string for the namespace; `()` is the empty string."""
    return "".join(encode_text(label) + _END for label in namespace)


@lru_cache(maxsize=1024)
def decode_namespace(encoded: str) -> Namespace:
    """Return the namespace that `encode_namespace` wrote."""
    return tuple(decode_text(label) for label in encoded.split(_END)[:-1])


def namespace_upper_bound(namespace: Namespace) -> str | None:
    """Return the first string after every encoded descendant of `namespace`; `None`: no bound."""
    encoded = encode_namespace(namespace)
    return encoded[:-1] + _AFTER_END if encoded else None


def prefix_upper_bound(prefix: str) -> str | None:
    """Return the first string after every string that starts with `prefix`; `None`: no bound.

    Both are compared by code point, like UTF-8 bytes.
    """
    stem = prefix.rstrip("\U0010ffff")
    if not stem:
        return None
    # Skip the surrogates: they cannot be encoded.
    following = 0xE000 if stem[-1] == "\ud7ff" else ord(stem[-1]) + 1
    return stem[:-1] + chr(following)
