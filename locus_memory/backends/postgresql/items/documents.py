r"""JSON documents in a form that `jsonb` can store.

`jsonb` has no `\u0000`, and it keeps a number's decimal digits rather than a float. So the
first three control characters are written as words of `\u0001` and `\u0002`, and a large float
with all of its digits, so that a comparison with an integer is exact. Everything else is
unchanged.

The words are those of a comma-free code: a word is found in a text only where it was written. So
the order of texts stays the same, and so do their substrings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from locus_memory.store.json_values import encode_json, encode_metadata

__all__ = [
    "NO_METADATA",
    "decode_document",
    "encode_document",
    "encode_object",
    "encode_string",
]

NO_METADATA: Final = "{}"

_WORDS: Final = {"\x00": "\x01\x01\x01\x02", "\x01": "\x01\x01\x02\x02", "\x02": "\x01\x02\x02\x02"}
_CHARACTERS: Final = {word: character for character, word in _WORDS.items()}
_TO_WORDS: Final = str.maketrans(_WORDS)
_WORD: Final = re.compile("\x01[\x01\x02]{2}\x02")

# JSON without either has none of these characters, and no number with an exponent.
_SUSPECT: Final = b"\\u000"
_SUSPECT_NUMBER: Final = b"0e0"
_ZEROS: Final = bytes.maketrans(b"123456789", b"000000000")
_SUSPECT_WORD: Final = r"\u0001"

_LARGE: Final = 1e16
"""From here on JSON has floats with an exponent, which `jsonb` would read as integers."""


def encode_document(value: Any) -> str:
    """Return the JSON to store for a value.

    Raises:
        ValueNotSerializableError: It is not a JSON value.
    """
    return _stored(encode_json(value), value)


def encode_object(metadata: Mapping[str, Any] | None) -> str:
    """Return the JSON to store for the metadata of an item.

    Raises:
        InvalidArgumentError: It is not a mapping.
        ValueNotSerializableError: It is not a JSON object.
    """
    return NO_METADATA if metadata is None else _stored(encode_metadata(metadata), metadata)


def _stored(encoded: bytes, value: Any) -> str:
    if _is_plain(encoded):
        return encoded.decode()
    return orjson.dumps(_rewritten(value)).decode()


def _is_plain(encoded: bytes) -> bool:
    return _SUSPECT not in encoded and _SUSPECT_NUMBER not in encoded.translate(_ZEROS, b"+")


def _rewritten(value: Any) -> Any:
    if isinstance(value, str):
        return encode_string(value)
    if isinstance(value, float) and abs(value) >= _LARGE:
        return orjson.Fragment(b"%d.0" % int(value))
    if isinstance(value, Mapping):
        return {encode_string(key): _rewritten(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_rewritten(child) for child in value]
    return value


def encode_string(text: str) -> str:
    """Return the form of a string, or of the name of a field, in a stored document."""
    return text.translate(_TO_WORDS)


def decode_document(stored: str) -> Any:
    """Return the value of a document that `encode_document` returned."""
    value = orjson.loads(stored)
    return _read(value) if _SUSPECT_WORD in stored else value


def _read(value: Any) -> Any:
    if isinstance(value, str):
        return _WORD.sub(lambda match: _CHARACTERS[match[0]], value)
    if isinstance(value, dict):
        return {_read(key): _read(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_read(child) for child in value]
    return value
