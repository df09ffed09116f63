"""Conversation managers: what the model sees now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.conversation.base import ConversationManager, NullManager
    from locus_memory.conversation.faults import Fault, repair, validate
    from locus_memory.conversation.summary import SummarizingManager
    from locus_memory.conversation.summary_thread import root_digest
    from locus_memory.conversation.tokens import (
        TokenCounter,
        as_token_counter,
        count_tokens,
        estimate_tokens,
    )
    from locus_memory.conversation.window import SlidingWindowManager
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "ConversationManager": "base",
            "Fault": "faults",
            "NullManager": "base",
            "SlidingWindowManager": "window",
            "SummarizingManager": "summary",
            "TokenCounter": "tokens",
            "as_token_counter": "tokens",
            "count_tokens": "tokens",
            "estimate_tokens": "tokens",
            "repair": "faults",
            "root_digest": "summary_thread",
            "validate": "faults",
        },
    )

__all__ = [
    "ConversationManager",
    "Fault",
    "NullManager",
    "SlidingWindowManager",
    "SummarizingManager",
    "TokenCounter",
    "as_token_counter",
    "count_tokens",
    "estimate_tokens",
    "repair",
    "root_digest",
    "validate",
]
