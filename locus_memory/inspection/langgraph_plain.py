"""LangGraph's stored values as plain data: no class that the bytes name is built.

An object becomes its fields. A message of LangChain becomes a message of this library.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from locus_memory._internal.providers.drivers import require
from locus_memory.transfer.chats.conversation import UnreadError
from locus_memory.transfer.chats.openai import read_message

__all__ = ["PlainSerializer"]

_MESSAGES: Final = "langchain_core.messages."
_ROLES: Final = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
}
_NOTED: Final = ("response_metadata", "usage_metadata", "additional_kwargs", "artifact")
_FIELDS: Final = 3
"""Smallest number of parts of an encoded object: its module, its class and its fields."""


class PlainSerializer:
    """Reads the output of LangGraph's serializer as JSON with the messages of a conversation."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Raise: this serializer only reads."""
        raise NotImplementedError(
            f"this serializer only reads; it cannot write {type(obj).__name__}"
        )

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return the plain data of typed bytes, or their size if the type is unknown."""
        kind, content = data
        if kind == "null":
            return None
        if kind == "msgpack":
            return _unpacked(content)
        if kind == "json":
            return orjson.loads(content)
        return f"<{len(content)} bytes of {kind}>"


def _unpacked(content: bytes) -> Any:
    ormsgpack = require("ormsgpack", "langgraph", needed_by="a thread of LangGraph")
    unpack: Callable[..., Any] = ormsgpack.unpackb
    return _plain(unpack(content, ext_hook=_extended, option=ormsgpack.OPT_NON_STR_KEYS))


def _plain(value: Any) -> Any:
    """Return a value in the types of JSON."""
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, bytes | bytearray):
        return f"<{len(value)} bytes>"
    return value


def _extended(_: int, content: bytes) -> Any:
    """Return the fields of an encoded object; its extension number is ignored."""
    parts = _unpacked(content)
    if not isinstance(parts, list) or len(parts) < _FIELDS or not isinstance(parts[0], str):
        # This is the value of a delta channel, without a class.
        return parts
    module, name, fields = parts[:_FIELDS]
    if module.startswith(_MESSAGES) and isinstance(fields, dict):
        return _message(fields)
    if (module, name) == ("datetime", "date"):
        return "-".join(f"{part:02}" for part in fields)
    return "/".join(fields) if module.startswith("pathlib") else fields


def _message(fields: dict[str, Any]) -> dict[str, Any]:
    """Return a message of LangChain as a message of this library."""
    kind = str(fields.get("type", "")).removesuffix("MessageChunk").lower()
    wire: dict[str, Any] = {"role": _ROLES.get(kind) or str(fields.get("role") or kind)}
    if wire["role"] not in _ROLES.values():
        return fields
    wire["content"] = fields.get("content")
    wire.update({each: fields[each] for each in ("name", "id", "tool_call_id") if fields.get(each)})
    calls = fields.get("tool_calls")
    if calls:
        wire["tool_calls"] = list(map(_call, calls))
    metadata = {each: _noted(fields[each]) for each in _NOTED if fields.get(each)}
    wire["metadata"] = {name: noted for name, noted in metadata.items() if noted}
    try:
        return read_message(wire, "a message of LangGraph")
    except UnreadError:
        # A message in an unknown form stays unchanged.
        return fields


def _call(call: Any) -> dict[str, Any]:
    arguments = orjson.dumps(call.get("args") or {}).decode()
    function = {"name": call.get("name") or "", "arguments": arguments}
    return {"id": call.get("id") or "", "type": "function", "function": function}


def _noted(value: Any) -> Any:
    """Return an additional field of a message without the tool calls, which are kept apart."""
    if not isinstance(value, dict):
        return value
    return {name: each for name, each in value.items() if name != "tool_calls"}
