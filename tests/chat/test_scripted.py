from __future__ import annotations

import pytest

from locus_memory.chat.base import StreamingModel, ToolSpec
from locus_memory.chat.scripted import ScriptedModel
from locus_memory.memory.inject import inject, render_block
from locus_memory.memory.models import Memory
from locus_memory.messages import Message, ToolCall, ToolResult

MEMORIES = [
    Memory("user", "home", "The user lives in Vienna.", {"valid_from": "2026-03-01T10:00:00Z"}),
    Memory("feedback", "tone", "The user likes short answers."),
    Memory("user", "name", "The user's name is Ada."),
]
TOOLS = [ToolSpec(name, "", {"type": "object"}) for name in ("add", "send-mail")]


async def say(*texts, memories=(), tools=TOOLS):
    """Return the answer to the last of the texts; the others are a conversation before it."""
    messages = [Message.system("Be brief.")]
    for text in texts:
        messages += [Message.user(text), Message.assistant("Noted.")]
    return await ScriptedModel()(inject(messages[:-1], render_block(list(memories))), tools=tools)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Where do I live?", "I remember: The user lives in Vienna."),
        ("tell me what answers I like", "I remember: The user likes short answers."),
        ("What is my name?", "I remember: The user's name is Ada."),
        ("Which shoe size do I have?", "I do not know."),
        ("What?", "I do not know."),
        ("hello", "Hello! What can I do for you?"),
        ("Good morning!", "Hello! What can I do for you?"),
        ("", "Hello! What can I do for you?"),
        ("I have a cat.", "Noted."),
        ("use sub with a=1", "Noted."),
    ],
)
async def test_answers_from_memories(question, answer):
    assert (await say(question, memories=MEMORIES)).content == answer


async def test_what_is_known():
    for question in ("What do you know about me?", "Do you remember anything about me?"):
        assert (await say(question)).content == "I know nothing about you yet."
        told = (await say(question, memories=MEMORIES)).content
        assert told.splitlines() == ["I remember:", *(f"- {m.content}" for m in MEMORIES)]


async def test_what_was_said_comes_before_memories_and_the_newest_first():
    said = ["I live in Graz.", "No, I live in Linz.", "Where do I live?"]
    answer = await say(*said, "So where do I live?", memories=MEMORIES)
    assert answer.content == "You said: No, I live in Linz."


async def test_calls_tools():
    answer = await say("use add with a=1, b=2")
    assert [(c.name, c.arguments) for c in answer.tool_calls] == [("add", {"a": 1, "b": 2})]
    answer = await say('Please use add with list=[1, 2], n=NaN, s="x, y" and use send-mail.')
    assert [(c.name, c.arguments) for c in answer.tool_calls] == [
        ("add", {"list": [1, 2], "n": "NaN", "s": "x, y"}),
        ("send-mail", {}),
    ]
    assert (await say("use add with a=1", tools=())).content == "Noted."


async def test_reports_what_the_tools_said():
    calls = [ToolCall(id="1", name="add"), ToolCall(id="2", name="add")]
    results = [ToolResult(tool_call_id=call.id, name="add", content=call.id) for call in calls]
    messages = [Message.user("use add"), Message.assistant(tool_calls=calls)]
    answer = await ScriptedModel()([*messages, *map(Message.tool, results)])
    assert answer.content == "add: 1\nadd: 2"


async def test_the_script_comes_first():
    model = ScriptedModel(["One.", Message.assistant("Two.")])
    answers = [(await model([Message.user("Hello")])).content for _ in range(3)]
    assert answers == ["One.", "Two.", "Hello! What can I do for you?"]


@pytest.mark.parametrize("text", ["Two words.", " a  b\nc ", "", "\n"])
async def test_streams_word_by_word(text):
    model = ScriptedModel([text])
    assert isinstance(model, StreamingModel)
    *pieces, message = [piece async for piece in model.stream([Message.user("Hello")])]
    assert "".join(pieces) == message.content == text
    assert all(len(piece.split()) <= 1 for piece in pieces)


async def test_a_conversation_of_nothing():
    assert (await ScriptedModel()([])).content == "Hello! What can I do for you?"
