"""The call of a tool that is in progress, for tools that need to know the run they serve."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from locus_memory.messages import Message, Role

__all__ = ["CURRENT_CALL", "CurrentCall", "last_text"]


@dataclass(frozen=True, slots=True)
class CurrentCall:
    """A call of a tool by an agent.

    Attributes:
        run_id: The run.
        thread_id: The thread.
        messages: The thread up to the answer that has the call.
        has_documents: Whether the model was shown documents in this run.
    """

    run_id: str
    thread_id: str
    messages: tuple[Message, ...]
    has_documents: bool = False

    @property
    def message_id(self) -> str | None:
        """The id of the message with the call."""
        return self.messages[-1].id if self.messages else None


CURRENT_CALL: Final[ContextVar[CurrentCall | None]] = ContextVar("locus_memory_call", default=None)
"""The call whose tool runs in this context; `None` outside an agent."""


def last_text(messages: Sequence[Message], role: Role) -> str:
    """Return the text of the last message of a role; empty if there is none."""
    return next((each.content or "" for each in reversed(messages) if each.role == role), "")
