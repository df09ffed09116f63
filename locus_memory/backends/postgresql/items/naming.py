r"""What the database knows an item by: a name, in the order of namespaces and keys.

The name of an item is its encoded namespace, `\x01` and its encoded key. No two items share one,
and those of a namespace come before those of its descendants. What is too long for the entry of
an index is cut, and a digest of the whole put in its place: so the order of names that begin with
the same `LONGEST` characters is none.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b, sha256
from typing import Final, NamedTuple, Self

from locus_memory.store.encoding import encode_namespace, encode_text
from locus_memory.store.item import Namespace, check_key, check_namespace

__all__ = [
    "AFTER_DIGESTS",
    "AFTER_KEYS",
    "LONGEST",
    "Address",
    "first_name",
    "name_bound",
    "name_in",
    "name_of",
    "path_of",
    "scope_of",
    "whole_name",
]

LONGEST: Final = 600
"""Characters; they and a digest have 2,464 bytes at most, the entry of an index has 2,704."""

_BEFORE_KEY: Final = "\x01"

AFTER_KEYS: Final = "\x02"
"""After a path: above every name in that namespace, and below those in the ones beneath it."""

AFTER_DIGESTS: Final = "g"
"""After the first characters of a name that was cut: above every name that begins so."""

_SCOPE_BYTES: Final = 16


@lru_cache(maxsize=1024)
def _path(namespace: Namespace) -> str:
    return encode_namespace(check_namespace(namespace))


def path_of(namespace: Namespace) -> str:
    """Return the encoded namespace, checked."""
    try:
        return _path(namespace)
    except TypeError:
        # What cannot be a key of the cache is no namespace either.
        return encode_namespace(check_namespace(namespace))


@lru_cache(maxsize=1024)
def scope_of(path: str) -> str:
    """Return the digest of an encoded namespace."""
    return blake2b(path.encode(), digest_size=_SCOPE_BYTES).hexdigest()


def whole_name(path: str, key: str) -> str:
    """Return the name of an item before it is cut, its namespace and its key encoded."""
    return path + _BEFORE_KEY + key


def name_in(path: str, key: str) -> str:
    """Return the name of an item, its namespace and its key encoded."""
    whole = path + _BEFORE_KEY + key
    return whole if len(whole) <= LONGEST else whole[:LONGEST] + sha256(whole.encode()).hexdigest()


def name_of(namespace: Namespace, key: str) -> str:
    """Return the name of an item, its namespace and its key checked."""
    return name_in(path_of(namespace), encode_text(check_key(key)))


def first_name(whole: str) -> str:
    """Return what no name is below that was not below `whole` before it was cut."""
    return whole[:LONGEST]


def name_bound(whole: str) -> str:
    """Return what every name is below that was below `whole` before it was cut."""
    return whole if len(whole) <= LONGEST else whole[:LONGEST] + AFTER_DIGESTS


class Address(NamedTuple):
    """Where an item is, and the version a conditional write expects there.

    Attributes:
        name: What the database knows the item by.
        path: The encoded namespace.
        key: The encoded key.
        if_version: What is expected, or `None`.
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
