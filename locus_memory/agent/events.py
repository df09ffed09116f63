"""What an agent tells while it runs, and what it returns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Literal

from locus_memory.chat.usage import Usage
from locus_memory.events import Event
from locus_memory.messages import Message, ToolCall, ToolResult
from locus_memory.state import AgentState

__all__ = [
    "AgentEvent",
    "AgentResult",
    "Done",
    "MessageAdded",
    "Saved",
    "StopReason",
    "Tell",
    "TextDelta",
    "ToolFinished",
    "ToolStarted",
    "streamed",
]

StopReason = Literal["done", "max_iterations"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResult:
    """What a run came to.

    Attributes:
        text: The last answer of the model; empty if it only called tools.
        messages: What this run added to the thread, oldest first.
        state: The whole thread as it was saved.
        thread_id: The thread.
        checkpoint_id: Its newest checkpoint; `None` without a checkpointer.
        iterations: How often this run asked the model.
        stop_reason: `done`, or `max_iterations` when the model wanted to go on.
        failures: What went wrong on the way and was survived, such as a memory that could not be
            extracted: the events of this run that have an error, first ones first. What is done
            in the background is not among them.
        usage: The tokens of the answers, and of the extraction that was done before the run
            ended, as far as the model tells.
    """

    text: str
    messages: tuple[Message, ...]
    state: AgentState
    thread_id: str
    checkpoint_id: str | None
    iterations: int
    stop_reason: StopReason
    failures: tuple[Event, ...] = ()
    usage: Usage = field(default_factory=Usage)


class AgentEvent:
    """One thing that happened in a run: one of the classes below."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class TextDelta(AgentEvent):
    """A piece of the model's text, where the model streams.

    Attributes:
        text: The piece; the pieces make up the text of the next message.
    """

    text: str


@dataclass(frozen=True, slots=True)
class MessageAdded(AgentEvent):
    """A message was added to the thread.

    Attributes:
        message: The user's, the model's or a tool's.
    """

    message: Message


@dataclass(frozen=True, slots=True)
class ToolStarted(AgentEvent):
    """A tool is about to run.

    Attributes:
        call: What the model asked for.
    """

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolFinished(AgentEvent):
    """A tool answered or failed.

    Attributes:
        result: What it said, and how long it took.
    """

    result: ToolResult


@dataclass(frozen=True, slots=True)
class Saved(AgentEvent):
    """The thread was saved.

    Attributes:
        checkpoint_id: Its newest checkpoint.
    """

    checkpoint_id: str


@dataclass(frozen=True, slots=True)
class Done(AgentEvent):
    """The run is over; the last event.

    Attributes:
        result: What it came to.
    """

    result: AgentResult


Tell = Callable[[AgentEvent], None]


async def streamed(
    work: Callable[[Tell], Coroutine[Any, Any, object]],
) -> AsyncGenerator[AgentEvent]:
    """Yield what `work` tells while it runs, then raise what it raised.

    The work does not wait for who listens. Closing the stream cancels the work and waits for
    its end.
    """
    events: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
    task = asyncio.create_task(work(events.put_nowait))
    task.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
