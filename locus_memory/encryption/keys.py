"""The keys of an encryption, and AES-GCM with them."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from locus_memory._internal.providers.drivers import require
from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError, EncryptionError

__all__ = ["KEYS_VARIABLE", "EncryptionKeys"]

KEYS_VARIABLE: Final = "LOCUS_MEMORY_ENCRYPTION_KEYS"
"""The environment variable that the command line reads; see `EncryptionKeys.parse`."""

_ACCEPT_PLAIN: Final = "accept-plain"
_NONCE: Final = 12
_KEY_SIZES: Final = (16, 24, 32)
_LONGEST_ID: Final = 255
"""Bytes: a record keeps the length of the id in one byte."""


@dataclass(frozen=True, slots=True)
class EncryptionKeys:
    """Keys of AES-GCM by their ids; the repr shows the ids only.

    Attributes:
        keys: Keys of 16, 24 or 32 bytes by their ids; old ones still decrypt.
        active: The id of the key that encrypts.
        accept_plain: Whether data that is not encrypted is read as it is, so that `rotate` can
            encrypt it. Use it only until all data is encrypted: until then, anyone who can write
            to the database can forge plain data.

    Raises:
        ConfigurationError: A key is not bytes or has another length, or `active` is not a key.
        MissingDriverError: The `cryptography` library is not installed.
    """

    keys: Mapping[str, bytes] = field(repr=False)
    active: str
    accept_plain: bool = False
    _ciphers: dict[str, Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.active not in self.keys:
            raise ConfigurationError(
                f"no key {quote(self.active)} to encrypt with; known: {sorted(self.keys)}"
            )
        for name, key in self.keys.items():
            if not _is_key(key):
                raise ConfigurationError(f"key {quote(name)} must be bytes: 16, 24 or 32 of them")
            if len(name.encode()) > _LONGEST_ID:
                raise ConfigurationError("the id of a key has at most 255 bytes")
        aead = require("cryptography.hazmat.primitives.ciphers.aead", "encryption")
        ciphers = {name: aead.AESGCM(key) for name, key in self.keys.items()}
        object.__setattr__(self, "_ciphers", ciphers)

    @classmethod
    def of(
        cls,
        keys: Mapping[str, bytes] | Self,
        active: str | None = None,
        *,
        accept_plain: bool = False,
    ) -> Self:
        """Return the keys of the arguments that the encrypting classes take.

        Raises:
            ConfigurationError: As for the class, or `active` is missing, or given twice.
        """
        if isinstance(keys, cls):
            if active is not None or accept_plain:
                raise ConfigurationError("EncryptionKeys name the active key and accept_plain")
            return keys
        if active is None:
            raise ConfigurationError("active is the id of the key that encrypts")
        return cls(keys, active, accept_plain)  # type: ignore[arg-type] # a mapping of keys

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the keys of a text such as `2026=BASE64,2025=BASE64`; the first one is active.

        A part `accept-plain` stands for `accept_plain=True`.

        Raises:
            ConfigurationError: The text has another form; the message holds no part of a key.
        """
        parts = [part.strip() for part in text.split(",")]
        keys = dict(
            _parsed(part, place)
            for place, part in enumerate(parts, 1)
            if part not in ("", _ACCEPT_PLAIN)
        )
        if not keys:
            raise ConfigurationError("encryption keys are ID=BASE64, joined by commas; none given")
        return cls(keys, next(iter(keys)), _ACCEPT_PLAIN in parts)

    def encrypt(self, data: bytes, place: bytes) -> bytes:
        """Return a new nonce of 12 bytes, and the data encrypted with the active key.

        Args:
            data: The plain data.
            place: The associated data, which binds the result to a place.
        """
        nonce = os.urandom(_NONCE)
        encrypted: bytes = self._ciphers[self.active].encrypt(nonce, data, place)
        return nonce + encrypted

    def decrypt(self, key_id: str, data: bytes, place: bytes, name: str) -> bytes:
        """Return the plain data.

        Args:
            key_id: The id of the key that encrypted it.
            data: As `encrypt` returned it.
            place: As it was given to `encrypt`.
            name: The name of the data in an error.

        Raises:
            EncryptionError: The key is unknown, or the data was altered or moved.
        """
        cipher = self._ciphers.get(key_id)
        if cipher is None:
            raise EncryptionError(f"{name} needs the key {quote(key_id)}")
        invalid_tag = require("cryptography.exceptions", "encryption").InvalidTag
        try:
            decrypted: bytes = cipher.decrypt(data[:_NONCE], data[_NONCE:], place)
        except (invalid_tag, ValueError) as error:
            raise EncryptionError(
                f"{name} was altered, moved or encrypted with another key"
            ) from error
        return decrypted


def _is_key(key: object) -> bool:
    return isinstance(key, bytes) and len(key) in _KEY_SIZES


def _parsed(part: str, place: int) -> tuple[str, bytes]:
    name, equals, key = part.partition("=")
    try:
        decoded = base64.b64decode(key, validate=True)
    except binascii.Error:
        decoded = b""
    if not name or not equals or len(decoded) not in _KEY_SIZES:
        # The part may be a key without an id, so it is not quoted.
        raise ConfigurationError(
            f"part {place} of the encryption keys is not ID=BASE64 of 16, 24 or 32 bytes"
        )
    return name, decoded
