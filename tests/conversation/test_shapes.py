"""Messages of unusual shapes."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import pytest

from locus_memory.conversation.base import NullManager
from locus_memory.conversation.roles import BLOCK_MARK
from locus_memory.conversation.summary.manager import SummarizingManager
from locus_memory.conversation.summary.text import is_summary, text_of_summary
from locus_memory.conversation.summary.thread import message_digest
from locus_memory.conversation.tokens import count_tokens
from locus_memory.conversation.validation import repair, validate
from locus_memory.conversation.window import SlidingWindowManager
from locus_memory.messages import Message, ToolCall, ToolResult


class Speaker(Enum):
    DEVELOPER = "developer"
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass
class Loose:
    role: Any
    content: Any = None
    tool_calls: Any = ()
    tool_call_id: str | None = None
    name: str | None = None
    metadata: Any = field(default_factory=dict)


def said(count, role="user"):
    return [Loose(role, f"message {number}") for number in range(count)]


MIXED = {"a": {1: 2, "b": 3}}


@pytest.mark.parametrize("arguments", [MIXED, {("a", 1): {2, 3}}])
def test_arguments_that_are_no_json(arguments):
    call = ToolCall.model_construct(id="c", name="look", arguments=arguments)
    result = Message.tool(ToolResult(tool_call_id="c", name="look", content="seen"))
    messages = [Message.user("go"), Message.assistant().model_copy(update={"tool_calls": (call,)})]
    messages += [result, *(Message.user(f"and {number}") for number in range(5))]
    for manager in (SummarizingManager(3, 1, max_tokens=300), SlidingWindowManager(max_tokens=300)):
        assert manager.apply(messages)[-1] is messages[-1]
    other = messages[1].model_copy(update={"tool_calls": (call.model_copy(update={"id": "d"}),)})
    assert message_digest(messages[1]) == message_digest(messages[1].model_copy())
    assert message_digest(messages[1]) != message_digest(other)


@pytest.mark.parametrize("role", ["developer", Speaker.DEVELOPER, Speaker.SYSTEM])
def test_whoever_speaks_for_the_system_stays(role):
    messages = [Loose(role, "rules"), *said(40, Speaker.USER)]
    assert SlidingWindowManager(5).apply(messages) == [messages[0], *messages[-5:]]
    shown = SummarizingManager(10, 5).apply(messages)
    assert shown[0] is messages[0]
    assert is_summary(shown[1])
    assert shown[2:] == messages[-5:]


def test_roles_of_an_enum_are_understood():
    call = Loose(Speaker.ASSISTANT, None, [ToolCall(id="c", name="look")])
    result = Loose(Speaker.TOOL, "seen", tool_call_id="c", name="look")
    orphan = Loose(Speaker.TOOL, "lost", tool_call_id="x", name="look")
    messages = [Loose(Speaker.USER, "go"), call, result]
    assert validate(messages) == []
    assert NullManager().apply(messages) == messages
    assert [fault.kind for fault in validate([*messages, orphan])] == ["orphan_result"]
    [made] = [m for m in repair(messages[:2]) if m.tool_call_id]
    assert made.role is Speaker.TOOL
    loop = [messages[0], *(each for _ in range(9) for each in repair([call, result]))]
    shown = SummarizingManager(6, 2).apply(loop)
    assert shown[0].role is Speaker.SYSTEM
    assert text_of_summary(shown[0]).startswith("user: go\nassistant: [calls look]\ntool: seen")
    assert shown[1] is messages[0]


@pytest.mark.parametrize("role", ["system", "user", Speaker.SYSTEM])
@pytest.mark.parametrize("preserve_system", [True, False])
def test_a_block_of_memories_stays_and_is_never_summarised(role, preserve_system):
    asked = []

    def summarize(given):
        asked.append(given)
        return f"summary {len(asked)}"

    rolling = SummarizingManager(6, 2, summarize, preserve_system)
    window = SlidingWindowManager(4, preserve_system)
    messages = said(2)
    for number in range(30):
        block = Loose(role, f"Ada has {number} boats.", metadata={BLOCK_MARK: True})
        messages.append(Loose("user", f"more {number}"))
        given = [Loose("system", "rules"), block, *messages]
        shown = rolling.apply(given)
        assert [message for message in shown if message.metadata.get(BLOCK_MARK)] == [block]
        assert not any(message.metadata.get(BLOCK_MARK) for each in asked for message in each)
        assert block in window.apply(given)
    contents = [m.content for each in asked for m in each if not is_summary(m)]
    assert len(contents) == len(set(contents)) > 20


async def test_a_summary_is_clean():
    dirty = "bad \ud800 surrogate\x00, \x1b[31mred\r\nnext\rline\tand\x85more \U0001f6a2"
    clean = "bad ? surrogate, [31mred\nnext\nline and\nmore \U0001f6a2"
    messages = said(9)
    manager = SummarizingManager(4, 2, lambda asked: dirty, store="memory")
    shown = await manager.async_apply(messages)
    assert text_of_summary(shown[0]) == clean
    assert text_of_summary(manager.apply([shown[0], *said(2)])[0]) == clean
    spoken = [Loose("user", dirty), *said(8)]
    extracted = text_of_summary(SummarizingManager(4, 2).apply(spoken)[0])
    assert extracted.splitlines()[0] == f"user: {' '.join(clean.split())}"


def test_counting_what_is_no_json():
    assert count_tokens([Loose("user", [{("a",): 1}])]) > 3
