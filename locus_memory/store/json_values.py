"""Values as JSON: encoded so that they decode to equal values, or refused with a remedy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from typing import Any

import orjson

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError, ValueNotSerializableError

__all__ = ["decode_json", "encode_json", "encode_metadata", "round_trip"]

_TOO_DEEP = "Recursion limit reached"
_MOST_LEVELS = 254
"""The nesting that orjson can write."""

# By the name of the class or of a base class: their modules need not be imported.
_REMEDIES = {
    "BaseModel": 'value.model_dump(mode="json")',
    "Decimal": "str(value)",
    "Enum": "value.value",
    "Mapping": "dict(value)",
    "PurePath": "str(value)",
    "UUID": "str(value)",
    "bytearray": "value.hex(), or base64",
    "bytes": "value.decode(), or base64",
    "complex": "[value.real, value.imag]",
    "date": "value.isoformat()",
    "dict": "dict(value)",
    "float": "float(value)",
    "frozenset": "list(value)",
    "generic": "value.item()",
    "int": "int(value)",
    "list": "list(value)",
    "ndarray": "value.tolist()",
    "set": "list(value)",
    "str": "str(value)",
    "time": "value.isoformat()",
    "timedelta": "value.total_seconds()",
    "tuple": "list(value)",
}

_STRICT = (
    orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)


def _plain(value: Any) -> str:
    """Return a text of a subclass as a text, such as the one of LangChain's messages.

    Raises:
        TypeError: It is no text, or a member of an enumeration.
    """
    if isinstance(value, str) and not isinstance(value, Enum):
        return str.__str__(value)
    raise TypeError


def encode_json(value: Any) -> bytes:
    """Return `value` as JSON that decodes to an equal value.

    Raises:
        ValueNotSerializableError: JSON cannot hold it: NaN, a tuple, a datetime, a set, a key that
            is not a string, an integer of more than 64 bits. The error names the path.
    """
    return round_trip(value)[0]


def round_trip(value: Any) -> tuple[bytes, Any]:
    """Return `value` as JSON, and the copy of it that the JSON decodes to.

    Raises:
        ValueNotSerializableError: As for `encode_json`.
    """
    try:
        encoded = orjson.dumps(value, _plain, option=_STRICT)
        # orjson writes NaN as null and a tuple as a list, silently: compare.
        decoded = orjson.loads(encoded)
        if decoded == value:
            return encoded, decoded
    except (TypeError, ValueError, RecursionError) as error:
        reason = str(error)
    else:
        reason = "it would not be restored unchanged"
    if reason == _TOO_DEEP:
        reason = f"it is nested more than {_MOST_LEVELS} levels deep"
    with suppress(RecursionError):
        _refuse(value, "$")
    raise ValueNotSerializableError(path="$", reason=reason)


def encode_metadata(metadata: Mapping[str, Any] | None) -> bytes:
    """Return the metadata of an item as a JSON object; `None` is `{}`.

    Raises:
        InvalidArgumentError: It is not a mapping.
        ValueNotSerializableError: As for `encode_json`.
    """
    return b"{}" if metadata is None else encode_json(_as_dict(metadata))


def _as_dict(metadata: object) -> dict[Any, Any]:
    if not isinstance(metadata, Mapping):
        raise InvalidArgumentError(f"metadata is an object, not {type(metadata).__name__}")
    return dict(metadata)


def decode_json(encoded: bytes | str) -> Any:
    """Return the value that `encode_json` wrote."""
    return orjson.loads(encoded)


def _refuse(value: Any, path: str) -> None:
    """Raise for the first part of `value` that JSON cannot hold unchanged."""
    if type(value) is dict:
        for key, child in value.items():
            if type(key) is not str:
                reason = f"the key {quote(key)} is not a string: pass str(key)"
                raise ValueNotSerializableError(path, reason)
            name = f".{key}" if key.isidentifier() else f"[{quote(key)}]"
            _refuse(child, path + name)
    elif type(value) is list:
        for index, child in enumerate(value):
            _refuse(child, f"{path}[{index}]")
    elif isinstance(value, float) and not math.isfinite(value):
        reason = f"{value} is not a JSON number: pass None or a string"
        raise ValueNotSerializableError(path, reason)
    else:
        _refuse_leaf(value, path)


def _refuse_leaf(value: Any, path: str) -> None:
    with suppress(TypeError, ValueError, RecursionError):
        if orjson.loads(orjson.dumps(value, _plain, option=_STRICT)) == value:
            return
    raise ValueNotSerializableError(path, _reason(value))


def _reason(value: Any) -> str:
    """Return why a single value is not JSON, and what to pass instead."""
    if type(value) is str:
        return "a string with half a character, a lone surrogate, is not text"
    if type(value) is int:
        return "an integer of more than 64 bits: pass str(value)"
    kinds = [kind.__name__ for kind in type(value).__mro__]
    remedies = [_REMEDIES[kind] for kind in ("Enum", *kinds) if kind in kinds and kind in _REMEDIES]
    if not remedies and hasattr(value, "__dataclass_fields__"):
        remedies = ["dataclasses.asdict(value)"]
    remedy = f": pass {remedies[0]}" if remedies else ""
    return f"{type(value).__name__} is not a JSON type{remedy}"
