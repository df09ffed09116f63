"""What a run is shown, as its record says and as it is planned; and what came of it, as a trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

from pydantic import Field

from locus_memory.inspection.memories import runs_of
from locus_memory.inspection.sources import Sources, is_users
from locus_memory.memory.layers.runs import SeenRun
from locus_memory.memory.ledger.revision import read_memory
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryType
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
    "Trace",
    "list_runs",
    "plan_run",
    "run_at",
    "trace_run",
]

_LOOKED_AT: Final = 500
"""How many of a user's newest memories are looked at for those of a run."""


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


class Trace(NamedTuple):
    """What a thread has of a run.

    Attributes:
        place: The place of its message, from 1; `None`: it is no longer there.
        messages: The message and those up to the next one of the user.
        memories: The current memories that came from these messages.
    """

    place: int | None
    messages: Sequence[dict[str, Any]]
    memories: Sequence[Memory]


def _places(messages: Sequence[dict[str, Any]], text: str | None) -> list[int]:
    """Return the places of the user's messages; with a text, of those that have it."""
    return [
        place
        for place, each in enumerate(messages, 1)
        if is_users(each) and text in (None, each.get("content"))
    ]


async def run_at(
    sources: Sources, thread: str, place: int, runs: Sequence[SeenRun]
) -> SeenRun | None:
    """Return the run of the message at a place, or of the user's message before it.

    Args:
        sources: What reads the thread.
        thread: The thread.
        place: The place of a message, from 1.
        runs: The runs of the thread, the newest first.
    """
    messages = await sources.messages(thread)
    before = [each for each in _places(messages, None) if each <= place]
    if not before:
        return None
    text = messages[before[-1] - 1].get("content")
    later = [each for each in _places(messages, str(text)) if each > before[-1]]
    same = [run for run in runs if run.message == text]
    return same[len(later)] if len(same) > len(later) else None


async def trace_run(
    data: Data, sources: Sources, user: str | None, run: SeenRun, runs: Sequence[SeenRun]
) -> Trace:
    """Return what a thread has of a run; `runs` have at least all later ones of its thread."""
    messages = await sources.messages(run.thread)
    own = _places(messages, None)
    same = _places(messages, run.message) if run.message else []
    # The runs of equal messages are told apart by their order.
    alike = [each for each in runs if (each.thread, each.message) == (run.thread, run.message)]
    later = sum(each.at > run.at for each in alike)
    if later >= len(same):
        return Trace(None, (), ())
    place = same[-1 - later]
    end = next((each for each in own if each > place), len(messages) + 1)
    items = await data.store.search(data.scope(user).current, None, _LOOKED_AT)
    told = [memory for item in items if (memory := read_memory(item)) is not None]
    found = [
        memory
        for memory in told
        if memory.metadata.get("thread_id") == run.thread
        and any(place <= (each["place"] or 0) < end for each in await sources.of(memory))
    ]
    return Trace(place, messages[place - 1 : end - 1], found)
