"""Sealed names: the names that the library makes of what users say, unreadable in the database.

A label or a key is encrypted with AES-SIV, bound to the names above it: the same name in the same
place is always the same, so that an item is found by it. Nothing else can be seen of a name but its
length in steps of 16 bytes. https://www.rfc-editor.org/rfc/rfc5297
"""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from functools import lru_cache
from typing import Final

from locus_memory._internal.providers.drivers import require
from locus_memory._internal.quoting import quote
from locus_memory.errors import EncryptionError
from locus_memory.store.encoding import encode_namespace
from locus_memory.store.item import Namespace

__all__ = ["SealedNames", "hides", "is_own", "keeps_order", "key_of_names", "readable"]

_BELOW: Final = frozenset(("history", "tree", "chunks", "versions", "folders"))
"""The labels of the library below which labels are names of memories and of resources."""

_KEYED: Final = frozenset(("current", "vitals", "sources", "tasks"))
"""The last labels of the namespaces whose keys are names; so are those anywhere in a `tree`."""

_PREFIX: Final = "locus_memory"
_TURNS: Final = frozenset(("transcript", "turns"))
"""The labels of the namespaces of recorded turns."""

_CHUNKS: Final = "chunks"
"""The last label of the chunks of documents: a key is a digest of the source, a dash and more."""

_MARK: Final = "locus_memory:sealed:"
_BLOCK: Final = 16
_END: Final = b"\x80"
_REMEMBERED: Final = 2**15
"""How many decrypted names are kept."""


def key_of_names(key: bytes) -> bytes:
    """Return the key of the names of a new database, of 64 bytes, from its encryption key."""
    return hmac.digest(key, b"locus_memory names", "sha512")


def readable(namespace: Namespace) -> Namespace:
    """Return the first labels of a namespace, which stay readable."""
    places = [place for place, label in enumerate(namespace, 1) if label in _BELOW]
    return namespace[: places[0]] if places else namespace


def hides(namespace: Namespace) -> bool:
    """Whether a namespace has labels or keys that are sealed."""
    return not _BELOW.isdisjoint(namespace) or namespace[-1] in _KEYED


def is_own(namespace: Namespace) -> bool:
    """Whether the library, and not a caller, writes the metadata of a namespace."""
    return hides(namespace) or namespace[0] == _PREFIX or not _TURNS.isdisjoint(namespace)


class SealedNames:
    """The sealed names of the namespaces of the library.

    Args:
        key: The key of the names, of 64 bytes.
        has_plain: Whether the database may have names of before they were sealed.
    """

    def __init__(self, key: bytes, *, has_plain: bool) -> None:
        aead = require("cryptography.hazmat.primitives.ciphers.aead", "encryption")
        self._cipher = aead.AESSIV(key)
        self._invalid = require("cryptography.exceptions", "encryption").InvalidTag
        # Each page of a listing reads all names of a namespace again.
        self._open = lru_cache(_REMEMBERED)(self._opened)
        self.key = key
        self.has_plain = has_plain

    def namespace(self, namespace: Namespace) -> Namespace:
        """Return a namespace as it is stored."""
        start = len(readable(namespace))
        sealed = [self._seal(namespace[:n], namespace[n]) for n in range(start, len(namespace))]
        return (*namespace[:start], *sealed)

    def place(self, namespace: Namespace, key: str) -> tuple[Namespace, str]:
        """Return the namespace and the key of an item as they are stored."""
        return self.namespace(namespace), self.stored_key(namespace, key)

    def stored_key(self, namespace: Namespace, key: str) -> str:
        """Return a key, or the beginning of keys up to a dash, as it is stored."""
        if _has_digests(namespace):
            source, dash, rest = key.partition("-")
            return self._seal((*namespace, ""), source) + dash + rest
        return self._seal((*namespace, ""), key) if _has_names(namespace) else key

    def name(self, stored: Namespace) -> Namespace:
        """Return the namespace of a stored one.

        Raises:
            EncryptionError: A label was altered, moved or sealed with another key.
        """
        found = readable(stored)
        for label in stored[len(found) :]:
            found = (*found, self._open(found, label))
        return found

    def key_name(self, namespace: Namespace, stored: str) -> str:
        """Return the key of a stored one in a namespace.

        Raises:
            EncryptionError: As for `name`.
        """
        if _has_digests(namespace):
            source, dash, rest = stored.partition("-")
            return self._open((*namespace, ""), source) + dash + rest
        return self._open((*namespace, ""), stored) if _has_names(namespace) else stored

    def _seal(self, within: Namespace, name: str) -> str:
        data = name.encode() + _END
        padded = data + bytes(-len(data) % _BLOCK)
        sealed = self._cipher.encrypt(padded, [encode_namespace(within).encode()])
        return _MARK + b64encode(sealed).decode()

    def _opened(self, within: Namespace, stored: str) -> str:
        """Return a name; one of before names were sealed is returned as it is."""
        if not stored.startswith(_MARK):
            return stored
        try:
            sealed = b64decode(stored.removeprefix(_MARK), validate=True)
            data: bytes = self._cipher.decrypt(sealed, [encode_namespace(within).encode()])
        except (self._invalid, ValueError) as error:
            raise EncryptionError(
                f"a name in {quote(within)} was altered, moved or sealed with another key"
            ) from error
        return data.rstrip(b"\x00").removesuffix(_END).decode()


def keeps_order(namespace: Namespace, prefix: str, after: str | None) -> bool:
    """Whether the stored keys with a prefix are in the order of the keys."""
    if _has_digests(namespace):
        source, dash, _ = prefix.partition("-")
        return bool(dash) and (after is None or after.startswith(source + dash))
    return not _has_names(namespace)


def _has_names(namespace: Namespace) -> bool:
    """Whether keys are names."""
    return namespace[-1] in _KEYED or "tree" in namespace


def _has_digests(namespace: Namespace) -> bool:
    """Whether keys begin with the digest of a source and a dash."""
    return namespace[-1] == _CHUNKS and not _has_names(namespace)
