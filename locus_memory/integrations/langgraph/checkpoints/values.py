"""LangGraph's values as plain JSON, and back; pure.

The saver's serializer converts a value to typed bytes, which are written as text. A list is written
element by element, so that a delta of the checkpoint holds only the appended elements.

| JSON | meaning |
|---|---|
| `"text"` | bytes of the type `msgpack` |
| `null` | no bytes, of the type `null` |
| `["type", "text"]` | bytes of another type |
| `{"l": [...]}` | a list, each element one of the three above |
| `{"s": ...}` | a snapshot of a `DeltaChannel`, around its value |

For the text see `texts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import (
    _DeltaSnapshot as DeltaSnapshot,  # pyright: ignore[reportPrivateUsage] - its only name
)

from locus_memory.integrations.langgraph.checkpoints.texts import Pool, bytes_of, text_of

__all__ = [
    "DeltaSnapshot",
    "decode_value",
    "encode_leaf",
    "encode_value",
    "list_of",
    "typed_bytes",
]


def encode_value(serde: SerializerProtocol, value: Any, pool: Pool | None = None) -> Any:
    """Return a value as JSON; see the table of this module.

    Args:
        serde: Converts values to bytes.
        value: The value.
        pool: The pool of its long texts; `None`: they stay in the value.
    """
    if type(value) is list:
        return {"l": [encode_leaf(serde, element, pool) for element in value]}
    if type(value) is DeltaSnapshot:
        return {"s": encode_value(serde, value.value, pool)}
    return encode_leaf(serde, value, pool)


def encode_leaf(serde: SerializerProtocol, value: Any, pool: Pool | None = None) -> Any:
    """Return a value that is not split into elements as JSON."""
    kind, data = serde.dumps_typed(value)
    if kind == "null" and not data:
        return None
    # LangGraph's serializer returns a `bytearray` unchanged.
    data = bytes(data)
    if pool is not None:
        return pool.leaf(kind, data)
    return text_of(data) if kind == "msgpack" else [kind, text_of(data)]


def decode_value(serde: SerializerProtocol, encoded: Any, texts: Sequence[str] = ()) -> Any:
    """Return the value that `encode_value` wrote, as the serializer restores it.

    Args:
        serde: Converts bytes to values.
        encoded: The JSON.
        texts: The texts of its pool, if it has one.

    Raises:
        NotImplementedError: The serializer does not know the type of the bytes.
    """
    if isinstance(encoded, dict):
        parts = cast("dict[str, Any]", encoded)
        if "s" in parts:
            return DeltaSnapshot(decode_value(serde, parts["s"], texts))
        return [serde.loads_typed(typed_bytes(element, texts)) for element in parts["l"]]
    return serde.loads_typed(typed_bytes(encoded, texts))


def typed_bytes(encoded: Any, texts: Sequence[str] = ()) -> tuple[str, bytes]:
    """Return the typed bytes of a value that is not split into elements."""
    if encoded is None:
        return "null", b""
    if isinstance(encoded, str):
        return "msgpack", bytes_of(encoded, texts)
    kind, text = cast("list[str]", encoded)
    return kind, bytes_of(text, texts)


def list_of(encoded: Any) -> Sequence[Any] | None:
    """Return the encoded elements of a list; `None` if it is not a list."""
    return encoded.get("l") if isinstance(encoded, dict) else None
