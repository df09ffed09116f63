"""The turns of a session, as pure functions; the first of a user's message is 1."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from locus_memory.integrations.log import Entry

__all__ = ["described", "is_user_message", "structure", "texts", "tools_used", "turns_of"]

_CALLS: Final = frozenset(
    {
        *("tool_call", "function_call", "computer_call", "file_search_call", "web_search_call"),
        *("code_interpreter_call", "tool_search_call", "custom_tool_call", "mcp_call"),
        *("mcp_approval_request", "shell_call", "apply_patch_call"),
    }
)
"""The types of items that are calls of a tool, as in the SDK's `get_tool_usage`."""


def is_user_message(entry: Entry) -> bool:
    """Return whether an item is a user's message, which begins a turn."""
    return entry.item.get("role") == "user"


def turns_of(entries: Iterable[Entry]) -> dict[int, list[Entry]]:
    """Return the items of each turn, by its number; 0 has those before the first message."""
    turns: dict[int, list[Entry]] = {}
    number = 0
    for entry in entries:
        number += is_user_message(entry)
        turns.setdefault(number, []).append(entry)
    return turns


def described(number: int, entry: Entry, preview: int | None) -> dict[str, Any]:
    """Return a turn as the SDK lists it; `preview`: how many characters of its text are shown."""
    content = entry.item.get("content", "")
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return {
        "turn": number,
        "content": text if preview is None or len(text) <= preview else f"{text[:preview]}...",
        "full_content": content,
        "timestamp": entry.stored.created_at.isoformat(),
        "can_branch": True,
    }


def texts(entry: Entry) -> list[str]:
    """Return the text of a message, or those of its parts."""
    content = entry.item.get("content", "")
    parts = content if isinstance(content, list) else [{"text": content}]
    found = [part.get("text") for part in parts if isinstance(part, dict)]
    return [text for text in found if isinstance(text, str)]


def structure(entries: Iterable[Entry]) -> list[dict[str, str | None]]:
    """Return the type of each item, and the name of its tool, as the SDK knows them."""
    # Its rules are methods that use nothing of the object, and follow its own types of items.
    from agents.extensions.memory import advanced_sqlite_session  # noqa: PLC0415

    rules = cast("Any", advanced_sqlite_session.AdvancedSQLiteSession)
    return [
        {
            "type": rules._classify_message_type(rules, entry.item),  # noqa: SLF001 - see above
            "tool_name": rules._extract_tool_name(rules, entry.item),  # noqa: SLF001
        }
        for entry in entries
    ]


def tools_used(
    turns: Mapping[int, Sequence[Mapping[str, str | None]]],
) -> list[tuple[str | None, int, int]]:
    """Return each tool that was called in a turn, how often, and the number of the turn."""
    used: list[tuple[str | None, int, int]] = []
    for number, items in turns.items():
        counts = Counter(each["tool_name"] for each in items if each["type"] in _CALLS)
        searches = [each["tool_name"] for each in items if each["type"] == "tool_search_output"]
        # The output of a search without its call stands for it.
        if not any(each["type"] == "tool_search_call" for each in items):
            counts.update(searches)
        used += [(name, count, number) for name, count in counts.items()]
    return used
