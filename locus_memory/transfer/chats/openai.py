"""Conversion of a message between the OpenAI chat format and the format of a state.

Messages of other makers differ in few fields, and are read too: the roles `human` and `ai`, and
the messages of LangChain as JSON. All that a state has no place for is kept beside it, so that the
written message equals the one that was read.
"""

from __future__ import annotations

from typing import Any

import orjson

from locus_memory.transfer.chats.conversation import UnreadError, field_of
from locus_memory.transfer.chats.exact_json import parse_json

__all__ = ["read_message", "write_message"]

_ROLES = {"system", "user", "assistant", "tool"}
_OLD_ROLES = {"developer": "system", "function": "tool"}
_OTHER_ROLES = {"human": "user", "ai": "assistant", "model": "assistant"}
_CLASSES = {"HumanMessage": "human", "AIMessage": "ai", "SystemMessage": "system"}
_TEXTS = ("name", "id", "tool_call_id")
_KEPT = "openai"
_KNOWN = {"role", "content", *_TEXTS, "tool_calls", "metadata"}
_KEPT_FIELDS = {"role", "parts", "tool_calls", "fields"}


def read_message(document: Any, where: str) -> dict[str, Any]:
    """Return the message in the format of a state.

    Raises:
        UnreadError: The document is not a message; the error begins with `where`.
    """
    if not isinstance(document, dict):
        raise UnreadError(f"{where}: not an object")
    given = _plain(document)
    kept: dict[str, Any] = {}
    message: dict[str, Any] = {"role": _read_role(given.get("role"), kept, where)}
    texts = {"content": _read_content(given.get("content"), kept, where)}
    texts |= {name: field_of(given, name, str, where, optional=True) for name in _TEXTS}
    message |= {name: text for name, text in texts.items() if text is not None}
    calls = field_of(given, "tool_calls", list, where, optional=True) or []
    if calls:
        message["tool_calls"] = _read_calls(calls, kept, where)
    rest = {name: value for name, value in given.items() if name not in _KNOWN}
    kept |= {"fields": rest} if rest else {}
    metadata = field_of(given, "metadata", dict, where, optional=True) or {}
    metadata = {**metadata, _KEPT: kept} if kept else metadata
    return {**message, "metadata": metadata} if metadata else message


def _plain(document: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a message; those of LangChain's are a level deeper in most releases."""
    if "role" in document:
        return dict(document)
    inner = next((document[name] for name in ("kwargs", "data") if name in document), None)
    fields = dict(inner if isinstance(inner, dict) else document)
    path = document.get("id")
    name = path[-1] if isinstance(path, list) and path else None
    kind = fields.pop("type", None) if isinstance(inner, dict) else None
    role = _CLASSES.get(str(name).removesuffix("Chunk")) or kind or document.get("type")
    is_known = isinstance(role, str) and (role in _OTHER_ROLES or role in _ROLES)
    return {**fields, "role": role} if is_known else dict(document)


def write_message(message: dict[str, Any], *, bare: bool = False) -> dict[str, Any]:
    """Return the document that `read_message` read; `bare` leaves out `id` and `metadata`."""
    metadata = dict(message.get("metadata") or {})
    kept = metadata.pop(_KEPT, {}) if _is_kept(metadata.get(_KEPT)) else {}
    wire: dict[str, Any] = {"role": kept.get("role", message["role"])}
    if "parts" in kept or "content" in message:
        wire["content"] = kept.get("parts", message.get("content"))
    names = _TEXTS if not bare else tuple(name for name in _TEXTS if name != "id")
    wire.update({name: message[name] for name in names if name in message})
    if message.get("tool_calls"):
        calls = [_write_call(call) for call in message["tool_calls"]]
        wire["tool_calls"] = kept.get("tool_calls", calls)
    if metadata and not bare:
        wire["metadata"] = metadata
    return {**wire, **kept.get("fields", {})}


def _is_kept(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() <= _KEPT_FIELDS


def _read_role(role: Any, kept: dict[str, Any], where: str) -> str:
    others = _OLD_ROLES | _OTHER_ROLES
    if isinstance(role, str) and role in others:
        kept["role"] = role
        return others[role]
    if not isinstance(role, str) or role not in _ROLES:
        known = ", ".join(sorted(_ROLES | _OLD_ROLES.keys()))
        what = "'role' is missing" if role is None else f"unknown role {role!r}"
        raise UnreadError(f"{where}: {what}; known: {known}")
    return role


def _read_content(content: Any, kept: dict[str, Any], where: str) -> str | None:
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, dict | str) for part in content):
        kept["parts"] = content
        found = [part if isinstance(part, str) else part.get("text") for part in content]
        texts = [text for text in found if isinstance(text, str)]
        return "\n".join(texts)
    raise UnreadError(f"{where}: 'content' is neither a string nor a list of parts")


def _read_calls(calls: list[Any], kept: dict[str, Any], where: str) -> list[dict[str, Any]]:
    read = [_read_call(call, where) for call in calls]
    # A model's arguments may be invalid JSON, or have other whitespace.
    if [_write_call(call) for call in read] != calls:
        kept["tool_calls"] = calls
    return read


def _read_call(call: Any, where: str) -> dict[str, Any]:
    function = call.get("function", call) if isinstance(call, dict) else None
    if not isinstance(function, dict) or ("function" not in call and "args" not in call):
        raise UnreadError(f"{where}: a tool call has no 'function'")
    name = field_of(function, "name", str, f"{where}, tool call")
    identifier = field_of(call, "id", str, f"{where}, tool call")
    arguments = _arguments(function.get("arguments", function.get("args")))
    return {"id": identifier, "name": name, **({"arguments": arguments} if arguments else {})}


def _arguments(written: Any) -> dict[str, Any]:
    try:
        arguments = parse_json(written) if isinstance(written, str) else written
    except orjson.JSONDecodeError:
        arguments = None
    return arguments if isinstance(arguments, dict) else {}


def _write_call(call: dict[str, Any]) -> dict[str, Any]:
    arguments = orjson.dumps(call.get("arguments", {})).decode()
    function = {"name": call.get("name"), "arguments": arguments}
    return {"id": call.get("id"), "type": "function", "function": function}
