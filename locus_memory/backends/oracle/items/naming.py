r"""The names of items and threads in the database, as bytes in code point order.

The name of an item is its encoded namespace, `\x01` and its encoded key, in UTF-8. No two items
share a name, and the names of a namespace come before those of its descendants. A `RAW` holds
2,000 bytes: a longer name is cut, a digest of the whole name replaces the rest, and the whole name
is in a BLOB beside it. So names that begin with the same `LONGEST` bytes are in no order.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final, NamedTuple, Self

from locus_memory.backends.selection import path_of
from locus_memory.store.encoding import encode_text
from locus_memory.store.item import Namespace

__all__ = ["AFTER_KEYS", "BEYOND", "LONGEST", "Address", "cut", "first_of", "is_cut", "split"]

LONGEST: Final = 1_900
"""Bytes of a name that is not cut."""

_BEFORE_KEY: Final = "\x01"

AFTER_KEYS: Final = "\x02"
"""After a path: above every name in that namespace, and below those of its descendants."""

BEYOND: Final = b"\xff"
"""A byte above those of UTF-8."""


def cut(whole: bytes) -> bytes:
    """Return the name of at most 2,000 bytes for a whole name."""
    return whole if len(whole) <= LONGEST else whole[:LONGEST] + sha256(whole).digest()


def is_cut(name: bytes) -> bool:
    """Return whether a name is not a whole name."""
    return len(name) > LONGEST


def first_of(whole: bytes) -> bytes:
    """Return a lower bound of the cut names of all names that are not below `whole`."""
    return whole[:LONGEST]


def split(whole: bytes) -> tuple[str, str]:
    """Return the encoded namespace and the encoded key of a whole name.

    Raises:
        ValueError: It is damaged.
    """
    path, mark, key = whole.decode().rpartition(_BEFORE_KEY)
    if not mark or not path or not key:
        raise ValueError("it is not a name")
    return path, key


class Address(NamedTuple):
    """The place of an item, and the version that a conditional write expects there.

    Attributes:
        name: The name of the item in the database.
        whole: The same, not cut.
        scope: The name of the namespace in the database.
        path: The encoded namespace.
        key: The encoded key.
        if_version: The expected version, or `None`.
    """

    name: bytes
    whole: bytes
    scope: bytes
    path: str
    key: str
    if_version: int | None

    @classmethod
    def of(cls, namespace: Namespace, key: str, if_version: int | None = None) -> Self:
        """Return the address of an item."""
        path, encoded = path_of(namespace), encode_text(key)
        whole = f"{path}{_BEFORE_KEY}{encoded}".encode()
        return cls(cut(whole), whole, cut(path.encode()), path, encoded, if_version)

    @property
    def long_name(self) -> bytes | None:
        """The whole name if it is cut."""
        return self.whole if is_cut(self.name) else None
