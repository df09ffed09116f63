"""Graphs and savers for the tests of the LangGraph adapters."""

from __future__ import annotations

from typing import Annotated, TypedDict

import pytest

pytest.importorskip("langgraph")

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

from locus_memory import open_backend
from locus_memory.integrations.langgraph.saver import LocusSaver


class Conversation(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


@pytest.fixture
def conversation():
    """Compiles a graph of one node, which answers with the number of the message."""

    def answer(state):
        return {"messages": [AIMessage(f"answer {len(state['messages'])}")]}

    def compiled(saver, **options):
        builder = StateGraph(Conversation)
        builder.add_node("model", answer)
        builder.add_edge(START, "model")
        builder.add_edge("model", END)
        return builder.compile(checkpointer=saver, **options)

    return compiled


@pytest.fixture(params=["memory", "sqlite"])
def where(request, tmp_path):
    """A provider string of an embedded database, empty."""
    return "memory" if request.param == "memory" else f"sqlite:{tmp_path / 'test.db'}"


@pytest.fixture
async def saver(provider):
    """A saver on each kind of database."""
    url, options = provider
    async with open_backend(url, **options) as backend, LocusSaver(backend) as opened:
        yield opened
