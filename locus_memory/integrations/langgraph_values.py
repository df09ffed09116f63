"""How LangGraph's values become plain JSON, and back: pure.

A value is what the saver's serializer makes of it, typed bytes, written as text. A list is
written element by element, so that a delta of the checkpoint holds only what was appended.

| JSON | stands for |
|---|---|
| `"text"` | bytes of the type `msgpack` |
| `["type", "text"]` | bytes of another type |
| `{"l": [...]}` | a list, each element one of the two above |
| `{"s": ...}` | a snapshot of a `DeltaChannel`, around its value |

In the text each byte is the Latin-1 character of its number, with two exceptions that make it
short and legible. UTF-8 sequences beyond Latin-1 are the characters they encode; and phrases
that every LangChain message holds are one private character each. Both can be taken back
without knowing where they were applied, so every sequence of bytes comes back as it was.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import (
    _DeltaSnapshot as DeltaSnapshot,  # pyright: ignore[reportPrivateUsage] - its only name
)
from typing_extensions import override

from locus_memory.errors import CheckpointCorruptError

__all__ = [
    "StrictSerializer",
    "bytes_of",
    "decode_value",
    "encode_leaf",
    "encode_value",
    "list_of",
    "text_of",
]

_PHRASES = (
    "\xbdlangchain_core.messages.human\xacHumanMessage\x86\xa7content",
    "\xbalangchain_core.messages.ai\xa9AIMessage\x89\xa7content",
    "\xbclangchain_core.messages.tool\xabToolMessage\x89\xa7content",
    "\xbelangchain_core.messages.system\xadSystemMessage\x86\xa7content",
    "\xb1additional_kwargs\x80\xb1response_metadata\x80",
    "\xb1additional_kwargs\x80\xb1response_metadata",
    "\xa4type\xa5human\xa4name\xc0\xa2id",
    "\xa4type\xa2ai\xa4name\xc0\xa2id",
    "\xa4type\xa4tool\xa4name",
    "\xa4type\xa6system\xa4name\xc0\xa2id",
    "\xaatool_calls\x90\xb2invalid_tool_calls\x90\xaeusage_metadata",
    "\xb2invalid_tool_calls\x90\xaeusage_metadata",
    "\xacinput_tokens",
    "\xadoutput_tokens",
    "\xactotal_tokens",
    "\xb3model_validate_json",
    "\xaatool_calls",
    "\xactool_call_id",
    "\xa8artifact\xc0\xa6status\xa7success",
    "\xaamodel_name",
    "\xadfinish_reason",
)
"""The position of a phrase is part of the stored format: append only, 256 at most."""

_PRIVATE = 0xE000
_TOKENS = {chr(_PRIVATE + position): phrase for position, phrase in enumerate(_PHRASES)}
_ANY_TOKEN = re.compile("[\ue000-\ue0ff]")
_SEQUENCES = re.compile(
    "(?:[\xc4-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})+"
)
_BEYOND = re.compile("[\ue000-\ue0ff]|[^\x00-\xff\ue000-\ue0ff]+")

_OWN_TYPES = frozenset({"null", "bytes", "bytearray", "msgpack"})


class StrictSerializer(JsonPlusSerializer):
    """LangGraph's own serializer, reading only what it writes and building only safe types.

    Safe are the built-in types on LangGraph's list, LangChain's messages, and what
    `BaseCheckpointSaver.with_allowlist` adds; of another class only the plain data comes back.
    Nothing is pickled. No module is imported for the sake of a stored name.
    """

    def __init__(self) -> None:
        super().__init__(allowed_msgpack_modules=None)

    @override
    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        if data[0] not in _OWN_TYPES:
            raise NotImplementedError(f"a value of the type {data[0]!r} is not read")
        return super().loads_typed(data)


def encode_value(serde: SerializerProtocol, value: Any) -> Any:
    """Return a value as JSON; see the table of this module."""
    if type(value) is list:
        elements = cast("list[Any]", value)
        return {"l": [encode_leaf(serde, element) for element in elements]}
    if type(value) is DeltaSnapshot:
        return {"s": encode_value(serde, value.value)}
    return encode_leaf(serde, value)


def encode_leaf(serde: SerializerProtocol, value: Any) -> Any:
    """Return a value that is not taken apart as JSON."""
    kind, data = serde.dumps_typed(value)
    text = text_of(data)
    return text if kind == "msgpack" else [kind, text]


def decode_value(serde: SerializerProtocol, encoded: Any) -> Any:
    """Return the value that `encode_value` wrote, as the serializer brings it back.

    Raises:
        NotImplementedError: The serializer does not know the type of the bytes.
    """
    if isinstance(encoded, str):
        return serde.loads_typed(("msgpack", bytes_of(encoded)))
    if isinstance(encoded, list):
        kind, text = cast("list[str]", encoded)
        return serde.loads_typed((kind, bytes_of(text)))
    if "s" in encoded:
        return DeltaSnapshot(decode_value(serde, encoded["s"]))
    return [decode_value(serde, element) for element in list_of(encoded) or ()]


def list_of(encoded: Any) -> Sequence[Any] | None:
    """Return the encoded elements of a list; `None` where it is no list."""
    return encoded.get("l") if isinstance(encoded, dict) else None


def text_of(data: bytes) -> str:
    """Return bytes as text."""
    text = data.decode("latin-1")
    for token, phrase in _TOKENS.items():
        text = text.replace(phrase, token)
    return _SEQUENCES.sub(_characters, text)


def bytes_of(text: str) -> bytes:
    """Return the bytes that `text_of` wrote.

    Raises:
        CheckpointCorruptError: The text has a private character without a meaning.
    """
    return _BEYOND.sub(_sequence, text).encode("latin-1")


def _characters(match: re.Match[str]) -> str:
    run = match[0]
    try:
        characters = run.encode("latin-1").decode()
    except UnicodeDecodeError:
        return run
    return run if _ANY_TOKEN.search(characters) else characters


def _sequence(match: re.Match[str]) -> str:
    run = match[0]
    if "\ue000" <= run[0] <= "\ue0ff":
        try:
            return _TOKENS[run[0]]
        except KeyError:
            reason = "a stored value was written by a newer version"
            raise CheckpointCorruptError("", None, reason) from None
    return run.encode().decode("latin-1")
