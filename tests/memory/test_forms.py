"""Messages and states of other libraries, which managers take as their own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory import AgentState, LLMMemoryManager, Message, NoopMemoryManager, ToolCall
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.forms import read_messages, write_messages
from locus_memory.memory.inject import inject
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.memory.providers.manager import ProviderManager

HOME, ANSWER, RESULT = "I live in Lisbon.", "Noted.", "It is sunny."
EXPECTED = [("user", HOME), ("assistant", ""), ("tool", RESULT), ("assistant", ANSWER)]


def langchain():
    messages = pytest.importorskip("langchain_core.messages")
    call = {"name": "weather", "args": {"city": "Lisbon"}, "id": "c1"}
    return [
        messages.HumanMessage([{"type": "text", "text": HOME}]),
        messages.AIMessage("", tool_calls=[call]),
        messages.ToolMessage(RESULT, tool_call_id="c1"),
        messages.AIMessageChunk(ANSWER),
    ]


def langchain_dicts():
    messages = pytest.importorskip("langchain_core.messages")
    return messages.messages_to_dict(langchain())


def openai():
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    return [
        {"role": "user", "content": [{"type": "text", "text": HOME}]},
        {"role": "assistant", "content": None, "tool_calls": [call], "refusal": None},
        {"role": "tool", "content": RESULT, "tool_call_id": "c1"},
        {"role": "assistant", "content": ANSWER, "annotations": []},
    ]


def openai_objects():
    chat = pytest.importorskip("openai.types.chat")
    said = openai()
    return [
        each if each["role"] != "assistant" else chat.ChatCompletionMessage.model_validate(each)
        for each in said
    ]


def openai_items():
    return [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": HOME}]},
        {"type": "reasoning", "id": "r1", "summary": []},
        {"type": "function_call", "name": "weather", "call_id": "c1", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": RESULT},
        {"type": "message", "role": "assistant", "content": [{"type": "text", "text": ANSWER}]},
    ]


def anthropic():
    use = {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Lisbon"}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": RESULT}
    return [
        {"role": "user", "content": HOME},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": [{"type": "text", "text": ANSWER}]},
    ]


def anthropic_objects():
    types = pytest.importorskip("anthropic.types")
    beside = {"id": "m", "type": "message", "model": "m", "stop_reason": None}
    usage = {"input_tokens": 1, "output_tokens": 1}
    return [
        types.Message.model_validate({**each, **beside, "usage": usage})
        if each["role"] == "assistant"
        else each
        for each in anthropic()
    ]


def pydantic_ai():
    ai = pytest.importorskip("pydantic_ai.messages")
    return [
        ai.ModelRequest([ai.UserPromptPart(HOME)], instructions="Be brief."),
        ai.ModelResponse([ai.ThinkingPart("Hm."), ai.ToolCallPart("weather", {}, "c1")]),
        ai.ModelRequest([ai.ToolReturnPart("weather", RESULT, "c1")]),
        ai.ModelResponse([ai.TextPart(ANSWER)]),
    ]


def pydantic_ai_dicts():
    ai = pytest.importorskip("pydantic_ai.messages")
    return ai.ModelMessagesTypeAdapter.dump_python(pydantic_ai())


def pairs():
    call = Message.assistant(tool_calls=[ToolCall(id="c1", name="weather")])
    result = {"role": "tool", "content": RESULT, "tool_call_id": "c1"}
    return [HOME, call, result, ("ai", ANSWER)]


FORMS = [
    langchain,
    langchain_dicts,
    openai,
    pytest.param(openai_objects, marks=pytest.mark.slow),
    openai_items,
    anthropic,
    pytest.param(anthropic_objects, marks=pytest.mark.slow),
    pydantic_ai,
    pydantic_ai_dicts,
    pairs,
]


@pytest.fixture(params=FORMS, ids=lambda form: form.__name__)
def said(request):
    return request.param()


@pytest.fixture
async def manager():
    async with LLMMemoryManager("memory", extract_mode="inline") as opened:
        yield opened


def test_every_form_is_read(said):
    found = read_messages(said)
    assert [(each.role, each.content or "") for each in found] == EXPECTED
    assert [call.name for each in found for call in each.tool_calls or ()] == ["weather"]
    assert found[1].tool_calls[0].id == found[2].tool_call_id == "c1"


def test_what_did_not_change_is_written_as_it_was(said):
    assert all(a is b for a, b in zip(write_messages(read_messages(said)), said, strict=True))


async def test_add_takes_every_form(said, manager):
    assert await manager.add(said, user_id="ada") == len(EXPECTED)
    ada = manager.for_user("ada")
    assert [each.content for each in await ada.retrieve()] == ["The user lives in Lisbon."]
    assert await manager.add({"messages": said}, user_id="bob") == len(EXPECTED)
    assert len(await manager.extract(said)) == 1


async def test_a_state_of_every_form_is_remembered_and_shown(said, manager):
    await manager.on_session_end({"messages": said, "user_id": "ada", "thread_id": "1"})
    question = read_messages(said[:1])[0].model_copy(update={"content": "Where do I live?"})
    state = {"messages": write_messages([question]), "user_id": "ada", "thread_id": "2", "more": 1}
    seen = await manager.on_session_start(state)
    assert {**seen, "messages": state["messages"]} == state
    told = read_messages(seen["messages"])
    [request] = [each for each in told if each.role == "user"]
    assert request.content.endswith("Where do I live?")
    told = [each.content for each in told if each.role == "system"]
    told += [getattr(each, "instructions", None) or "" for each in seen["messages"]]
    told += [each.get("instructions") or "" for each in seen["messages"] if isinstance(each, dict)]
    assert "Lisbon" in "".join(told)
    nobody = await manager.on_session_start({"messages": state["messages"]})
    assert nobody == {"messages": state["messages"]}


async def test_a_list_and_an_object_are_states_too(manager):
    @dataclass
    class Graph:
        messages: list[Any] = field(default_factory=list)
        metadata: dict[str, Any] = field(default_factory=dict)

    await manager.on_session_end(openai())
    seen = await manager.on_session_start([{"role": "user", "content": "Where do I live?"}])
    assert [each["role"] for each in seen] == ["system", "user"]
    graph = Graph([{"role": "user", "content": "Hello."}], {"thread_id": "2"})
    seen = await manager.on_session_start(graph)
    assert "Lisbon" in seen.messages[0]["content"]
    assert graph.messages == [{"role": "user", "content": "Hello."}]


@pytest.mark.parametrize("marked", [{"remember": False}, {"metadata": {"remember": False}}])
async def test_what_is_off_the_record_is_not_kept(marked, manager):
    state = {"messages": openai(), **marked}
    await manager.on_session_end(state)
    assert await manager.add(state) == 0
    marked = [{**each, "metadata": {"remember": False}} for each in openai()]
    assert await manager.add(marked) == 0
    assert await manager.retrieve() == []


@pytest.mark.parametrize("state", [{"text": "Hello."}, "Hello.", None, {"messages": "Hello."}])
async def test_what_is_no_state_is_an_error(state, manager):
    managers = manager, NoopMemoryManager()
    for each in managers:
        with pytest.raises(InvalidArgumentError, match="a state has messages"):
            await each.on_session_start(state)
        with pytest.raises(InvalidArgumentError, match="a state has messages"):
            await each.on_session_end(state)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "nobody", "content": "Hi"},
        {"role": ["user"], "content": "Hi"},
        {"role": "user", "content": 7},
        {"text": "Hi"},
        {"type": "unknown"},
        ("a",),
        7,
    ],
)
async def test_what_is_no_message_is_an_error(message, manager):
    with pytest.raises(InvalidArgumentError, match=r"messages\[1\]"):
        await manager.add([HOME, message])
    assert await manager.retrieve() == []


async def test_a_provider_is_told_in_its_own_messages():
    told = []

    class Provider:
        async def prefetch(self, query, *, session_id=""):
            return f"{session_id}: {query}"

        async def on_session_end(self, messages):
            told.extend(messages)

    async with ProviderManager(Provider()) as manager:
        state = {"messages": openai(), "thread_id": "1"}
        seen = await manager.on_session_start(state)
        assert f"1: {HOME}" in seen["messages"][0]["content"]
        await manager.on_session_end(state)
    assert [(each.role, each.content) for each in told] == EXPECTED


def test_parts_beside_the_text_stay_where_they_are():
    image = {"type": "image", "source": {"type": "url", "url": "https://example.org/nuts.png"}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": RESULT}
    text = {"type": "text", "text": "May I eat nuts?", "cache_control": {"type": "ephemeral"}}
    read = read_messages([{"role": "user", "content": [result, text, image]}])
    [shown] = write_messages(inject(read, "<memory>\n</memory>", "user"))
    [first, told, last] = shown["content"]
    assert (first, last) == (result, image)
    assert told["text"] == "<memory>\n</memory>\n\nMay I eat nuts?"
    assert told["cache_control"] == text["cache_control"]


async def test_the_blocks_of_an_earlier_run_are_replaced(manager):
    await manager.save([Memory(MemoryType.USER, "diet", "Ada eats no nuts.")])
    state = AgentState(metadata={"thread_id": "1"})
    first = await manager.on_session_start({"messages": [("user", "Nuts?")], "thread_id": "1"})
    again = await manager.on_session_start({**first, "thread_id": "1"})
    assert again == first
    assert state == await NoopMemoryManager().on_session_start(state)


TEXTS = st.text(max_size=20)
PARTS = st.lists(
    st.one_of(
        st.builds(lambda text: {"type": "text", "text": text}, TEXTS),
        st.just({"type": "image", "source": {}}),
    ),
    max_size=4,
)


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.sampled_from(["user", "assistant"]), TEXTS | PARTS), max_size=5), TEXTS
)
def test_a_text_that_changes_is_all_that_changes(said, text):
    messages = [{"role": role, "content": content} for role, content in said]
    read = read_messages(messages)
    changed = [each.model_copy(update={"content": text or "!"}) for each in read[-1:]]
    found = write_messages([*read[:-1], *changed])
    assert found[:-1] == messages[:-1]
    assert [each.content for each in read_messages(found)[-1:]] == [text or "!"] * len(changed)


@pytest.mark.parametrize("metadata", [None, {}, {"user_id": None}, {"thread_id": "t"}, ["x"]])
async def test_the_user_of_a_dict_is_never_lost(metadata):
    state = {"messages": [("user", "I live in Vienna.")], "user_id": "ada", "metadata": metadata}
    async with LLMMemoryManager("memory") as manager:
        await manager.on_session_end(state)
        await manager.add({**state, "thread_id": "u"})
        assert await manager.retrieve() == []
        assert [m.content for m in await manager.for_user("ada").retrieve()] == [
            "The user lives in Vienna."
        ]
        assert await manager.add({**state, "thread_id": "u"}) == 0
