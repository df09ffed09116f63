"""What a conversation of a real graph takes on disk, and that all of it is still there."""

from __future__ import annotations

import random
import sqlite3
import uuid
from typing import Annotated, TypedDict

import orjson
import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

from locus_memory import get_checkpointer
from locus_memory.integrations.langgraph import LocusSaver

TURNS = 60
ADA = {"configurable": {"thread_id": "ada"}}


def appended(messages, writes):
    return [*messages, *(message for write in writes for message in write)]


class Plain(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


class Delta(TypedDict):
    messages: Annotated[list[AnyMessage], DeltaChannel(appended)]


@pytest.fixture(scope="module")
def dialogue():
    """Questions of 600 characters and answers of 1,200, the words of a small vocabulary."""
    source = random.Random(7)
    letters = "etaoinshrdlcumwfgypbvkjxqz"
    words = ["".join(source.choices(letters, k=source.randint(2, 9))) for _ in range(5000)]
    weights = [1 / (rank + 5) for rank in range(len(words))]

    def said(kind, length):
        text = " ".join(source.choices(words, weights, k=length // 4))[:length]
        return kind(text, id=str(uuid.UUID(int=source.getrandbits(128), version=4)))

    return [(said(HumanMessage, 600), said(AIMessage, 1200)) for _ in range(TURNS)]


def graph_of(saver, schema, dialogue):
    def model(state):
        return {"messages": [dialogue[len(state["messages"]) // 2][1]]}

    builder = StateGraph(schema)
    builder.add_node("model", model)
    builder.add_edge(START, "model")
    builder.add_edge("model", END)
    return builder.compile(checkpointer=saver)


def json_of(dialogue):
    messages = [
        {"type": message.type, "id": message.id, "content": message.content}
        for turn in dialogue
        for message in turn
    ]
    return len(orjson.dumps({"messages": messages}))


def bytes_in(path):
    """What the file takes once nothing waits in its log."""
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path.stat().st_size


@pytest.mark.slow
@pytest.mark.parametrize(("schema", "bound"), [(Plain, 2.0), (Delta, 3.5)])
async def test_a_conversation_takes_little_more_than_its_text(tmp_path, dialogue, schema, bound):
    path = tmp_path / "agent.db"
    async with LocusSaver(f"sqlite:{path}") as saver:
        empty = bytes_in(path)
        graph = graph_of(saver, schema, dialogue)
        for question, _ in dialogue:
            await graph.ainvoke({"messages": [question]}, ADA)
    assert (bytes_in(path) - empty) / json_of(dialogue) < bound
    async with get_checkpointer(f"sqlite:{path}") as checkpointer:
        threads = await checkpointer.list_threads()
        stats = [await checkpointer.get_storage_stats(thread) for thread in threads]
    assert max(each["total_checkpoints"] for each in stats) == 3 * TURNS
    assert sum(each["compressed_size"] for each in stats) / json_of(dialogue) < bound


@pytest.mark.slow
@pytest.mark.parametrize(("schema", "turns"), [(Plain, TURNS), (Delta, 20)])
async def test_every_checkpoint_of_a_conversation_is_there(tmp_path, dialogue, schema, turns):
    path = tmp_path / "agent.db"
    async with LocusSaver(f"sqlite:{path}") as saver:
        graph = graph_of(saver, schema, dialogue)
        for question, _ in dialogue[:turns]:
            await graph.ainvoke({"messages": [question]}, ADA)
    said = [message for turn in dialogue[:turns] for message in turn]
    async with LocusSaver(f"sqlite:{path}") as saver:
        graph = graph_of(saver, schema, dialogue)
        assert (await graph.aget_state(ADA)).values["messages"] == said
        steps = []
        async for state in graph.aget_state_history(ADA):
            messages = state.values.get("messages", [])
            assert messages == said[: len(messages)]
            steps.append((state.metadata["step"], len(messages)))
    # Of the three checkpoints of a turn, one is of before the question and one of each message.
    expected = [
        (3 * turn + part - 1, 2 * turn + part) for turn in range(turns) for part in range(3)
    ]
    assert steps == expected[::-1]
