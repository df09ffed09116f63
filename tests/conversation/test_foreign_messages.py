"""The managers over another framework's messages: frozen pydantic models of its own."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from locus_memory.conversation.base import NullManager
from locus_memory.conversation.summary.manager import SummarizingManager
from locus_memory.conversation.summary.text import is_summary
from locus_memory.conversation.tokens import count_tokens
from locus_memory.conversation.validation import CUT_OFF, repair, validate
from locus_memory.conversation.window import SlidingWindowManager


class Speaker(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Call(BaseModel):
    model_config = ConfigDict(frozen=True)

    id: str
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class Foreign(BaseModel):
    model_config = ConfigDict(frozen=True)

    role: Speaker
    content: str | None = None
    tool_calls: list[Call] = Field(default_factory=list)
    tool_call_id: str | None = None
    name: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)


def conversation(turns):
    messages = [Foreign(role="system", content="be brief")]
    for number in range(turns):
        calls = [Call(id=f"c{number}", name="look"), Call(id=f"d{number}", name="look")]
        messages += [
            Foreign(role="user", content=f"question {number}"),
            Foreign(role="assistant", tool_calls=calls),
            Foreign(role="tool", content="seen", tool_call_id=f"d{number}", name="look"),
            Foreign(role="tool", content="seen", tool_call_id=f"c{number}", name="look"),
            Foreign(role="assistant", content=f"answer {number}"),
        ]
    return messages


@pytest.mark.parametrize(
    "manager",
    [
        NullManager(),
        SlidingWindowManager(7),
        SlidingWindowManager(None, max_tokens=150),
        SummarizingManager(12, 6, lambda asked: f"{len(asked)} messages"),
        SummarizingManager(12, 6, max_tokens=400),
    ],
    ids=repr,
)
async def test_every_manager(manager):
    messages = conversation(12)
    shown = manager.apply(messages)
    assert all(isinstance(message, Foreign) for message in shown)
    assert shown[0] is messages[0]
    assert shown[-1] is messages[-1]
    assert validate(shown) == []
    assert await manager.async_apply(tuple(messages)) == shown


def test_what_is_made_is_of_their_class():
    messages = conversation(3)
    del messages[3]
    repaired = repair(messages)
    made = Foreign(role="tool", content=CUT_OFF, tool_call_id="d0", name="look")
    assert repaired[4] == made
    assert isinstance(repaired[4].role, Speaker)
    manager = SummarizingManager(5, 2, lambda asked: "what they said")
    [summary] = [message for message in manager.apply(messages) if is_summary(message)]
    assert type(summary) is Foreign
    assert summary.role is Speaker.SYSTEM
    assert "what they said" in summary.content


def test_renamed_calls_keep_their_classes():
    twice = [*conversation(1), *conversation(1)[1:]]
    repaired = repair(twice)
    assert validate(repaired) == []
    assert repaired[7].tool_calls == [Call(id="c0_2", name="look"), Call(id="d0_2", name="look")]
    assert type(repaired[7]) is Foreign


@dataclass(frozen=True)
class PlainCall:
    id: str
    name: str = "look"
    arguments: str = "{}"


@dataclass(frozen=True)
class Plain:
    role: str
    content: str | None = None
    tool_calls: tuple[PlainCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    metadata: dict[str, Any] | None = None


def test_dataclasses_will_do():
    turn = [Plain("user", "go"), Plain("assistant", None, (PlainCall("a"),))]
    messages = [*turn, Plain("tool", "seen", tool_call_id="a"), *turn]
    repaired = repair(messages)
    assert validate(repaired) == []
    assert repaired[4] == Plain("assistant", None, (PlainCall("a_2"),))
    assert repaired[5] == Plain("tool", CUT_OFF, tool_call_id="a_2", name="look")
    shown = SummarizingManager(2, 1, max_tokens=500).apply(messages)
    assert isinstance(shown[0], Plain)
    assert is_summary(shown[0])


def test_counting():
    assert count_tokens(conversation(1), len) > 100
