"""Conversation managers: the part of a long thread that the model sees now.

A manager returns the newest messages in whole groups, so that a tool call is never separated from
its result. Messages may be of any class: the library's, LangChain's, plain dicts.

Read `base.py` and `groups.py` first, then `window.py`; `summary/` is the rolling
summary, and `notes.py` has the notes of a memory in its place. `registry.py` makes a manager of a
string.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.conversation.base import ConversationManager, NullManager
    from locus_memory.conversation.notes import NotesManager
    from locus_memory.conversation.registry import (
        get_conversation_manager,
        list_conversation_managers,
        register_conversation_manager,
    )
    from locus_memory.conversation.summary.manager import SummarizingManager
    from locus_memory.conversation.summary.thread import root_digest
    from locus_memory.conversation.tokens import (
        TokenCounter,
        as_token_counter,
        count_tokens,
        estimate_tokens,
    )
    from locus_memory.conversation.validation import Fault, repair, validate
    from locus_memory.conversation.window import SlidingWindowManager
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "ConversationManager": "base",
            "Fault": "validation",
            "NotesManager": "notes",
            "NullManager": "base",
            "SlidingWindowManager": "window",
            "SummarizingManager": "summary.manager",
            "TokenCounter": "tokens",
            "as_token_counter": "tokens",
            "count_tokens": "tokens",
            "estimate_tokens": "tokens",
            "get_conversation_manager": "registry",
            "list_conversation_managers": "registry",
            "register_conversation_manager": "registry",
            "repair": "validation",
            "root_digest": "summary.thread",
            "validate": "validation",
        },
    )

__all__ = [
    "ConversationManager",
    "Fault",
    "NotesManager",
    "NullManager",
    "SlidingWindowManager",
    "SummarizingManager",
    "TokenCounter",
    "as_token_counter",
    "count_tokens",
    "estimate_tokens",
    "get_conversation_manager",
    "list_conversation_managers",
    "register_conversation_manager",
    "repair",
    "root_digest",
    "validate",
]
