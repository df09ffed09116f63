"""The names of the threads in which a `LocusSaver` keeps LangGraph's pending writes."""

from __future__ import annotations

import json
from typing import Any, Final

__all__ = ["beside", "holder_of"]

_SCHEME: Final = "langgraph:"
_LANGGRAPH: Final = f"{_SCHEME}["
_PARTS: Final = 3
"""The parts of the name of pending writes: the thread, the namespace, and a word."""


def beside(thread_id: str) -> str:
    """Return the thread of a `LocusSaver` for pending writes, which name no user; or nothing."""
    return f'{thread_id[:-1]},"writes"]' if thread_id.startswith(_LANGGRAPH) else ""


def holder_of(thread_id: str) -> str:
    """Return the thread that a thread is `beside`; or nothing, if it holds no pending writes."""
    if not thread_id.startswith(_LANGGRAPH):
        return ""
    try:
        parts: Any = json.loads(thread_id.removeprefix(_SCHEME))
    except (ValueError, RecursionError):
        return ""
    holder = thread_id.removesuffix(',"writes"]') + "]"
    # A graph's namespace may have the same name.
    return holder if len(parts) == _PARTS and beside(holder) == thread_id else ""
