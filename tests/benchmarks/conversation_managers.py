"""What the conversation managers ask of a summariser, and what a call of theirs costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import orjson
from conversations import Talk
from rows import Row, typical

from locus_memory.conversation.base import ConversationManager, NullManager
from locus_memory.conversation.summary.manager import SummarizingManager
from locus_memory.conversation.window import SlidingWindowManager
from locus_memory.messages import Message, ToolCall, ToolResult

TURNS = 500


class CountingSummarizer:
    """Answers with a summary of a realistic length, and counts what it is given."""

    def __init__(self) -> None:
        self.calls = 0
        self.times: Counter[int] = Counter()

    async def __call__(self, messages: Sequence[Message]) -> str:
        self.calls += 1
        self.times.update(id(message) for message in messages if message.role != "system")
        return f"Summary {self.calls}. " + "They went on talking about the garden. " * 20


def spoken(turns: int) -> list[Message]:
    talk = Talk()
    return [
        Message(role=each["role"], content=each["content"])
        for _ in range(turns)
        for each in talk.turn()
    ]


async def asks(folder: Path) -> list[Row]:
    """Summarise 500 turns, a step at a time, with a new process in effect at every 100 turns."""
    summarize = CountingSummarizer()
    messages = spoken(TURNS)
    where = f"sqlite:{folder / 'summaries.db'}"
    for start in range(0, TURNS, 100):
        async with SummarizingManager(summarize_fn=summarize, store=where) as manager:
            for turn in range(start, start + 100):
                await manager.async_apply(messages[: 2 * turn + 2])
    covered = len(summarize.times)
    detail = f"{summarize.calls} calls for {covered} of {len(messages)} messages, 4 restarts"
    return [
        Row(
            "summarising 500 turns: most times a message was given to the summariser",
            max(summarize.times.values()),
            1,
            detail,
        )
    ]


def worked(steps: int) -> list[Message]:
    """Return 4 messages a step: a request, a tool call, its result and an answer."""
    talk = Talk()
    messages = [Message.system("You are a helpful assistant.")]
    for step in range(steps):
        call = ToolCall(id=f"call_{step}", name="search", arguments={"query": talk.text(40)})
        result = ToolResult(tool_call_id=call.id, name="search", content=talk.text(600))
        messages += [
            Message.user(talk.text(200)),
            Message.assistant(None, [call]),
            Message.tool(result),
            Message.assistant(talk.text(600)),
        ]
    return messages


async def applied(folder: Path) -> list[Row]:
    """Call each manager on 2,000 messages again and again, as an agent does at every step."""
    del folder
    messages = worked(500)
    managers: list[ConversationManager] = [
        NullManager(),
        SlidingWindowManager(),
        SlidingWindowManager(None, max_tokens=8_000),
        SummarizingManager(max_tokens=8_000),
    ]
    for manager in managers:
        manager.apply(messages)
    times = [typical(lambda m=manager: m.apply(messages), 50) * 1e3 for manager in managers]
    wire = typical(lambda: orjson.dumps([m.to_openai_format() for m in messages]), 50) * 1e3
    named = ("null", "window", "window of tokens", "summary")
    detail = ", ".join(f"{name} {time:.1f}" for name, time in zip(named, times, strict=True))
    return [
        Row(
            "a manager's step on 2,000 messages, slowest / writing them as a request",
            max(times) / wire,
            3,
            f"ms: {detail} / {wire:.1f}",
        )
    ]
