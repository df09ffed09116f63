from __future__ import annotations

import json
from types import SimpleNamespace as Part

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.chat.base import INVALID_ARGUMENTS
from locus_memory.chat.openai.wire import StreamedAnswer, read_answer

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(st.text(), JSON, max_size=3)


def chunk(**delta):
    return Part(choices=[Part(delta=Part(**delta), finish_reason=None)])


def fragment(index, text, **first):
    name = first.get("name")
    return Part(index=index, id=first.get("id"), function=Part(name=name, arguments=text))


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(text=st.text(), calls=st.lists(ARGUMENTS, max_size=3), data=st.data())
def test_a_stream_is_put_together_to_what_was_cut(text, calls, data):
    """Text and calls, cut anywhere and woven together, are what one answer would have been."""
    raw = [json.dumps(arguments) for arguments in calls]
    whole = [
        Part(id=f"c{n}", function=Part(name="add", arguments=each)) for n, each in enumerate(raw)
    ]
    message = Part(content=text, tool_calls=whole)
    expected = read_answer(Part(choices=[Part(message=message, finish_reason=None)]))

    answer = StreamedAnswer()
    shown = answer.add(chunk(content="", tool_calls=None))
    for n in range(len(raw)):
        answer.add(chunk(tool_calls=[fragment(n, "", id=f"c{n}", name="add")]))
    left = [(None, text), *enumerate(raw)]
    while left:
        place = data.draw(st.integers(0, len(left) - 1))
        index, rest = left.pop(place)
        size = data.draw(st.integers(0, len(rest)))
        piece = {"content": rest[:size]}
        if index is not None:
            piece = {"tool_calls": [fragment(index, rest[:size])]}
        shown += answer.add(chunk(**piece))
        if size < len(rest):
            left.insert(place, (index, rest[size:]))

    assert answer.message(done=True) == expected
    assert shown == (expected.content or "")
    assert [call.arguments for call in expected.tool_calls] == calls
    assert INVALID_ARGUMENTS not in expected.metadata


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(raw=st.text() | JSON)
def test_no_arguments_make_an_invalid_message(raw):
    """Whatever a server sends as arguments, the call is a call, and what is wrong is said."""
    message = Part(content=None, tool_calls=[Part(id="c", function=Part(name="f", arguments=raw))])
    answer = read_answer(Part(choices=[Part(message=message)]))
    assert type(answer).from_checkpoint(json.loads(json.dumps(answer.to_checkpoint()))) == answer
    (call,) = answer.tool_calls
    assert call.arguments == {} or INVALID_ARGUMENTS not in answer.metadata
