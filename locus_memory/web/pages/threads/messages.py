"""What a message looks like: its text, and the parts that are folded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from locus_memory.inspection.threads import session_of

__all__ = ["Call", "MessageView", "view_message", "view_messages"]

_ROLES: Final = frozenset(("user", "assistant", "system", "tool"))
_ALIASES: Final = {"human": "user", "ai": "assistant"}
_SHOWN: Final = frozenset(("role", "type", "content", "tool_calls", "tool_call_id", "name", "id"))


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool: its name and its arguments."""

    name: str
    arguments: Any


@dataclass(frozen=True, slots=True)
class MessageView:
    """A message as a page shows it.

    Attributes:
        place: Its place in the conversation, from 1.
        role: One of `user`, `assistant`, `system`, `tool` and `other`.
        speaker: The name of its author, else its role.
        text: Its text; empty: it has none.
        parts: A content that is no text; `None`: there is none.
        calls: The tools that it calls.
        rest: Its other fields, such as its metadata.
        session: The session that begins with it; empty: it goes on with that of the one before.
    """

    place: int
    role: str
    speaker: str
    text: str
    parts: Any
    calls: tuple[Call, ...]
    rest: dict[str, Any]
    session: str


def view_messages(messages: list[Any], first: int = 1) -> list[MessageView]:
    """Return messages as a page shows them; `first` is the place of the first one."""
    seen, shown = "", list[MessageView]()
    for place, message in enumerate(messages, first):
        session = session_of(message)
        shown.append(view_message(place, message, session if session != seen else ""))
        seen = session or seen
    return shown


def view_message(place: int, message: Any, session: str = "") -> MessageView:
    """Return one message as a page shows it."""
    if not isinstance(message, dict):
        return MessageView(place, "other", "?", "", message, (), {}, session)
    given = str(message.get("role") or message.get("type") or "?")
    role = _ALIASES.get(given, given)
    content = message.get("content")
    calls = message.get("tool_calls")
    return MessageView(
        place=place,
        role=role if role in _ROLES else "other",
        speaker=str(message.get("name") or given),
        text=content if isinstance(content, str) else "",
        parts=None if isinstance(content, str) else content,
        calls=tuple(map(_call, calls if isinstance(calls, list) else [])),
        rest={name: value for name, value in message.items() if name not in _SHOWN and value},
        session=session,
    )


def _call(call: Any) -> Call:
    if not isinstance(call, dict):
        return Call("?", call)
    nested = call.get("function")
    inner = nested if isinstance(nested, dict) else call
    arguments = inner.get("arguments", inner.get("args"))
    return Call(str(inner.get("name", "?")), arguments)
