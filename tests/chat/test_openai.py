from __future__ import annotations

import asyncio
import subprocess
import sys

import openai
import pytest

from locus_memory.agent import Agent, TextDelta
from locus_memory.chat.base import INVALID_ARGUMENTS, ToolSpec
from locus_memory.chat.openai.errors import _class
from locus_memory.chat.openai.model import OpenAIChat
from locus_memory.errors import (
    ConfigurationError,
    ModelAnswerError,
    ModelError,
    ModelRequestError,
    ModelUnavailableError,
    UnknownOptionError,
)
from locus_memory.messages import Message, Role, ToolCall, ToolResult

ASK = [Message.user("Hi")]
ADD = ToolSpec("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}})


async def streamed(model, messages=ASK, tools=()):
    *pieces, message = [piece async for piece in model.stream(messages, tools=tools)]
    return pieces, message


class TestRequests:
    async def test_sends_only_what_the_api_takes(self, endpoint, chat, wire):
        endpoint.add(wire.Reply(wire.answer()))
        calls = [ToolCall(id="c1", name="add", arguments={"a": 1, "é": "ü"})]
        messages = [
            Message.system("Be brief."),
            Message(role=Role.USER, content="Add 1", name="Ada L", id="m1", metadata={"x": 1}),
            Message.assistant(tool_calls=calls),
            Message.tool(ToolResult(tool_call_id="c1", name="add", content="2")),
            Message.assistant(),
        ]
        await chat(messages, tools=[ADD])
        path, headers, body = endpoint.requests[0]
        assert path == "/v1/chat/completions"
        assert "not-needed" in headers["authorization"]
        assert body == {
            "model": "tiny",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Add 1", "name": "Ada_L"},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [wire.call("add", '{"a":1,"é":"ü"}', "c1")],
                },
                {"role": "tool", "content": "2", "tool_call_id": "c1"},
                {"role": "assistant", "content": ""},
            ],
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": "add",
                        "description": "Adds.",
                        "parameters": ADD.parameters,
                    },
                }
            ],
        }

    async def test_options_are_sent_where_they_are_allowed(self, endpoint, wire):
        endpoint.add(
            wire.Reply(wire.answer()), wire.Reply(stream=[wire.chunk("stop", content="Hi")])
        )
        options = {
            "temperature": 0.5,
            "extra_body": {"top_k": 3},
            "tool_choice": "auto",
            "stream_options": {"include_usage": True},
        }
        async with OpenAIChat("tiny", base_url=endpoint.url, **options) as model:
            await model(ASK)
            await streamed(model, tools=[ADD])
        plain, streaming = endpoint.bodies
        assert plain["temperature"] == 0.5
        assert plain["top_k"] == 3
        assert not {"tools", "tool_choice", "stream", "stream_options"} & set(plain)
        assert streaming["tool_choice"] == "auto"
        assert streaming["stream"] is True
        assert streaming["stream_options"] == {"include_usage": True}


class TestAnswers:
    async def test_text_and_what_the_endpoint_says_of_it(self, endpoint, chat, wire):
        endpoint.add(wire.Reply(wire.answer("Grüß dich 👋")))
        assert await chat(ASK) == Message(
            role=Role.ASSISTANT,
            content="Grüß dich 👋",
            metadata={
                "model": "tiny-1",
                "finish_reason": "stop",
                "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
            },
        )

    async def test_parallel_tool_calls(self, endpoint, chat, wire):
        calls = [wire.call("add", '{"a": 1}', "c1"), wire.call("add", '{"a": 2}', "c2")]
        endpoint.add(wire.Reply(wire.answer(None, "tool_calls", tool_calls=calls)))
        message = await chat(ASK, tools=[ADD])
        assert message.content is None
        assert message.tool_calls == (
            ToolCall(id="c1", name="add", arguments={"a": 1}),
            ToolCall(id="c2", name="add", arguments={"a": 2}),
        )

    @pytest.mark.parametrize(
        ("sent", "arguments"),
        [
            ("", {}),
            (None, {}),
            ("null", {}),
            ("  {}  ", {}),
            ({"a": 1}, {"a": 1}),
            ('"{\\"a\\": 1}"', {"a": 1}),
            ('{"a": "ü", "b": [1.5, null]}', {"a": "ü", "b": [1.5, None]}),
        ],
    )
    async def test_ways_to_send_arguments(self, endpoint, chat, wire, sent, arguments):
        endpoint.add(wire.Reply(wire.answer(None, tool_calls=[wire.call("add", sent)])))
        message = await chat(ASK, tools=[ADD])
        assert message.tool_calls[0].arguments == arguments
        assert INVALID_ARGUMENTS not in message.metadata

    @pytest.mark.parametrize(
        "sent",
        [
            '{"a": ',
            "[1]",
            "7",
            '"text"',
            '{"a": NaN}',
            '{"a": "\\ud800"}',
            '{"a": 123456789012345678901234567890}',
            "[" * 100_000,
        ],
    )
    async def test_arguments_that_are_no_object_are_said_to_be(self, endpoint, chat, wire, sent):
        calls = [wire.call("add", sent, "bad"), wire.call("add", '{"a": 1}', "good")]
        endpoint.add(wire.Reply(wire.answer(None, tool_calls=calls)))
        message = await chat(ASK, tools=[ADD])
        assert [each.arguments for each in message.tool_calls] == [{}, {"a": 1}]
        assert list(message.metadata[INVALID_ARGUMENTS]) == ["bad"]
        assert Message.from_checkpoint(message.to_checkpoint()) == message

    async def test_calls_without_ids_or_with_the_same_get_their_own(self, endpoint, chat, wire):
        ids = [None, "", "same", "same"]
        calls = [wire.call("add", "{}", each) for each in ids]
        endpoint.add(wire.Reply(wire.answer(None, tool_calls=calls)))
        message = await chat(ASK, tools=[ADD])
        found = [each.id for each in message.tool_calls]
        assert len(set(found)) == 4
        assert found[2] == "same"
        assert all(found)

    @pytest.mark.parametrize(
        ("said", "text"),
        [
            ({"content": None}, ""),
            ({"content": "", "tool_calls": []}, ""),
            ({"content": None, "refusal": "I cannot."}, "I cannot."),
            ({"content": [{"type": "text", "text": t} for t in ("In ", "parts")]}, "In parts"),
            ({"content": "half \ud83d"}, "half \ufffd"),
        ],
    )
    async def test_odd_contents_are_texts(self, endpoint, chat, wire, said, text):
        endpoint.add(wire.Reply(wire.answer(**said)))
        message = await chat(ASK)
        assert (message.content, message.tool_calls) == (text, ())
        assert message.metadata.get("refusal", False) is ("refusal" in said)

    @pytest.mark.parametrize(
        ("body", "why"),
        [
            ({"choices": []}, "without a message"),
            ({"choices": None}, "without a message"),
            ({"choices": [{"index": 0}]}, "without a message"),
            ({}, "without a message"),
            ({"error": {"message": "model is loading"}}, "model is loading"),
            ("a text", "without a message"),
            (b"<html>", "not JSON"),
        ],
    )
    async def test_what_is_no_answer(self, endpoint, chat, wire, body, why):
        endpoint.add(wire.Reply(body))
        with pytest.raises(ModelAnswerError, match=why):
            await chat(ASK)


def add(a: int) -> int:
    return a + 1


class TestAgents:
    async def test_a_run_with_tools_over_the_wire(self, endpoint, chat, wire):
        calls = [
            wire.call("add", '{"a": 1}', "c1", index=0),
            wire.call("add", '{"a": ', "c2", index=1),
        ]
        endpoint.add(
            wire.Reply(stream=[wire.chunk(tool_calls=calls), "[DONE]"]),
            wire.Reply(stream=[wire.chunk(content="It is "), wire.chunk("stop", content="two.")]),
        )
        agent = Agent(chat, tools=[add], checkpointer="memory", system_prompt="Be brief.")
        told = [event async for event in agent.stream("Add 1")]
        assert [e.text for e in told if isinstance(e, TextDelta)] == ["It is ", "two."]
        assert told[-1].result.text == "It is two."
        sent = endpoint.bodies[1]["messages"]
        assert [m["role"] for m in sent] == ["system", "user", "assistant", "tool", "tool"]
        assert {m["tool_call_id"]: m["content"][:24] for m in sent[3:]} == {
            "c1": "2",
            "c2": "Error: invalid arguments",
        }
        assert [c["function"]["arguments"] for c in sent[2]["tool_calls"]] == ['{"a":1}', "{}"]
        assert set().union(*sent) <= {"role", "content", "tool_calls", "tool_call_id"}


class TestErrors:
    async def test_overload_is_tried_again_by_the_client(self, endpoint, wire):
        busy = wire.Reply({"error": {"message": "slow down"}}, 429, {"retry-after-ms": "1"})
        endpoint.add(busy, wire.Reply({}, 500, {"retry-after-ms": "1"}), wire.Reply(wire.answer()))
        async with OpenAIChat("tiny", base_url=endpoint.url, max_retries=2) as model:
            assert (await model(ASK)).content == "Hello!"
        assert len(endpoint.requests) == 3

    @pytest.mark.parametrize(
        ("status", "error"),
        [
            (400, ModelRequestError),
            (401, ModelRequestError),
            (403, ModelRequestError),
            (404, ModelRequestError),
            (408, ModelUnavailableError),
            (409, ModelUnavailableError),
            (413, ModelRequestError),
            (422, ModelRequestError),
            (429, ModelUnavailableError),
            (500, ModelUnavailableError),
            (503, ModelUnavailableError),
        ],
    )
    async def test_statuses(self, endpoint, chat, wire, status, error):
        endpoint.add(*[wire.Reply({"error": {"message": "said\n so"}}, status)] * 2)
        for asked in (chat(ASK), streamed(chat)):
            with pytest.raises(error) as caught:
                await asked
            assert str(caught.value) == f"model 'tiny': HTTP {status}: said so"
            assert isinstance(caught.value.__cause__, openai.OpenAIError)

    @pytest.mark.parametrize(
        "body", [b"<html>gone</html>", {"detail": "gone"}, {"message": "gone"}]
    )
    async def test_the_words_of_other_servers(self, endpoint, chat, wire, body):
        endpoint.add(wire.Reply(body, 404))
        with pytest.raises(ModelRequestError, match=r"HTTP 404: .*gone"):
            await chat(ASK)

    async def test_nobody_there(self, endpoint):
        url = endpoint.url
        endpoint.socket.close()
        async with OpenAIChat("tiny", base_url=url, max_retries=0) as model:
            with pytest.raises(ModelUnavailableError, match="Connection error"):
                await model(ASK)

    async def test_no_answer_in_time(self, endpoint, wire):
        endpoint.add(wire.Reply(waits=True))
        async with OpenAIChat("t", base_url=endpoint.url, max_retries=0, timeout=0.05) as model:
            with pytest.raises(ModelUnavailableError, match="timed out"):
                await model(ASK)

    async def test_cancelling_leaves_the_client_usable(self, endpoint, chat, wire):
        endpoint.add(wire.Reply(waits=True), wire.Reply(wire.answer()))
        asking = asyncio.create_task(chat(ASK))
        await asyncio.to_thread(endpoint.asked.wait, 10)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert (await chat(ASK)).content == "Hello!"

    def test_every_error_of_the_client_has_a_place(self):
        found, left = [], [openai.OpenAIError]
        while left:
            found.append(left.pop())
            left += found[-1].__subclasses__()
        for kind in found:
            assert issubclass(_class(openai, kind.__new__(kind)), ModelError)
        assert len(found) > 10


class TestKeys:
    async def test_no_key_is_ever_told(self, endpoint, wire):
        key = "sk-very-secret"
        said = {"error": {"message": f"Incorrect API key: {key}"}}
        endpoint.add(wire.Reply(said, 401), wire.Reply(said))
        url = endpoint.url.replace("127", "ada:pass-word@127")
        async with OpenAIChat("tiny", base_url=url, api_key=key, max_retries=0) as model:
            for error in (ModelRequestError, ModelAnswerError):
                with pytest.raises(error, match=r"Incorrect API key: \*\*\*") as caught:
                    await model(ASK)
                assert caught.value.__cause__ is None
            assert repr(model) == f"OpenAIChat('tiny', base_url='{endpoint.url}/')"

    def test_openai_itself_needs_one(self, monkeypatch):
        for url in (None, "https://api.openai.com/v1", "https://eu.api.openai.com/v1"):
            with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
                OpenAIChat("gpt", base_url=url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
        assert OpenAIChat("gpt")._client.api_key == "sk-env"
        assert OpenAIChat("gpt", api_key="sk-mine")._client.api_key == "sk-mine"

    async def test_the_key_of_the_environment_goes_nowhere_else(self, endpoint, wire, monkeypatch):
        monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
        endpoint.add(*[wire.Reply(wire.answer())] * 2)
        async with OpenAIChat("tiny", base_url=endpoint.url) as model:
            await model(ASK)
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        async with OpenAIChat("tiny") as model:
            await model(ASK)
        sent = [headers["authorization"] for _, headers, _ in endpoint.requests]
        assert sent == ["Bearer not-needed", "Bearer sk-env"]


class TestMaking:
    async def test_a_client_given_is_used_and_not_closed(self, endpoint, wire):
        endpoint.add(wire.Reply(wire.answer()))
        async with openai.AsyncOpenAI(base_url=endpoint.url, api_key="k") as client:
            async with OpenAIChat("tiny", client=client) as model:
                pass
            assert (await model(ASK)).content == "Hello!"

    async def test_arguments_that_contradict(self):
        async with openai.AsyncOpenAI(api_key="k") as client:
            with pytest.raises(ConfigurationError, match="base_url, timeout"):
                OpenAIChat("tiny", client=client, base_url="http://localhost", timeout=3)
        with (
            openai.OpenAI(api_key="k") as client,
            pytest.raises(ConfigurationError, match="AsyncOpenAI"),
        ):
            OpenAIChat("tiny", client=client)

    @pytest.mark.parametrize("option", ["temprature", "messages", "stream"])
    def test_unknown_options_are_errors(self, option):
        with pytest.raises(UnknownOptionError, match=rf"unknown option '{option}'.* temperature,"):
            OpenAIChat("tiny", base_url="http://localhost", **{option: 1})

    @pytest.mark.parametrize(
        "url",
        ["nonsense", "localhost:11434/v1", "ftp://localhost", "http://", "http://[x", "", 7],
    )
    def test_an_address_that_is_none(self, url, monkeypatch):
        with pytest.raises(ConfigurationError, match="http://localhost:11434/v1"):
            OpenAIChat("tiny", base_url=url)
        if isinstance(url, str) and url:
            monkeypatch.setenv("OPENAI_BASE_URL", url)
            with pytest.raises(ConfigurationError, match="http://localhost:11434/v1"):
                OpenAIChat("tiny")

    @pytest.mark.parametrize("name", [None, "", 7])
    def test_a_model_without_a_name(self, name):
        with pytest.raises(ConfigurationError, match="name of a model"):
            OpenAIChat(name, base_url="http://localhost")

    async def test_closing_twice_is_harmless(self, endpoint):
        model = OpenAIChat("tiny", base_url=endpoint.url)
        await model.close()
        await model.close()

    @pytest.mark.slow
    def test_the_driver_is_imported_on_first_use(self):
        code = "import sys, locus_memory.chat.openai.model; sys.exit('openai' in sys.modules)"
        subprocess.run([sys.executable, "-c", code], check=True)
