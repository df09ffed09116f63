"""Endpoints that answer with something else than the protocol says, anywhere in an answer."""

from __future__ import annotations

import copy
import json
from contextlib import suppress

import httpx
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.agent.loop import Agent
from locus_memory.chat.openai.model import OpenAIChat
from locus_memory.errors import ModelAnswerError, ModelError
from locus_memory.messages import Message

ASK = [Message.user("hi")]
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
HEAD = {"id": "x", "object": "chat.completion", "created": 1, "model": "m"}
USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
SAID = {"role": "assistant", "content": "Hello.", "refusal": None}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
ODD = [5, 0, True, 1.5, "x", ["x"], [5], [["x"]], {"x": 1}, [{"x": 1}]]


def whole(message):
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {**HEAD, "choices": [choice], "usage": USAGE}


def chunks(*deltas):
    head = {**HEAD, "object": "chat.completion.chunk"}
    made = [{**head, "choices": [{"index": 0, "delta": each}]} for each in deltas]
    return [*made, {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]


WHOLE = [whole(SAID), whole(CALLED)]
STREAMS = [
    chunks({"role": "assistant", "content": "Hel"}, {"content": "lo."}),
    chunks({"tool_calls": [{"index": 0, **CALL}]}),
]


def chat_over(body, content_type="application/json"):
    transport = httpx.MockTransport(
        lambda request: httpx.Response(200, headers={"content-type": content_type}, content=body)
    )
    client = openai.AsyncOpenAI(
        api_key="k",
        base_url="http://test/v1",
        max_retries=0,
        http_client=httpx.AsyncClient(transport=transport),
    )
    return OpenAIChat("m", client=client)


def places(document, path=()):
    """Yield the path of every value in a document."""
    yield path
    if isinstance(document, dict | list):
        inner = document.items() if isinstance(document, dict) else enumerate(document)
        for key, value in inner:
            yield from places(value, (*path, key))


def replaced(document, path, value):
    """Return a copy with another value at a path; `...` takes it away."""
    if not path:
        return value
    made = copy.deepcopy(document)
    holder = made
    for key in path[:-1]:
        holder = holder[key]
    if value is ...:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return made


async def answer(body):
    return await chat_over(json.dumps(body).encode())(ASK)


async def streamed(events):
    lines = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    chat = chat_over(f"{lines}data: [DONE]\n\n".encode(), "text/event-stream")
    *_, message = [piece async for piece in chat.stream(ASK)]
    return message


def is_storable(message):
    return Message.from_checkpoint(json.loads(json.dumps(message.to_checkpoint()))) == message


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("choices",), {}),
        (("choices",), "x"),
        (("choices",), ["x"]),
        (("choices", 0), "x"),
        (("choices", 0, "message"), "x"),
        (("choices", 0, "message"), ["x"]),
        (("choices", 0, "message"), {}),
        (("choices", 0, "message"), {"role": "assistant"}),
        (("choices", 0, "message", "content"), 5),
        (("choices", 0, "message", "content"), True),
        (("choices", 0, "message", "content"), {"text": "x"}),
        (("choices", 0, "message", "content"), ["x"]),
        (("choices", 0, "message", "content"), [{"type": "text", "text": 5}]),
        (("choices", 0, "message", "refusal"), 5),
        (("choices", 0, "message", "tool_calls"), "x"),
        (("choices", 0, "message", "tool_calls"), ["x"]),
        (("choices", 0, "message", "tool_calls"), {"x": 1}),
        (("choices", 0, "message", "tool_calls"), [None]),
        (("choices", 0, "message", "tool_calls"), [{**CALL, "function": "x"}]),
        (("choices", 0, "message", "tool_calls"), [{**CALL, "function": {"name": 5}}]),
        (
            ("choices", 0, "message"),
            {"content": None, "function_call": {"name": "add", "arguments": "{}"}},
        ),
    ],
)
async def test_what_is_no_answer_is_an_error(path, value):
    with pytest.raises(ModelAnswerError, match="model 'm': the endpoint answered with"):
        await answer(replaced(whole(SAID), path, value))


@pytest.mark.parametrize(
    "delta",
    [
        "x",
        ["x"],
        {"content": 5},
        {"content": ["x"]},
        {"refusal": 5},
        {"tool_calls": "x"},
        {"tool_calls": ["x"]},
        {"tool_calls": [{**CALL, "function": "x"}]},
        {"tool_calls": [{**CALL, "function": {"name": ["add"]}}]},
    ],
)
async def test_what_is_no_piece_of_an_answer_is_an_error(delta):
    with pytest.raises(ModelAnswerError, match="the endpoint answered with"):
        await streamed(chunks({"content": "Hel"}, delta, {"content": "lo."}))


@pytest.mark.parametrize("value", [{}, "x", 5, ["x"]])
async def test_choices_of_a_piece_that_are_none_are_an_error(value):
    events = [*chunks({"content": "Hel"})[:1], {**HEAD, "choices": value}, *chunks()]
    with pytest.raises(ModelAnswerError, match="the endpoint answered with"):
        await streamed(events)


@pytest.mark.slow
@pytest.mark.parametrize("body", WHOLE)
@given(st.data())
@settings(deadline=None, max_examples=150)
async def test_an_answer_that_is_odd_anywhere_is_whole_or_an_error(body, data):
    path = data.draw(st.sampled_from(list(places(body))))
    value = data.draw(st.sampled_from(ODD))
    try:
        found = await answer(replaced(body, path, value))
    except ModelError:
        return
    assert is_storable(found)
    # Nothing is lost: what there was is there, or what took its place.
    assert found.content or found.tool_calls
    if path[-1:] != ("content",) and found.content is not None and body is WHOLE[0]:
        assert found.content in ("Hello.", value)


@pytest.mark.slow
@pytest.mark.parametrize("body", WHOLE)
@given(st.data())
@settings(deadline=None, max_examples=80)
async def test_an_answer_that_lacks_anything_is_an_answer_or_an_error(body, data):
    path = data.draw(st.sampled_from(list(places(body))[1:]))
    value = data.draw(st.sampled_from([..., None, "", [], {}]))
    with suppress(ModelError):
        assert is_storable(await answer(replaced(body, path, value)))


@pytest.mark.slow
@pytest.mark.parametrize("events", STREAMS)
@given(st.data())
@settings(deadline=None, max_examples=200)
async def test_a_stream_that_is_odd_anywhere_is_an_answer_or_an_error(events, data):
    path = data.draw(st.sampled_from(list(places(events))[1:]))
    value = data.draw(st.sampled_from([*ODD, ..., None, "", [], {}]))
    with suppress(ModelError):
        assert is_storable(await streamed(replaced(events, path, value)))


@pytest.mark.slow
@given(st.data())
@settings(deadline=None, max_examples=60)
async def test_no_tool_runs_on_what_is_odd(data):
    ran = []

    def add(a: int) -> int:
        ran.append(a)
        return a

    path = data.draw(st.sampled_from(list(places(WHOLE[1]))))
    value = data.draw(st.sampled_from([*ODD, ...] if path else ODD))
    body = replaced(WHOLE[1], path, value)
    agent = Agent(chat_over(json.dumps(body).encode()), tools=[add], max_iterations=1)
    with suppress(ModelError):
        await agent.run("hi")
    # As JSON, `5` and `true` are no objects with an `a`.
    assert ran in ([], [1])
