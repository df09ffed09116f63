"""One long life of a real graph on each database: interrupts, resumes, restarts, a fork."""

from __future__ import annotations

from typing import Annotated, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt

from locus_memory import open_backend
from locus_memory.integrations.langgraph import LocusSaver
from locus_memory.testing.servers import PostgreSQLServer, RedisServer

TURNS = 200
ASKS = 20
"""Every so many turns the graph stops to ask."""

RESTARTS = 50
FORKED = 101
ADA = {"configurable": {"thread_id": "ada"}}


class Conversation(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def question(turn):
    return HumanMessage(f"question {turn}: " + "what was it again? " * 20, id=f"q{turn}")


def reply(turn, word):
    return AIMessage(f"answer {turn}: {word} " + "it was that again. " * 40, id=f"a{turn}")


def graph_of(saver):
    def model(state):
        turn = (len(state["messages"]) - 1) // 2
        word = interrupt(f"may I answer {turn}?") if turn % ASKS == ASKS - 1 else "plainly"
        return {"messages": [reply(turn, word)]}

    builder = StateGraph(Conversation)
    builder.add_node("model", model)
    builder.add_edge(START, "model")
    builder.add_edge("model", END)
    return builder.compile(checkpointer=saver)


def expected(turns):
    return [
        message
        for turn in range(turns)
        for message in (
            question(turn),
            reply(turn, f"yes, {turn}" if turn % ASKS == ASKS - 1 else "plainly"),
        )
    ]


async def take(graph, turn):
    """Live through a turn, and answer what the graph asks."""
    state = await graph.ainvoke({"messages": [question(turn)]}, ADA)
    if turn % ASKS == ASKS - 1:
        [asked] = state["__interrupt__"]
        assert asked.value == f"may I answer {turn}?"
        assert (await graph.aget_state(ADA)).next == ("model",)
        await graph.ainvoke(Command(resume=f"yes, {turn}"), ADA)


async def live(url):
    """Take all turns, with restarts between, then read and fork what was saved."""
    for start in range(0, TURNS, RESTARTS):
        async with open_backend(url) as backend, LocusSaver(backend) as saver:
            graph = graph_of(saver)
            for turn in range(start, start + RESTARTS):
                await take(graph, turn)
    async with open_backend(url) as backend, LocusSaver(backend) as saver:
        graph = graph_of(saver)
        whole = expected(TURNS)
        assert (await graph.aget_state(ADA)).values["messages"] == whole
        history = [state async for state in graph.aget_state_history(ADA)]
        assert len(history) == 3 * TURNS
        for state in history:
            messages = state.values.get("messages", [])
            assert messages == whole[: len(messages)]
        then = next(s for s in history if len(s.values.get("messages", ())) == 2 * FORKED)
        forked = await graph.aupdate_state(then.config, {"messages": [AIMessage("no", id="no")]})
        assert (await graph.aget_state(forked)).values["messages"] == [
            *expected(FORKED),
            AIMessage("no", id="no"),
        ]
        assert (await graph.aget_state(history[0].config)).values["messages"] == whole
        assert len([state async for state in graph.aget_state_history(ADA)]) == 3 * TURNS + 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [pytest.param(PostgreSQLServer, id="postgresql"), pytest.param(RedisServer, id="redis")]
)
async def test_two_hundred_turns_with_stops_restarts_and_a_fork(kind):
    with kind() as server:
        await live(server.url)


async def test_two_hundred_turns_with_stops_restarts_and_a_fork_in_a_file(tmp_path):
    await live(f"sqlite:{tmp_path / 'test.db'}")
