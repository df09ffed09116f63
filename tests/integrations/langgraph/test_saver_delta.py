"""Delta channels: what they are rebuilt from survives pruning, copying and deleting."""

from __future__ import annotations

from typing import Annotated, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.graph import END, START, StateGraph

ADA = {"configurable": {"thread_id": "ada"}}
BOB = {"configurable": {"thread_id": "bob"}}


def appended(state, writes):
    return [*state, *(message for write in writes for message in write)]


class Conversation(TypedDict):
    messages: Annotated[list[AnyMessage], DeltaChannel(appended, snapshot_frequency=7)]


@pytest.fixture
def graph(saver):
    builder = StateGraph(Conversation)
    builder.add_node(
        "model", lambda state: {"messages": [AIMessage(f"answer {len(state['messages'])}")]}
    )
    builder.add_edge(START, "model")
    builder.add_edge("model", END)
    return builder.compile(checkpointer=saver)


async def talked(graph, turns):
    for turn in range(turns):
        state = await graph.ainvoke({"messages": [HumanMessage(f"question {turn}")]}, ADA)
    return [message.content for message in state["messages"]]


async def contents(graph, config):
    state = await graph.aget_state(config)
    return [message.content for message in state.values["messages"]]


@pytest.mark.parametrize("turns", [1, 3, 4, 11])
async def test_a_thread_reads_the_same_before_and_after_prune_and_in_a_copy(graph, saver, turns):
    said = await talked(graph, turns)
    assert len(said) == 2 * turns
    before = [found.checkpoint["id"] async for found in saver.alist(ADA)]
    assert await contents(graph, ADA) == said
    await saver.acopy_thread("ada", "bob")
    await saver.aprune(["ada"])
    after = [found.checkpoint["id"] async for found in saver.alist(ADA)]
    assert after == before[: len(after)]
    assert len(after) <= 7 * 3 + 1
    assert await contents(graph, ADA) == said
    assert await contents(graph, BOB) == said
    await saver.adelete_thread("ada")
    assert await contents(graph, BOB) == said
    state = await graph.ainvoke({"messages": [HumanMessage("one more")]}, BOB)
    assert len(state["messages"]) == len(said) + 2


async def test_every_state_of_the_history_is_rebuilt(graph):
    said = await talked(graph, 6)
    lengths = set()
    async for state in graph.aget_state_history(ADA):
        messages = [message.content for message in state.values.get("messages", [])]
        assert messages == said[: len(messages)]
        lengths.add(len(messages))
    assert lengths == set(range(13))


async def test_the_history_is_what_the_walk_of_the_base_class_finds(graph, saver):
    await talked(graph, 5)
    async for found in saver.alist(ADA):
        ours = await saver.aget_delta_channel_history(config=found.config, channels=["messages"])
        walked = await BaseCheckpointSaver.aget_delta_channel_history(
            saver, config=found.config, channels=["messages"]
        )
        assert ours == walked
    assert await saver.aget_delta_channel_history(config=ADA, channels=[]) == {}
    newest = await saver.aget_delta_channel_history(config=ADA, channels=["messages", "none"])
    assert type(newest["messages"]["seed"]) is _DeltaSnapshot
    assert newest["none"] == {"writes": []}


async def test_leaving_on_exit_keeps_the_writes(graph):
    for turn in range(5):
        await graph.ainvoke(
            {"messages": [HumanMessage(f"question {turn}")]}, ADA, durability="exit"
        )
    assert len(await contents(graph, ADA)) == 10
