"""Whatever the graph's owner changes in place is saved as it is, and never comes back changed."""

from __future__ import annotations

import copy
from typing import Annotated, Any, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages

from locus_memory import open_backend
from locus_memory.integrations.langgraph import LocusSaver
from locus_memory.integrations.langgraph.checkpoints.known import encode_channels
from locus_memory.integrations.langgraph.checkpoints.serializer import StrictSerializer

SERIALIZERS = [StrictSerializer(), JsonPlusSerializer()]
"""The library's own, and one whose bytes are remembered, since they may differ each time."""

MESSAGES = 300
PLACE = {"thread_id": "ada", "checkpoint_ns": ""}

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.sampled_from([0.0, -0.0, 1.0, "", "a", b"a", bytearray(b"a")]),
)
PLAIN = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=6,
)


def messages():
    return st.one_of(
        st.builds(HumanMessage, st.sampled_from(["hi", "ho"]), id=st.just("1")),
        st.builds(
            AIMessage,
            st.just("hi"),
            additional_kwargs=st.dictionaries(st.sampled_from("abc"), PLAIN),
            tool_calls=st.lists(
                st.builds(lambda value: {"name": "t", "args": {"a": value}, "id": "1"}, PLAIN)
            ),
        ),
        st.builds(ToolMessage, st.just("hi"), tool_call_id=st.just("1"), artifact=PLAIN),
        st.builds(Document, st.just("hi"), metadata=st.dictionaries(st.sampled_from("abc"), PLAIN)),
    )


CHANNELS = st.dictionaries(
    st.sampled_from(["messages", "notes", "scratch"]),
    st.lists(messages() | PLAIN, max_size=6) | PLAIN | messages(),
)


def containers(value):
    """Yield everything inside a value that can be changed in place, and stay what it is."""
    if isinstance(value, dict | list):
        yield value
        for part in value.values() if isinstance(value, dict) else value:
            yield from containers(part)
    elif hasattr(value, "model_fields_set"):
        yield value
        for name in ("additional_kwargs", "artifact", "metadata"):
            yield from containers(getattr(value, name, None))
        for call in getattr(value, "tool_calls", ()):
            yield from containers(call["args"])


def change(container, value, choice):
    """Set, add or remove something, as the choice has it."""
    if isinstance(container, dict):
        container["abc"[choice % 3]] = value
    elif not isinstance(container, list):
        name = "content" if hasattr(container, "content") else "page_content"
        setattr(container, name, repr(value))
    elif container and choice % 3:
        container[choice % len(container)] = value
    elif container and choice % 2:
        container.pop()
    else:
        container.insert(choice % (len(container) + 1), value)


@pytest.mark.slow
@pytest.mark.parametrize("serde", SERIALIZERS)
@given(CHANNELS, st.lists(st.tuples(st.integers(0, 99), PLAIN), min_size=1, max_size=4))
def test_any_change_in_place_is_encoded(serde, channels, changes):
    values, typed = encode_channels(serde, channels, {})
    stored = copy.deepcopy(values)
    for choice, value in changes:
        inside = [each for channel in channels.values() for each in containers(channel)]
        if inside:
            change(inside[choice % len(inside)], value, choice)
    again, _ = encode_channels(serde, channels, typed)
    assert again == encode_channels(serde, channels, {})[0]
    # What was stored before is not touched by the change.
    assert values == stored


@pytest.mark.parametrize("serde", SERIALIZERS)
@pytest.mark.parametrize("pair", [(1, True), (1, 1.0), (0.0, -0.0), ("a", b"a"), ({"a": 1}, {})])
def test_what_compares_equal_or_nearly_so_is_told_apart(pair, serde):
    channels = {"log": [{"value": pair[0]}], "one": pair[0]}
    values, typed = encode_channels(serde, channels, {})
    channels["log"][0]["value"] = channels["one"] = pair[1]
    again, _ = encode_channels(serde, channels, typed)
    assert again == encode_channels(serde, channels, {})[0]
    assert again["log"] != values["log"]
    assert again["one"] != values["one"]


@pytest.mark.parametrize("serde", SERIALIZERS)
@pytest.mark.parametrize(
    "held",
    [
        lambda data: [data],
        lambda data: ["a", data, b"b"],
        lambda data: {"said": HumanMessage("hi", id="1"), "data": data},
        lambda data: {"said": [HumanMessage("hi", id="1")], "data": {"a": data}},
        lambda data: {"said": {"a": HumanMessage("hi", id="1"), "data": data}},
    ],
)
def test_bytes_and_a_bytearray_are_told_apart(held, serde):
    _, typed = encode_channels(serde, {"c": held(b"a")}, {})
    again, _ = encode_channels(serde, {"c": held(bytearray(b"a"))}, typed)
    assert again == encode_channels(serde, {"c": held(bytearray(b"a"))}, {})[0]


async def saved(saver, number, values, versions):
    config = {
        "configurable": {**PLACE, **({"checkpoint_id": f"{number - 1:03}"} if number else {})}
    }
    checkpoint = {**empty_checkpoint(), "id": f"{number:03}", "channel_values": values}
    return await saver.aput(config, checkpoint, {}, versions)


@pytest.mark.parametrize("versions", [{}, {"messages": 2}])
async def test_a_message_redacted_in_place_is_saved_so_wherever_it_is(provider, versions):
    """Also where the graph says that nothing changed: a redaction that does not happen is worse."""
    url, options = provider
    said = [HumanMessage(f"message {number}", id=str(number)) for number in range(MESSAGES)]
    places = [0, 5, MESSAGES - 257, MESSAGES - 17, MESSAGES - 1]
    async with open_backend(url, **options) as backend:
        saver = LocusSaver(backend)
        await saved(saver, 0, {"messages": said}, {"messages": 1})
        for number, place in enumerate(places, 1):
            said[place].content = f"REDACTED {number}"
            stored = await saved(saver, number, {"messages": said}, versions)
            for reader in (saver, LocusSaver(backend)):
                found = await reader.aget_tuple(stored)
                assert found.checkpoint["channel_values"]["messages"] == said
        first = await saver.aget_tuple({"configurable": {**PLACE, "checkpoint_id": "000"}})
        contents = [each.content for each in first.checkpoint["channel_values"]["messages"]]
        assert contents == [f"message {number}" for number in range(MESSAGES)]


async def test_what_was_saved_or_read_is_nobodys_to_change(saver):
    given_values = {"messages": [HumanMessage("hi", id="1")], "notes": {"deep": [1]}}
    stored = await saved(saver, 0, given_values, {"messages": 1, "notes": 1})
    writes = [("notes", {"deep": [1]})]
    await saver.aput_writes(stored, writes, "task")
    for _ in range(2):
        given_values["messages"][0].content = "changed"
        given_values["notes"]["deep"].append(2)
        writes[0][1]["deep"].append(2)
        found = await saver.aget_tuple(stored)
        values = found.checkpoint["channel_values"]
        assert values["messages"] == [HumanMessage("hi", id="1")]
        assert values["notes"] == {"deep": [1]}
        assert found.pending_writes == [("task", "notes", {"deep": [1]})]
        # What was read is the next to be changed.
        given_values, writes = values, [("notes", found.pending_writes[0][2])]


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    count: int
    scratch: dict[str, Any]


async def test_a_node_that_changes_the_state_in_place_is_saved_so(provider):
    """As LangGraph's own SQLite saver has it, which writes all that there is at each step."""
    url, options = provider
    config = {"configurable": {"thread_id": "ada"}}

    async def node(state):
        turn = state["count"]
        state["messages"][0].content = f"REDACTED {turn}"
        state["scratch"]["deep"].append(turn)
        return {"count": turn + 1, "messages": [AIMessage(f"answer {turn}", id=f"a{turn}")]}

    async with open_backend(url, **options) as backend:
        builder = StateGraph(State).add_node("node", node).add_edge(START, "node")
        graph = builder.compile(LocusSaver(backend))
        said = [HumanMessage(f"question {number}", id=str(number)) for number in range(40)]
        await graph.ainvoke({"messages": said, "count": 0, "scratch": {"deep": []}}, config)
        for turn in range(1, 4):
            await graph.ainvoke({"messages": []}, config)
            state = (await builder.compile(LocusSaver(backend)).aget_state(config)).values
            assert state["messages"][0].content == f"REDACTED {turn}"
            assert state["scratch"] == {"deep": list(range(turn + 1))}
            assert len(state["messages"]) == 40 + turn + 1
