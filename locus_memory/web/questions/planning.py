"""The plan of a run: what a model would be shown, for a message of a thread or a typed text."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final, Literal

from pydantic import Field

from locus_memory.checkpoint.differences import messages_of
from locus_memory.memory.extraction.thread import text_of
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import MemoryType
from locus_memory.memory.reading.lines import LineKind
from locus_memory.memory.reading.reader import Outcome
from locus_memory.memory.scope import split_key, user_of
from locus_memory.web.errors import RefusalError
from locus_memory.web.models import Answer, UserAsked
from locus_memory.web.questions.data import Data
from locus_memory.web.questions.threads import StateAsked, get_state

__all__ = ["PlanAnswer", "PlanAsked", "PlanLine", "plan_run"]

_SPOKEN: Final = frozenset(("user", "human"))


class PlanAsked(UserAsked):
    """A message: one that somebody types, or one of a thread."""

    text: str | None = Field(default=None, min_length=1, max_length=20_000)
    """A text, as the user's first message in a thread."""
    thread: str | None = Field(default=None, min_length=1)
    """A thread, in place of a text; without `user`, the user is that of its state."""
    message: int | None = Field(default=None, ge=1)
    """The place of a message of the user in the thread, from 1; by default the last one."""
    gate: Literal["rules", "off"] = "off"
    """Whether rules decide if the message needs the tail; or every message has it."""
    budget: int = Field(default=4_000, ge=100, le=200_000)
    """The most tokens of the block."""


class PlanLine(Answer):
    """A line that was found for the message."""

    kind: LineKind
    """An `override`, a feedback `rule`, the `identity`, a `fact`, a `note`, or a `quote`."""
    line: str
    tokens: int
    outcome: Outcome
    """In the `stable` part or in the `tail`; else why it is left out: over the `budget`, or kept
    back by the `gate`."""
    type: MemoryType | None
    key: str | None
    """The key of its memory; `null`: it is no memory."""


class PlanAnswer(Answer):
    """What a run with the message is shown with the memories of now."""

    user: str | None
    thread: str | None
    message: int | None
    """The place of the message in the thread, from 1."""
    text: str
    """The message."""
    stable: str | None
    """The exact text at the end of the system prompt; `null`: nothing is known."""
    tail: str | None
    """The exact text in front of the message; `null`: nothing more answers it."""
    tokens: int
    """The tokens of both as messages."""
    budget: int
    lines: list[PlanLine]
    """All lines that were found: first those of the block, in its order."""


async def plan_run(data: Data, asked: PlanAsked) -> PlanAnswer:
    """Return what the model is shown before a message, why, and what is left out.

    It is planned with the memories of now and the default options of an agent's memory. Nothing is
    counted, kept or written.
    """
    if (asked.text is None) == (asked.thread is None):
        raise RefusalError(400, "give text or thread, not both")
    if asked.text is not None:
        if asked.message is not None:
            raise RefusalError(400, "message is a place in a thread: give thread as well")
        return await _planned(data, asked, asked.user, asked.text)
    state = (await get_state(data, StateAsked(thread=asked.thread or ""))).state
    said = _said_by_user(state)
    place = asked.message or max(said, default=0)
    if place not in said:
        raise RefusalError(404, "the thread has no such message of a user")
    user = asked.user if asked.user is not None else _user_of(state)
    answer = await _planned(data, asked, user, said[place])
    return answer.model_copy(update={"thread": asked.thread, "message": place})


async def _planned(data: Data, asked: PlanAsked, user: str | None, text: str) -> PlanAnswer:
    manager = _manager(data, asked, user)
    plan = await manager.plan(text, explain=True)
    return PlanAnswer(
        user=user,
        thread=None,
        message=None,
        text=text,
        stable=plan.stable,
        tail=plan.tail,
        tokens=plan.tokens,
        budget=asked.budget,
        lines=[
            PlanLine(
                kind=each.kind,
                line=each.line,
                tokens=each.tokens,
                outcome=each.outcome,
                **_memory(each.name),
            )
            for each in plan.lines
        ],
    )


def _manager(data: Data, asked: PlanAsked, user: str | None) -> LLMMemoryManager:
    """Return a manager for one plan: it has no caches yet, so that it sees what others wrote."""
    manager = LLMMemoryManager(
        data.store,
        namespace_prefix=data.settings.namespace,
        embedder=data.embedder,
        gate=asked.gate,
        memory_budget_tokens=asked.budget,
        extract_mode="manual",
    )
    return manager if user is None else manager.for_user(user)


def _memory(name: str) -> dict[str, Any]:
    """Return the type and the key of a `current_key`; of an empty one, neither."""
    kind, key = split_key(name) or (None, None)
    return {"type": kind, "key": key}


def _said_by_user(state: Any) -> dict[int, str]:
    """Return the texts of the messages of a user by their places, of any framework's messages."""
    said: dict[int, str] = {}
    for place, message in enumerate(messages_of(state)[0], 1):
        known = message if isinstance(message, dict) else {}
        if (known.get("role") or known.get("type")) in _SPOKEN:
            text = text_of(SimpleNamespace(content=known.get("content")))
            said |= {place: text} if text.strip() else {}
    return said


def _user_of(state: Any) -> str | None:
    """Return the user of a stored state, as `user_of` that of a run."""
    metadata = state.get("metadata") if isinstance(state, dict) else None
    return user_of(SimpleNamespace(metadata=metadata if isinstance(metadata, dict) else {}))
