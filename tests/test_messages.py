from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from locus_memory.errors import InvalidMessageError
from locus_memory.messages import Message, Role, ToolCall, ToolResult, written_of
from locus_memory.store.json_values import decode_json, encode_json
from locus_memory.testing.store_suite.base import json_objects

text = st.text(max_size=20)
tool_calls = st.builds(ToolCall, id=text, name=text, arguments=json_objects)
messages = st.builds(
    Message,
    role=st.sampled_from(Role),
    content=st.none() | text,
    tool_calls=st.lists(tool_calls, max_size=2).map(tuple),
    tool_call_id=st.none() | text,
    name=st.none() | text,
    id=st.none() | text,
    metadata=json_objects,
)
quick = settings(deadline=None, max_examples=100)


@pytest.mark.slow
@quick
@given(messages)
def test_a_message_round_trips(message):
    document = message.to_checkpoint()
    assert decode_json(encode_json(document)) == document
    assert Message.from_checkpoint(document) == message
    assert Message.from_checkpoint(document).to_checkpoint() == document


def test_a_checkpoint_leaves_out_defaults():
    assert Message.user("hello").to_checkpoint() == {"role": "user", "content": "hello"}


def test_a_message_is_serialised_once():
    message = Message.user("hello")
    assert written_of(message).document is written_of(message).document


@pytest.mark.parametrize("deep", [False, True])
def test_a_copy_forgets_the_serialised_form(deep):
    message = Message.user("old")
    old = written_of(message).document
    assert message.model_copy(update={"content": "new"}, deep=deep).to_checkpoint() == {
        "role": "user",
        "content": "new",
    }
    assert written_of(message).document is old
    assert message.model_copy(deep=deep).to_checkpoint() == old


def test_equality_does_not_see_the_serialised_form():
    one, other = Message.user("hello"), Message.user("hello")
    one.to_checkpoint()
    assert one == other
    assert one.model_dump() == other.model_dump()


def test_constructors():
    call = ToolCall(name="search", arguments={"q": "fox"})
    assert Message.system("be brief").role is Role.SYSTEM
    assert Message.assistant("hi") == Message(role=Role.ASSISTANT, content="hi")
    assert Message.assistant(tool_calls=[call]).tool_calls == (call,)
    assert call.id.startswith("call_")
    assert call.id != ToolCall(name="search").id


def test_a_tool_message_carries_its_result():
    good = ToolResult(tool_call_id="c1", name="search", content="a fox", duration_ms=1.5)
    bad = ToolResult(tool_call_id="c2", name="search", error="timed out")
    assert (good.success, bad.success) == (True, False)
    assert Message.tool(good).to_checkpoint() == {
        "role": "tool",
        "content": "a fox",
        "tool_call_id": "c1",
        "name": "search",
    }
    assert Message.tool(bad).content == "Error: timed out"
    both = ToolResult(tool_call_id="c3", name="search", content="partial", error="timed out")
    assert Message.tool(both).content == "partial"


def test_the_openai_format():
    call = ToolCall(id="c1", name="search", arguments={"q": "Zoë", "n": 3})
    wire = Message.assistant(tool_calls=[call]).to_openai_format()
    assert json.loads(wire["tool_calls"][0]["function"].pop("arguments")) == {"q": "Zoë", "n": 3}
    assert wire == {
        "role": "assistant",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "search"}}],
    }
    result = Message.tool(ToolResult(tool_call_id="c1", name="search", content="a fox"))
    assert result.to_openai_format() == {
        "role": "tool",
        "content": "a fox",
        "tool_call_id": "c1",
        "name": "search",
    }
    noted = Message(role=Role.USER, content="hi", name="ada", id="m1", metadata={"secret": 1})
    assert noted.to_openai_format() == {"role": "user", "content": "hi", "name": "ada"}
    assert Message.assistant("").to_openai_format() == {"role": "assistant", "content": ""}


@pytest.mark.parametrize(
    "document",
    [{}, {"role": "robot"}, {"role": "user", "extra": 1}, {"role": "user", "content": 5}],
    ids=repr,
)
def test_what_is_no_message_is_refused(document):
    with pytest.raises(ValidationError):
        Message.from_checkpoint(document)


def test_a_message_is_frozen():
    message = Message.user("hello")
    with pytest.raises(ValidationError):
        message.content = "changed"


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
@pytest.mark.parametrize("content", [5, b"hi", ["hi"], {"text": "hi"}, True])
def test_a_content_that_is_no_text_is_refused_with_the_remedy(role, content):
    with pytest.raises(InvalidMessageError, match=rf'Message\.{role}\("\.\.\."\)') as raised:
        getattr(Message, role)(content)
    assert isinstance(raised.value, TypeError)


@pytest.mark.parametrize("role", ["system", "user"])
def test_only_an_assistant_may_say_nothing(role):
    with pytest.raises(InvalidMessageError, match="not NoneType"):
        getattr(Message, role)(None)
    assert Message.assistant(None).content is None


@pytest.mark.parametrize("calls", [5, "x", ToolCall(name="look"), {"name": "look"}, None])
def test_tool_calls_that_are_no_list_are_refused(calls):
    with pytest.raises(InvalidMessageError, match="tool_calls is a list of ToolCall"):
        Message.assistant("hi", calls)


@pytest.mark.parametrize("result", [5, "done", None, {"content": "done"}])
def test_what_is_no_result_of_a_tool_is_refused(result):
    with pytest.raises(InvalidMessageError, match="needs a ToolResult"):
        Message.tool(result)
