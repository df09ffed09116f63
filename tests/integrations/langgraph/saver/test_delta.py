"""Delta channels: what they are rebuilt from survives pruning, copying and deleting."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import Annotated, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.graph import END, START, StateGraph

from locus_memory.backends.inmemory.checkpoints import InMemoryDeltaStorage
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.integrations.langgraph.checkpoints.known import Index
from locus_memory.integrations.langgraph.saver import LocusSaver
from locus_memory.integrations.langgraph.threads import Place

ADA = {"configurable": {"thread_id": "ada"}}
BOB = {"configurable": {"thread_id": "bob"}}


def appended(state, writes):
    return [*state, *(message for write in writes for message in write)]


class Conversation(TypedDict):
    messages: Annotated[list[AnyMessage], DeltaChannel(appended, snapshot_frequency=7)]


def build(saver):
    builder = StateGraph(Conversation)
    builder.add_node(
        "model", lambda state: {"messages": [AIMessage(f"answer {len(state['messages'])}")]}
    )
    builder.add_edge(START, "model")
    builder.add_edge("model", END)
    return builder.compile(checkpointer=saver)


@pytest.fixture
def graph(saver):
    return build(saver)


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


@pytest.mark.slow
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


class Thread:
    """A thread of any shape, put together by hand through several savers."""

    def __init__(self, savers, random):
        self.savers, self.random = savers, random
        self.ids = []
        self.made = 0

    def config(self, checkpoint_id):
        return {"configurable": {**ADA["configurable"], "checkpoint_ns": "", **checkpoint_id}}

    def of(self, checkpoint_id):
        return self.config({"checkpoint_id": checkpoint_id} if checkpoint_id else {})

    async def put(self, saver):
        self.made += 1
        parent = self.random.choice(self.ids[-2:]) if self.ids else None
        named = f"{self.made:04}"
        if self.ids and self.random.random() < 0.1:
            named = self.random.choice(self.ids)
            parent = None if parent == named else parent
        checkpoint = {**empty_checkpoint(), "id": named}
        held = self.random.random()
        if held < 0.1:
            checkpoint["channel_values"] = {"messages": _DeltaSnapshot([self.made])}
        metadata = {"step": self.made, "run_id": f"run {self.made % 7}"}
        if held < 0.9:
            metadata["counters_since_delta_snapshot"] = {"messages": (1, 1)}
        await saver.aput(self.of(parent), checkpoint, metadata, {})
        self.ids = [*(name for name in self.ids if name != named), named]

    async def write(self, saver):
        if self.ids:
            at = self.random.choice([self.ids[-1], self.random.choice(self.ids)])
            self.made += 1
            await saver.aput_writes(self.of(at), [("messages", [self.made])], f"task {self.made}")

    async def remove(self, _saver):
        # What is deleted one by one is deleted here, so that it is known.
        chance = self.random.random()
        if chance < 0.6:
            await self.savers[0].adelete_for_runs([f"run {self.made % 7}"])
        elif chance < 0.8:
            await self.savers[1].aprune(["ada"])
        else:
            await self.savers[1].adelete_thread("ada")
        self.ids = sorted([found.checkpoint["id"] async for found in self.savers[1].alist(ADA)])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
async def test_what_is_remembered_is_what_is_stored(seed):
    storage = InMemoryDeltaStorage()

    def opened():
        return LocusSaver(DeltaCheckpointer(storage, state_type=None))

    savers = [opened(), opened()]
    thread = Thread(savers, Random(seed))
    for _ in range(60):
        verbs = [thread.put] * 6 + [thread.write] * 6 + [thread.remove]
        saver = savers[0] if thread.random.random() < 0.7 else savers[1]
        await thread.random.choice(verbs)(saver)
        asked = [None, *thread.ids[-1:], *thread.random.choices(thread.ids, k=bool(thread.ids))]
        for name in asked:
            wanted = {"config": thread.of(name), "channels": ["messages"]}
            fresh = await opened().aget_delta_channel_history(**wanted)
            assert await savers[0].aget_delta_channel_history(**wanted) == fresh


class Compared(str):
    """A text that counts how often it is compared."""

    __slots__ = ()
    count = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Compared.count += 1
        return str.__eq__(self, other)


def test_the_writes_of_many_ancestors_are_found_in_one_pass():
    names = [Compared(f"{number:04}") for number in range(1_000)]
    written = {f"w{name}": (Compared(name), datetime.now(UTC)) for name in reversed(names)}
    index = Index(Place.at("ada", ""), {}, written)
    Compared.count = 0
    assert index.alone(names) == [f"w{name}" for name in names]
    assert Compared.count <= 4 * len(names)


@pytest.mark.slow
async def test_a_long_conversation_reads_one_state_a_turn(monkeypatch):
    storage = InMemoryDeltaStorage()
    saver = LocusSaver(DeltaCheckpointer(storage, state_type=None))
    graph = build(saver)
    await talked(graph, 5)
    reads = []
    retrieve_chain = InMemoryDeltaStorage.retrieve_chain

    async def counted(self, *names):
        reads.append(names)
        return await retrieve_chain(self, *names)

    monkeypatch.setattr(InMemoryDeltaStorage, "retrieve_chain", counted)
    await talked(graph, 30)
    # At a snapshot one more; the state itself, guessed right, is the other.
    assert len(reads) <= 30 + 2 * 30 // 3
