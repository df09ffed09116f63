from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.cli.conversations.transcripts import read_conversations
from locus_memory.inspection.errors import CommandError
from locus_memory.inspection.threads import write_messages
from locus_memory.messages import Message, ToolCall
from locus_memory.state import AgentState
from locus_memory.transfer.chats.openai import read_message, write_message

TEXT = st.text(max_size=8)
NAME = st.text(min_size=1, max_size=8)
VALUE = st.none() | st.booleans() | st.integers(-99, 99) | TEXT
OBJECT = st.dictionaries(TEXT, VALUE, max_size=3)
ARGUMENTS = OBJECT.map(json.dumps) | TEXT
CALL = st.builds(
    lambda identifier, name, arguments: {
        "id": identifier,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    },
    NAME,
    NAME,
    ARGUMENTS,
)
PART = st.fixed_dictionaries({"type": st.just("text"), "text": TEXT}) | st.just(
    {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
)
WIRE = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "developer", "user", "assistant", "tool", "function"])},
    optional={
        "content": TEXT | st.lists(PART, max_size=3),
        "name": TEXT,
        "id": TEXT,
        "tool_call_id": TEXT,
        "tool_calls": st.lists(CALL, min_size=1, max_size=2),
        "metadata": st.dictionaries(st.sampled_from(["a", "session"]), VALUE, min_size=1),
        "refusal": TEXT,
    },
)
MESSAGE = st.builds(
    Message,
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    content=st.none() | TEXT,
    tool_calls=st.lists(st.builds(ToolCall, id=NAME, name=NAME, arguments=OBJECT), max_size=2),
    tool_call_id=st.none() | NAME,
    name=st.none() | NAME,
    id=st.none() | NAME,
    metadata=OBJECT,
)


@pytest.mark.slow
@given(WIRE)
@settings(deadline=None, max_examples=300)
def test_what_is_read_is_written_again(wire):
    message = read_message(wire, "here")
    assert write_message(message) == wire
    assert Message.from_checkpoint(message).to_checkpoint() == message, "an AgentState holds it"


@pytest.mark.slow
@given(MESSAGE)
@settings(deadline=None, max_examples=300)
def test_what_is_written_is_read_again(message):
    document = message.to_checkpoint()
    assert read_message(write_message(document), "here") == document


@given(WIRE)
@settings(deadline=None, max_examples=50)
def test_bare_messages_have_no_id_and_no_metadata(wire):
    bare = write_message(read_message(wire, "here"), bare=True)
    assert bare == {name: v for name, v in wire.items() if name not in ("id", "metadata")}


MESSAGES = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]


def lines(*documents):
    return "\n".join(json.dumps(document) for document in documents)


@pytest.mark.parametrize(
    ("content", "threads"),
    [
        (json.dumps(MESSAGES), ["file"]),
        (json.dumps(MESSAGES[0]), ["file"]),
        (json.dumps({"messages": MESSAGES}), ["file"]),
        (json.dumps({"id": "x", "messages": MESSAGES}), ["x"]),
        (json.dumps([{"messages": MESSAGES}, {"id": "y", "messages": MESSAGES}]), ["file-1", "y"]),
        (json.dumps([MESSAGES, MESSAGES]), ["file-1", "file-2"]),
        (lines(*MESSAGES), ["file"]),
        (lines(*MESSAGES) + "\n\n", ["file"]),
        (lines({"messages": MESSAGES}, {"messages": MESSAGES}), ["file-1", "file-2"]),
        ("\ufeff" + json.dumps(MESSAGES), ["file"]),
        (json.dumps({"messages": MESSAGES}, indent=2), ["file"]),
    ],
)
def test_the_shapes_of_messages(content, threads):
    found = read_conversations(content.encode(), "dir/file.json")
    assert [conversation.thread_id for conversation in found] == threads
    assert all(c.messages == MESSAGES[: len(c.messages)] for c in found)


def sessions(**changes):
    turn = {"id": "D1:1", "speaker": "Bo", "text": "Hello."}
    document = {
        "id": "talk",
        "speakers": ["Ada", "Bo", "Cy"],
        "sessions": [{"date_time": "noon", "turns": [turn, {**turn, "speaker": "Ada"}]}],
    }
    return {**document, **changes}


def test_sessions():
    (found,) = read_conversations(json.dumps(sessions()).encode(), "f.json")
    assert found.thread_id == "talk"
    assert found.metadata == {"speakers": ["Ada", "Bo", "Cy"]}
    assert found.messages == [
        {
            "role": role,
            "content": "Hello.",
            "name": name,
            "id": "D1:1",
            "metadata": {"session": 1, "session_date": "noon"},
        }
        for role, name in (("assistant", "Bo"), ("user", "Ada"))
    ]
    state = {"run_id": "talk", "messages": found.messages, "metadata": found.metadata}
    assert AgentState.from_checkpoint(state).to_checkpoint() == state


TURN = {"speaker": "Bo", "text": "x"}
BAD = [
    (b"", "f: the file is empty"),
    (b" \n ", "f: the file is empty"),
    (b'{"a": "\xff"}', "f, line 1: not UTF-8"),
    (b"[\n1,\n\xe9]", "f: not UTF-8"),
    ("hello", "f: not JSON"),
    ('{"messages": [', "f: not JSON"),
    ('{"role": "user"}\n{"role": ', "f, line 2: not JSON"),
    ("hello", "it begins with 'hello'"),
    ("3", "f: saw a number; what can be read: chatgpt"),
    ("[3]", "f: saw a number"),
    ("[null]", "f: saw null"),
    ("{}", "f: saw an empty object"),
    ('{"a": 1, "b": 2}', "f: saw an object with 'a', 'b'"),
    ("[]", "f: the conversation has no messages"),
    ('{"messages": []}', "f: the conversation has no messages"),
    ('{"messages": {}}', "f: 'messages' is not a list"),
    (json.dumps([*MESSAGES, {"role": "robot"}]), "f, message 3: unknown role 'robot'"),
    (json.dumps([*MESSAGES, {"content": "x"}]), "f, message 3: 'role' is missing"),
    (json.dumps([*MESSAGES, 7]), "f, message 3: not an object"),
    (lines(*MESSAGES, {"role": "user", "content": 7}), "f, line 3: 'content' is neither"),
    (lines(*MESSAGES, {"role": "user", "name": 7}), "f, line 3: 'name' is not a string"),
    (json.dumps([{"role": "user", "metadata": 7}]), "f, message 1: 'metadata' is not an object"),
    (json.dumps([{"role": "user", "tool_calls": 7}]), "f, message 1: 'tool_calls' is not a list"),
    (json.dumps([{"role": "user", "tool_calls": [7]}]), "f, message 1: a tool call has no"),
    ('[{"role": "user", "n": ' + "[" * 250 + "]" * 250 + "}]", "f, message 1: "),
    (json.dumps([sessions(), sessions(sessions=3)]), "f, conversation 2: 'sessions' is not a list"),
    (json.dumps(sessions(speakers=None)), "f: 'speakers' is not a list"),
    (json.dumps(sessions(speakers=[1])), "f: 'speakers' is not a list of names"),
    (json.dumps(sessions(sessions=[])), "f: the conversation has no messages"),
    (json.dumps(sessions(sessions=[3])), "f, session 1: not an object"),
    (json.dumps(sessions(sessions=[{"turns": [TURN, {}]}])), "turn 2: 'speaker' is missing"),
    (json.dumps(sessions(sessions=[{"turns": [{**TURN, "speaker": "X"}]}])), "speaker 'X' is not"),
    (json.dumps(sessions(sessions=[{"turns": [{**TURN, "text": 3}]}])), "'text' is not a string"),
]


@pytest.mark.parametrize(("content", "says"), BAD)
def test_what_cannot_be_read_is_named(content, says):
    content = content if isinstance(content, bytes) else content.encode()
    with pytest.raises(CommandError, match=re.escape(says)):
        read_conversations(content, "f")


def test_only_messages_are_written():
    with pytest.raises(CommandError, match="message 2 is not a message"):
        write_messages([MESSAGES[0], {"text": "x"}])
