"""A save holds up neither the event loop nor what a graph streams meanwhile."""

from __future__ import annotations

import asyncio
import operator
import threading
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph

from locus_memory.backends.inmemory.checkpoints import InMemoryDeltaStorage
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.integrations.langgraph import LocusSaver

ADA = {"configurable": {"thread_id": "ada"}}
PATIENCE = 30
"""Seconds after which a test that would wait for ever fails."""


class Held(InMemoryDeltaStorage):
    """Storage that stores nothing until it is let go."""

    def __init__(self):
        super().__init__()
        self.released = threading.Event()
        self.waiting = 0

    async def store(self, *arguments, **options):
        self.waiting += 1
        assert await asyncio.to_thread(self.released.wait, PATIENCE)
        return await super().store(*arguments, **options)


class State(TypedDict):
    said: Annotated[list[str], operator.add]


def built(saver):
    inner = StateGraph(State)
    inner.add_node("first", lambda _: {"said": ["first"]})
    inner.add_node("second", lambda _: {"said": ["second"]})
    inner.add_edge(START, "first").add_edge("first", "second")
    outer = StateGraph(State)
    outer.add_node("inner", inner.compile())
    outer.add_node("last", lambda _: {"said": ["last"]})
    outer.add_edge(START, "inner").add_edge("inner", "last")
    return outer.compile(saver)


BEFORE = ["first", "second"]
"""What is there before anything is stored; a subgraph does not end before its saves do."""


async def test_a_graph_streams_on_while_its_saves_wait_for_the_database():
    storage = Held()
    graph = built(LocusSaver(DeltaCheckpointer(storage, state_type=None)))
    names = []
    async with asyncio.timeout(PATIENCE):
        stream = graph.astream({"said": []}, ADA, subgraphs=True, durability="async")
        async for _, chunk in stream:
            names += chunk
            if names == BEFORE:
                assert storage.waiting > 0
                storage.released.set()
    assert names == [*BEFORE, "inner", "last"]
    assert (await graph.aget_state(ADA)).values["said"][-1] == "last"


def test_the_same_without_await():
    storage = Held()
    graph = built(LocusSaver(DeltaCheckpointer(storage, state_type=None)))
    names = []
    for _, chunk in graph.stream({"said": []}, ADA, subgraphs=True, durability="async"):
        names += chunk
        if names == BEFORE:
            assert storage.waiting > 0
            storage.released.set()
    assert names == [*BEFORE, "inner", "last"]
    assert graph.get_state(ADA).values["said"][-1] == "last"
