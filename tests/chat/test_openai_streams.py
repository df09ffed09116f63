from __future__ import annotations

from itertools import pairwise

import pytest

from locus_memory.agent.loop import Agent
from locus_memory.chat.base import StreamingModel, ToolSpec
from locus_memory.errors import (
    ModelAnswerError,
    ModelError,
    ModelUnavailableError,
)
from locus_memory.messages import Message, ToolCall

ASK = [Message.user("Hi")]
ADD = ToolSpec("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}})
HALVES = ["a\\ud83d", "\\udc4bb", "\\udc4b", "\\ud83d"]


async def streamed(model, messages=ASK, tools=()):
    *pieces, message = [piece async for piece in model.stream(messages, tools=tools)]
    return pieces, message


class TestStreams:
    @pytest.mark.parametrize("size", [1, 3, 10_000])
    async def test_pieces_then_the_whole(self, endpoint, chat, wire, size):
        usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
        events = [
            wire.chunk(role="assistant", content=""),
            wire.chunk(content="Grüß "),
            wire.chunk(content="dich 👋"),
            wire.chunk("stop"),
            {**wire.chunk(), "choices": [], "usage": usage},
            "[DONE]",
        ]
        endpoint.add(wire.Reply(stream=events, size=size))
        pieces, message = await streamed(chat)
        assert pieces == ["Grüß ", "dich 👋"]
        assert message.content == "Grüß dich 👋"
        assert message.metadata == {"model": "tiny-1", "finish_reason": "stop", "usage": usage}
        assert isinstance(chat, StreamingModel)

    @pytest.mark.parametrize("cuts", [(), (1,), (5,), (2, 9), tuple(range(1, 14))])
    async def test_fragments_of_two_calls_woven_together(self, endpoint, chat, wire, cuts):
        one, two = '{"a": 1, "b":{}}', '{"a": "}{\\""}  '
        events = [
            wire.chunk(tool_calls=[wire.call("add", "", "c1", index=0)]),
            wire.chunk(tool_calls=[wire.call("add", "", "c2", index=1)]),
        ]
        ends = [0, *cuts, 100]
        for start, end in pairwise(ends):
            events += [
                wire.chunk(tool_calls=[{"index": n, "function": {"arguments": text[start:end]}}])
                for n, text in enumerate((one, two))
            ]
        endpoint.add(wire.Reply(stream=[*events, wire.chunk("tool_calls"), "[DONE]"]))
        pieces, message = await streamed(chat, tools=[ADD])
        assert pieces == []
        assert message.content is None
        assert message.tool_calls == (
            ToolCall(id="c1", name="add", arguments={"a": 1, "b": {}}),
            ToolCall(id="c2", name="add", arguments={"a": '}{"'}),
        )

    @pytest.mark.parametrize(
        "fragments",
        [
            pytest.param([[("c1", "add", '{"a":1}', 0), ("c2", "add", '{"a":2}', 1)]], id="whole"),
            pytest.param(
                [[("c1", "add", '{"a":1}', 0)], [("c2", "add", '{"a":2}', 0)]], id="one-index"
            ),
            pytest.param(
                [[("c1", "add", '{"a":1}', None)], [("c2", "add", '{"a":2}', None)]], id="no-index"
            ),
            pytest.param(
                [
                    [(None, "add", '{"a"', None)],
                    [(None, None, ":1}", None)],
                    [(None, "add", '{"a":2}', None)],
                ],
                id="no-index-no-id",
            ),
            pytest.param(
                [
                    [("c1", "add", '{"a"', 0)],
                    [("c1", "add", ":1}", 0)],
                    [("c2", "a", "", 1)],
                    [("c2", "dd", '{"a":2}', 1)],
                ],
                id="names-repeated-and-split",
            ),
            pytest.param(
                [[("c1", "add", {"a": 1}, 0)], [("c2", "add", {"a": 2}, 1)]], id="objects"
            ),
        ],
    )
    async def test_servers_that_are_sloppy(self, endpoint, chat, wire, fragments):
        events = [
            wire.chunk(
                tool_calls=[
                    {
                        "id": call_id,
                        "index": index,
                        "function": {"name": name, "arguments": arguments},
                    }
                    for call_id, name, arguments, index in group
                ]
            )
            for group in fragments
        ]
        endpoint.add(wire.Reply(stream=[*events, "[DONE]"]))
        _, message = await streamed(chat, tools=[ADD])
        assert [(each.name, each.arguments) for each in message.tool_calls] == [
            ("add", {"a": 1}),
            ("add", {"a": 2}),
        ]

    async def test_half_a_character_waits_for_the_other_half(self, endpoint, chat, wire):
        event = '{"choices":[{"index":0,"delta":{"content":"?"}}]}'
        events = [event.replace("?", text) for text in HALVES]
        endpoint.add(wire.Reply(stream=[*events, "[DONE]"]))
        pieces, message = await streamed(chat)
        assert pieces == ["a", "👋b", "\ufffd"]
        assert message.content == "a👋b\ufffd\ufffd"

    async def test_a_refusal_is_the_text(self, endpoint, chat, wire):
        events = [wire.chunk(refusal="I "), wire.chunk("stop", refusal="cannot.")]
        endpoint.add(wire.Reply(stream=events))
        pieces, message = await streamed(chat)
        assert (pieces, message.content) == (["I ", "cannot."], "I cannot.")
        assert message.metadata["refusal"] is True

    async def test_nothing_at_all(self, endpoint, chat, wire):
        endpoint.add(wire.Reply(stream=["[DONE]"]))
        with pytest.raises(ModelAnswerError, match="without a message"):
            await streamed(chat)

    @pytest.mark.parametrize(
        ("last", "error"),
        [
            ({"error": {"message": "out of memory"}}, "out of memory"),
            (None, "connection was lost|Connection error"),
            ("{not json", "not JSON"),
        ],
    )
    async def test_a_stream_that_breaks(self, endpoint, chat, wire, last, error):
        events = [wire.chunk(content="He"), *([] if last is None else [last])]
        endpoint.add(wire.Reply(stream=events, cut=last is None))
        stream = chat.stream(ASK)
        assert await anext(stream) == "He"
        with pytest.raises(ModelError, match=error):
            await anext(stream)

    @pytest.mark.parametrize("text", ["He", "data: [DONE]", "\ndata: [DONE]\n\n"])
    async def test_a_stream_that_just_ends_is_no_answer(self, endpoint, chat, wire, text):
        endpoint.add(wire.Reply(stream=[wire.chunk(content=text)]))
        stream = chat.stream(ASK)
        assert await anext(stream) == text
        with pytest.raises(ModelUnavailableError, match="ended before the answer did"):
            await anext(stream)

    @pytest.mark.parametrize("size", [1, 7, 10_000])
    @pytest.mark.parametrize("last", ["[DONE]", "finish"])
    async def test_either_sign_of_the_end_will_do(self, endpoint, chat, wire, last, size):
        end = wire.chunk("stop") if last == "finish" else last
        endpoint.add(wire.Reply(stream=[wire.chunk(content="Hi"), end], size=size))
        _, message = await streamed(chat)
        assert message.content == "Hi"

    async def test_a_run_whose_stream_just_ends_is_to_be_resumed(self, endpoint, chat, wire):
        endpoint.add(
            wire.Reply(stream=[wire.chunk(content="Half an ans")]),
            wire.Reply(wire.answer("A whole answer.")),
        )
        async with Agent(chat, checkpointer="memory") as agent:
            with pytest.raises(ModelUnavailableError):
                [event async for event in agent.stream("Hi", "t")]
            assert [m.content for m in (await agent.state("t")).messages] == ["Hi"]
            assert (await agent.resume("t")).text == "A whole answer."

    async def test_a_stream_left_early_is_closed(self, endpoint, chat, wire):
        endpoint.add(wire.Reply(stream=[wire.chunk(content="a")] * 1000), wire.Reply(wire.answer()))
        stream = chat.stream(ASK)
        assert await anext(stream) == "a"
        await stream.aclose()
        assert (await chat(ASK)).content == "Hello!"
