from __future__ import annotations

import pytest

from locus_memory.chat.base import StreamingModel, ToolSpec
from locus_memory.messages import Message, ToolCall
from locus_memory.testing.model import FakeModel, ScriptEndedError

TALK = [Message.user("hi")]
TOOL = ToolSpec("look", "Look.", {"type": "object"})


async def test_answers_come_in_order():
    message = Message.assistant(tool_calls=[ToolCall(name="look")])
    model = FakeModel(["one", message, lambda messages: f"{len(messages)} said"])
    assert model.remaining == 3
    assert (await model(TALK)).content == "one"
    assert await model(TALK, tools=[TOOL]) is message
    assert (await model([*TALK, *TALK])).content == "2 said"
    assert model.remaining == 0
    assert model.calls == [TALK, TALK, [*TALK, *TALK]]
    assert model.tools == [(), (TOOL,), ()]


async def test_functions_may_be_async_and_errors_are_raised():
    async def later(messages):
        return Message.assistant("later")

    model = FakeModel([later, lambda _: OSError("down"), TimeoutError("late")])
    assert (await model(TALK)).content == "later"
    with pytest.raises(OSError, match="down"):
        await model(TALK)
    with pytest.raises(TimeoutError, match="late"):
        await model(TALK)


async def test_the_end_of_the_script_is_an_assertion_that_says_so():
    model = FakeModel(["one"], name="small")
    await model(TALK)
    with pytest.raises(AssertionError, match="'small' was called 2 times, but its script has 1"):
        await model(TALK)
    with pytest.raises(ScriptEndedError):
        await FakeModel()(TALK)


@pytest.mark.parametrize("text", ["one two  three", "", " ", "word"])
async def test_streaming_gives_the_words_and_then_the_message(text):
    model = FakeModel([text])
    assert isinstance(model, StreamingModel)
    *words, message = [piece async for piece in model.stream(TALK, tools=[TOOL])]
    assert "".join(words) == text
    assert message == Message.assistant(text)
    assert (model.calls, model.tools) == ([TALK], [(TOOL,)])
