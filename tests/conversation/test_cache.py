from dataclasses import dataclass, field
from typing import Any

import pytest

from locus_memory.conversation.cache import MessageCache
from locus_memory.conversation.summary.manager import SummarizingManager
from locus_memory.conversation.tokens import count_tokens
from locus_memory.conversation.window import SlidingWindowManager
from locus_memory.messages import Message, ToolCall


def test_a_value_is_computed_once_a_message():
    computed = []
    cache = MessageCache(lambda message: computed.append(message) or message.content)
    messages = [Message.user("a"), Message.user("a")]
    for _ in range(3):
        assert cache.values(messages) == ["a", "a"]
        assert cache.value(messages[0]) == "a"
    assert len(computed) == 2


def test_arguments_that_change_in_place_are_seen():
    cache = MessageCache(lambda message: str(message.tool_calls[0].arguments))
    call = ToolCall(id="a", name="look", arguments={"at": [1]})
    message = Message.assistant(tool_calls=[call])
    assert cache.value(message) == "{'at': [1]}"
    message.tool_calls[0].arguments["at"][0] = True
    assert cache.value(message) == "{'at': [True]}"


def test_it_is_bounded():
    computed = []
    cache = MessageCache(lambda message: computed.append(message) or 1, capacity=3)
    messages = [Message.user(str(number)) for number in range(5)]
    for message in messages:
        cache.value(message)
    assert len(cache._entries) == 3
    cache.value(messages[4])
    assert len(computed) == 5
    cache.value(messages[0])
    assert len(computed) == 6


def test_a_conversation_beyond_the_bound_does_not_push_itself_out():
    computed = []
    cache = MessageCache(lambda message: computed.append(message) or 1, capacity=3)
    messages = [Message.user(str(number)) for number in range(5)]
    for _ in range(3):
        cache.values(messages)
    assert len(computed) == 5


@dataclass
class Call:
    id: str = "a"
    name: str = "look"
    arguments: Any = field(default_factory=dict)


@dataclass
class Mutable:
    role: str = "user"
    content: Any = None
    tool_calls: Any = ()
    tool_call_id: str | None = None
    name: str | None = None
    metadata: Any = None


def counting():
    computed = []
    return computed, MessageCache(lambda message: computed.append(message) or len(computed))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("role", "assistant"),
        ("content", "else"),
        ("tool_calls", [ToolCall(name="look")]),
        ("tool_call_id", "a"),
        ("name", "Ada"),
    ],
)
def test_a_message_that_gets_another_value_is_computed_again(name, value):
    message = Mutable(content="said")
    computed, cache = counting()
    assert [cache.value(message) for _ in range(3)] == [1, 1, 1]
    setattr(message, name, value)
    assert [cache.value(message) for _ in range(3)] == [2, 2, 2]
    assert len(computed) == 2


@pytest.mark.parametrize("calls", [tuple, list])
def test_frozen_calls_are_computed_once(calls):
    call = ToolCall(name="look")
    message = Mutable("assistant", "said", calls([call]))
    _, cache = counting()
    assert [cache.value(message) for _ in range(3)] == [1, 1, 1]
    message.tool_calls = calls([call, ToolCall(name="look")])
    assert [cache.value(message) for _ in range(3)] == [2, 2, 2]


def test_a_list_of_frozen_calls_may_grow():
    message = Mutable("assistant", "said", [ToolCall(name="look")])
    _, cache = counting()
    assert [cache.value(message) for _ in range(2)] == [1, 1]
    message.tool_calls.append(ToolCall(name="look"))
    assert [cache.value(message) for _ in range(2)] == [2, 2]


@pytest.mark.parametrize(
    "message",
    [
        Mutable(content=[{"type": "text", "text": "said"}]),
        Mutable("assistant", None, [Call()]),
        Mutable("assistant", None, (Call(),)),
    ],
)
def test_what_may_change_in_place_is_not_kept(message):
    _, cache = counting()
    assert [cache.value(message) for _ in range(3)] == [1, 2, 3]


def test_managers_notice_a_change_in_place():
    messages = [Mutable(content=[{"type": "text", "text": "short"}]) for _ in range(10)]
    asked = []
    rolling = SummarizingManager(6, 2, lambda given: asked.append(given) or "a summary")
    window = SlidingWindowManager(None, max_tokens=300)
    rolling.apply(messages)
    assert window.apply(messages) == messages
    messages[0].content[0]["text"] = "edited"
    messages[7].content[0]["text"] = "long " * 3000
    rolling.apply(messages)
    assert len(asked) == 2
    assert count_tokens(window.apply(messages)) <= 300
