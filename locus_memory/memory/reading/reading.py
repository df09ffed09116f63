"""What is read for the runs of a memory: from what, within which limits, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Final

from locus_memory.conversation.tokens import TokenCounter
from locus_memory.memory.options import MemoryOptions
from locus_memory.memory.recall.recall import Recall
from locus_memory.memory.scope import Scope

__all__ = ["Reading", "Unread"]

_SHARE_OF_BUDGET: Final = 4
"""What a person fixed takes at most this fraction of the budget."""

Unread = Callable[[Scope], Awaitable[Collection[tuple[str, int]]]]
"""Returns the thread and the number of each message that waits for extraction."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What the parts of a block are read from.

    Attributes:
        recall: The search for memories, in the store of all that is shown.
        options: The budget, the gate, and how long a stable part is kept.
        unread: Returns what no extraction has read; `None`: no model extracts, so that no turn was
            read.
        count: Counts tokens.
        now: Returns the present moment, ISO 8601 in UTC.
        lock: Held by a task of this process while it fixes something.
    """

    recall: Recall
    options: MemoryOptions
    unread: Unread | None
    count: TokenCounter
    now: Callable[[], str]
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def fixed_room(self) -> int:
        """The most tokens of what a person fixed."""
        return self.options.memory_budget_tokens // _SHARE_OF_BUDGET
