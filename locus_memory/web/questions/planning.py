"""What a run is shown: as its record says, and as it is planned for a typed text."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from locus_memory.inspection.memories import runs_of
from locus_memory.memory.layers.runs import SeenRun
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import MemoryType
from locus_memory.memory.reading.lines import LineKind, Outcome
from locus_memory.memory.scope import split_key
from locus_memory.web.models import Answer, Limit, ThenAsked, UserAsked
from locus_memory.web.questions.data import Data

__all__ = [
    "PlanAnswer",
    "PlanAsked",
    "PlanLine",
    "SawAnswer",
    "SawAsked",
    "list_runs",
    "plan_run",
]


class SawAsked(UserAsked):
    """The runs of a thread."""

    thread: str | None = Field(default=None, min_length=1)
    """The thread; without it, the runs of all threads. Without `user`, the user is that of its
    newest checkpoint."""
    limit: Limit = 20


class SawAnswer(Answer):
    """What the model saw in runs, the newest first."""

    user: str | None
    runs: list[SeenRun]


class PlanAsked(ThenAsked):
    """A message that somebody types."""

    text: str = Field(min_length=1, max_length=20_000)
    """The user's first message in a thread."""
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
    """What a run with the message is shown with the memories of now, or of a moment."""

    user: str | None
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


async def list_runs(data: Data, asked: SawAsked) -> SawAnswer:
    """Return what the model saw in the newest runs, as each run recorded it."""
    user, runs = await runs_of(data.backend, data.manager, asked.thread, asked.user, asked.limit)
    return SawAnswer(user=user, runs=runs)


async def plan_run(data: Data, asked: PlanAsked) -> PlanAnswer:
    """Return what the model would be shown before a message, why, and what is left out.

    It is planned with the memories of now, or of a moment, and the default options of an agent's
    memory. Nothing is counted, kept or written.
    """
    plan = await _manager(data, asked).plan(asked.text, explain=True, **asked.moments)
    return PlanAnswer(
        user=asked.user,
        text=asked.text,
        stable=plan.stable,
        tail=plan.tail,
        tokens=plan.tokens,
        budget=asked.budget,
        lines=[
            PlanLine(
                kind=each.kind,
                line=each.text,
                tokens=each.tokens,
                outcome=each.outcome,
                **_memory(each.name),
            )
            for each in plan.lines
        ],
    )


def _manager(data: Data, asked: PlanAsked) -> LLMMemoryManager:
    """Return a manager for one plan: it has no caches yet, so that it sees what others wrote."""
    manager = LLMMemoryManager(
        data.store,
        namespace_prefix=data.settings.namespace,
        embedder=data.embedder,
        gate=asked.gate,
        memory_budget_tokens=asked.budget,
        extract_mode="manual",
    )
    return manager if asked.user is None else manager.for_user(asked.user)


def _memory(name: str) -> dict[str, Any]:
    """Return the type and the key of a `current_key`; of an empty one, neither."""
    kind, key = split_key(name) or (None, None)
    return {"type": kind, "key": key}
