"""Conversion of an answer to one that JSON can hold, so that the thread can be saved."""

from __future__ import annotations

from typing import Any

from locus_memory.chat.base import INVALID_ARGUMENTS
from locus_memory.errors import ValueNotSerializableError
from locus_memory.events import emit
from locus_memory.messages import Message, ToolCall
from locus_memory.store.json_values import encode_json

__all__ = ["storable", "whole"]


def storable(message: Message) -> Message:
    """Return an answer that can be saved: usually the given one.

    Half of a surrogate pair becomes U+FFFD, and a tool call whose id holds one gets another id.
    Arguments that JSON cannot hold become `{}`, and the metadata holds the reason under
    `INVALID_ARGUMENTS`. Other metadata that JSON cannot hold is dropped. The event
    `agent.answer_mended` names the changed parts.
    """
    reasons = message.metadata.get(INVALID_ARGUMENTS)
    invalid: dict[str, str] = {}
    calls = tuple(
        _storable_call(call, reasons if isinstance(reasons, dict) else {}, invalid)
        for call in message.tool_calls
    )
    metadata = {
        name: value
        for name, value in message.metadata.items()
        if name != INVALID_ARGUMENTS and _fault({name: value}) is None
    }
    parts: dict[str, Any] = {
        "content": message.content and whole(message.content),
        "name": message.name and whole(message.name),
        "id": message.id and whole(message.id),
        "tool_calls": calls,
        "metadata": metadata | ({INVALID_ARGUMENTS: invalid} if invalid else {}),
    }
    changed = {name: part for name, part in parts.items() if getattr(message, name) != part}
    if not changed:
        return message
    emit("agent.answer_mended", parts=sorted(changed))
    return message.model_copy(update=changed)


def whole(text: str) -> str:
    """Return `text` with surrogate pairs joined, and a replacement character for a lone one."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _storable_call(call: ToolCall, reasons: dict[Any, Any], invalid: dict[str, str]) -> ToolCall:
    """Return the call, and add to `invalid` the reason why its arguments cannot be read."""
    own_id = call.id if whole(call.id) == call.id else ToolCall(name="").id
    fault = _fault(call.arguments)
    reason = reasons.get(call.id, fault)
    if reason is not None:
        invalid[own_id] = whole(str(reason))
    changes = {"id": own_id, "name": whole(call.name), "arguments": {} if fault else call.arguments}
    changed = {name: part for name, part in changes.items() if getattr(call, name) != part}
    return call.model_copy(update=changed) if changed else call


def _fault(value: Any) -> str | None:
    """Return why JSON cannot hold the value, if so."""
    try:
        encode_json(value)
    except ValueNotSerializableError as error:
        return str(error)
    return None
