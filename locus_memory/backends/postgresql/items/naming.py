r"""The names of items in the database, in the order of namespaces and keys.

The name of an item is its encoded namespace, `\x01` and its encoded key. No two items share a name,
and the names of a namespace come before those of its descendants. A name too long for an index
entry is cut, and a digest of the whole name replaces the rest. So names that begin with
the same `LONGEST` characters are in no order.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b, sha256
from typing import Final, NamedTuple, Self

from locus_memory.backends.selection import path_of
from locus_memory.store.encoding import encode_text
from locus_memory.store.item import Namespace

__all__ = [
    "AFTER_DIGESTS",
    "AFTER_KEYS",
    "LONGEST",
    "Address",
    "first_name",
    "name_bound",
    "name_in",
    "scope_of",
    "whole_name",
]

LONGEST: Final = 600
"""Characters; with a digest they have at most 2,464 bytes, and an index entry has 2,704."""

_BEFORE_KEY: Final = "\x01"

AFTER_KEYS: Final = "\x02"
"""After a path: above every name in that namespace, and below those of its descendants."""

AFTER_DIGESTS: Final = "g"
"""After the first characters of a cut name: above every name that begins with them."""

_SCOPE_BYTES: Final = 16


@lru_cache(maxsize=1024)
def scope_of(path: str) -> str:
    """Return the digest of an encoded namespace."""
    return blake2b(path.encode(), digest_size=_SCOPE_BYTES).hexdigest()


def whole_name(path: str, key: str) -> str:
    """Return the name of an item before it is cut, from its encoded namespace and key."""
    return path + _BEFORE_KEY + key


def name_in(path: str, key: str) -> str:
    """Return the name of an item, from its encoded namespace and key."""
    whole = path + _BEFORE_KEY + key
    return whole if len(whole) <= LONGEST else whole[:LONGEST] + sha256(whole.encode()).hexdigest()


def first_name(whole: str) -> str:
    """Return a lower bound of the cut names of all names that are not below `whole`."""
    return whole[:LONGEST]


def name_bound(whole: str) -> str:
    """Return an upper bound of the cut names of all names that are below `whole`."""
    return whole if len(whole) <= LONGEST else whole[:LONGEST] + AFTER_DIGESTS


class Address(NamedTuple):
    """The place of an item, and the version that a conditional write expects there.

    Attributes:
        name: The name of the item in the database.
        path: The encoded namespace.
        key: The encoded key.
        if_version: The expected version, or `None`.
    """

    name: str
    path: str
    key: str
    if_version: int | None

    @classmethod
    def of(cls, namespace: Namespace, key: str, if_version: int | None = None) -> Self:
        """Return the address of an item."""
        path, encoded = path_of(namespace), encode_text(key)
        return cls(name_in(path, encoded), path, encoded, if_version)

    @property
    def scope(self) -> str:
        """The digest of the namespace alone."""
        return scope_of(self.path)
