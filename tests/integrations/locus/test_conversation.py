"""Our conversation managers in the SDK's own agent, as they are."""

from __future__ import annotations

import asyncio

import pytest
from locus.agent import Agent
from locus.core.messages import Message, ToolCall
from locus.core.protocols import ConversationManagerProtocol
from locus.models.base import ModelResponse
from locus.testing import FunctionModel, text

from locus_memory import (
    LLMMemoryManager,
    NullManager,
    SlidingWindowManager,
    SummarizingManager,
)
from locus_memory.conversation.validation import validate
from locus_memory.integrations.locus import LocusCheckpointer


def batches(messages, tools):
    """Call two tools at once, twice in each turn, then answer."""
    since = next(n for n, message in enumerate(reversed(messages)) if message.role == "user")
    turn = next(message.content for message in reversed(messages) if message.role == "user")
    if since >= 6:
        return text(f"answer to {turn}")
    names = [f"{turn}-{since}-{side}" for side in "ab"]
    calls = [ToolCall(id=name, name="look", arguments={"place": name}) for name in names]
    return ModelResponse(
        message=Message.assistant(tool_calls=calls), usage={}, stop_reason="tool_calls"
    )


async def chat(make_agent, manager, turns=6, **options):
    async with LocusCheckpointer("memory") as checkpointer:
        agent = make_agent(
            batches, conversation_manager=manager, checkpointer=checkpointer, **options
        )
        for number in range(turns):
            result = await agent.arun(f"q{number}", thread_id="t")
    return result, agent.model.received_messages


@pytest.mark.parametrize(
    "manager",
    [
        NullManager(),
        SlidingWindowManager(window_size=8),
        SlidingWindowManager(window_size=8, max_tokens=300),
        SummarizingManager(threshold=10, keep_recent=8),
    ],
    ids=repr,
)
async def test_what_the_model_sees_is_whole(make_agent, manager):
    assert isinstance(manager, ConversationManagerProtocol)
    result, requests = await chat(make_agent, manager)
    assert len(requests) == 18
    for request in requests:
        assert validate(request) == []
        assert request[0].content == "Be brief."
        # The SDK drops calls without results: there were none to drop.
        assert Agent._validate_messages(request) == request
        assert all(isinstance(message, Message) for message in request)
    assert len(result.state.messages) == 1 + 6 * 8
    assert result.message == "answer to q5"


@pytest.mark.slow
async def test_a_window_bounds_what_is_sent(make_agent):
    _, requests = await chat(make_agent, SlidingWindowManager(window_size=8))
    assert max(map(len, requests)) <= 9
    assert "q5" in [message.content for message in requests[-1]]
    assert "q0" not in [message.content for message in requests[-1]]


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_a_summary_is_rolling(make_agent, kind):
    """No message is summarised twice; the summary so far comes with the new ones."""
    asked = []

    def summarize(messages):
        asked.append([message.content or message.tool_calls[0].id for message in messages])
        return f"summary {len(asked)}"

    async def summarize_later(messages):
        return summarize(messages)

    manager = SummarizingManager(
        threshold=16,
        keep_recent=8,
        summarize_fn=summarize if kind == "sync" else summarize_later,
    )
    result, requests = await chat(make_agent, manager, turns=8)
    assert len(asked) > 2
    new = [content for batch in asked for content in batch if "summary" not in content]
    said = [m.content or m.tool_calls[0].id for m in result.state.messages[1:]]
    assert new == said[: len(new)]
    summaries = [m for m in requests[-1] if f"summary {len(asked)}" in (m.content or "")]
    assert len(summaries) == 1
    assert not any("summary" in (m.content or "") for m in result.state.messages)


async def test_a_failing_summary_fails_no_run(make_agent):
    def refuse(messages):
        raise ConnectionError

    manager = SummarizingManager(threshold=10, keep_recent=4, summarize_fn=refuse)
    result, requests = await chat(make_agent, manager)
    assert result.message == "answer to q5"
    assert all(validate(request) == [] for request in requests)


OWNERS = ("ada", "bob", "cyd", "dee")


async def test_one_manager_for_many_threads(make_agent):
    manager = SummarizingManager(
        threshold=6, keep_recent=4, summarize_fn=lambda messages: messages[-1].content or "calls"
    )
    async with LocusCheckpointer("memory") as checkpointer:
        agent = make_agent(
            FunctionModel(lambda messages, tools: messages[-1].content.upper()),
            conversation_manager=manager,
            checkpointer=checkpointer,
        )
        for turn in range(6):
            runs = [agent.arun(f"{name} {turn}", thread_id=name) for name in OWNERS]
            await asyncio.gather(*runs)
    for request in agent.model.received_messages:
        owner = request[-1].content[:3]
        said = " ".join(message.content for message in request[1:]).lower()
        assert all(other not in said for other in OWNERS if other != owner)


@pytest.mark.slow
async def test_a_block_of_memories_is_never_trimmed(make_agent):
    async with LLMMemoryManager("memory") as memories:
        _, requests = await chat(
            make_agent, SlidingWindowManager(window_size=4), turns=1, memory_manager=memories
        )
        assert not any("<memory>" in (m.content or "") for m in requests[-1])
        agent = make_agent(
            lambda *_: "hello Ada", memory_manager=memories, conversation_manager=NullManager()
        )
        await agent.arun("My name is Ada and I live in Berlin.")
        _, requests = await chat(
            make_agent, SlidingWindowManager(window_size=4), memory_manager=memories
        )
        for request in requests:
            assert sum("Berlin" in (message.content or "") for message in request) == 1
            assert validate(request) == []
