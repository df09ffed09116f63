"""The events that an agent streams while it runs, and the result of a run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Literal

from locus_memory.chat.usage import Usage
from locus_memory.documents.values import RetrievalResult
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
    """The result of a run.

    Attributes:
        text: The last answer of the model; empty if it only called tools.
        messages: The messages that this run added to the thread, oldest first.
        state: The whole thread as saved.
        thread_id: The thread.
        checkpoint_id: Its newest checkpoint; `None` without a checkpointer.
        iterations: How often this run called the model.
        stop_reason: `done`, or `max_iterations` if the run stopped before the model was done.
        failures: The events of this run that have an error, oldest first, such as a failed
            extraction of memories. Failures of background tasks are not included.
        usage: The tokens of the answers, and of the extraction that ended before the run did, as
            far as the model reports them.
        sources: The documents that the model was shown: `[1]` in its text cites the first.
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
    sources: tuple[RetrievalResult, ...] = ()


class AgentEvent:
    """The base class of the events of a run."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class TextDelta(AgentEvent):
    """A piece of the model's text, if the model streams.

    Attributes:
        text: The piece; all pieces together are the text of the next message.
    """

    text: str


@dataclass(frozen=True, slots=True)
class MessageAdded(AgentEvent):
    """A message was added to the thread.

    Attributes:
        message: A message of the user, the model or a tool.
    """

    message: Message


@dataclass(frozen=True, slots=True)
class ToolStarted(AgentEvent):
    """A tool is about to run.

    Attributes:
        call: The model's call.
    """

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolFinished(AgentEvent):
    """A tool returned or failed.

    Attributes:
        result: Its result, with its duration.
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
        result: The result of the run.
    """

    result: AgentResult


Tell = Callable[[AgentEvent], None]


async def streamed(
    work: Callable[[Tell], Coroutine[Any, Any, object]],
) -> AsyncGenerator[AgentEvent]:
    """Yield the events of `work` while it runs, then raise its error, if any.

    The work does not wait for the consumer of the stream. Closing the stream cancels the work and
    waits for its end.
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
