"""`LocusSaver` inside real graphs, awaited."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

from locus_memory import get_checkpointer, open_backend
from locus_memory.errors import ConfigurationError
from locus_memory.integrations.langgraph import LocusSaver
from locus_memory.integrations.langgraph.threads import Place
from locus_memory.testing import FakeClock

ADA = {"configurable": {"thread_id": "ada"}}


class Log(TypedDict):
    log: Annotated[list[str], operator.add]


def graph_of(saver, nodes, edges, **options):
    builder = StateGraph(Log)
    for name, node in nodes.items():
        builder.add_node(name, node)
    for start, end in edges:
        builder.add_edge(start, end)
    return builder.compile(checkpointer=saver, **options)


def says(word):
    return lambda _state: {"log": [word]}


def texts(state):
    return [message.content for message in state["messages"]]


async def test_a_conversation_goes_on_with_another_saver(where, conversation):
    async with open_backend(where) as backend:
        for turn in range(3):
            async with LocusSaver(backend) as saver:
                graph = conversation(saver)
                state = await graph.ainvoke({"messages": [HumanMessage(f"question {turn}")]}, ADA)
    assert texts(state) == [
        "question 0", "answer 1", "question 1", "answer 3", "question 2", "answer 5",
    ]  # fmt: skip


async def test_after_a_vacuum_an_interrupted_graph_repeats_no_finished_task(tmp_path):
    clock, calls = FakeClock(), []

    def works(_state):
        calls.append("work")
        return {"log": ["worked"]}

    async def asks(_state):
        return {"log": [interrupt("Go on?")]}

    async def ends_last(_state):
        calls.append("last")
        # The saver has no event for it.
        while not await backend.checkpointer.exists(Place.at("ada", "").writes):  # noqa: ASYNC110
            await asyncio.sleep(0)
        return {"log": ["ended"]}

    async with open_backend(f"sqlite:{tmp_path / 'a.db'}", clock=clock) as backend:
        nodes = {"work": works, "ask": asks, "last": ends_last}
        for resumed in (None, Command(resume="yes")):
            async with LocusSaver(backend) as saver:
                graph = graph_of(saver, nodes, [(START, name) for name in nodes])
                state = await graph.ainvoke(resumed or {"log": []}, ADA)
            clock.advance(31 * 86_400)
            await backend.checkpointer.vacuum(30)
    assert sorted(state["log"]) == ["ended", "worked", "yes"]
    assert sorted(calls) == ["last", "work"]


@pytest.mark.slow
async def test_a_long_conversation_comes_back_message_by_message(saver, conversation):
    graph = conversation(saver)
    for turn in range(25):
        state = await graph.ainvoke({"messages": [HumanMessage(f"é {turn} " + "long " * 40)]}, ADA)
    loaded = (await graph.aget_state(ADA)).values
    assert loaded["messages"] == state["messages"]
    assert len(loaded["messages"]) == 50


async def test_history_is_newest_first_and_forks(saver, conversation):
    graph = conversation(saver)
    for turn in range(3):
        await graph.ainvoke({"messages": [HumanMessage(f"question {turn}")]}, ADA)
    history = [state async for state in graph.aget_state_history(ADA)]
    assert [state.metadata["step"] for state in history] == [7, 6, 5, 4, 3, 2, 1, 0, -1]
    assert len(history[6].values["messages"]) == 2
    assert history[0].parent_config == history[1].config
    forked = await graph.aupdate_state(
        history[6].config, {"messages": [HumanMessage("another question")]}
    )
    state = await graph.ainvoke(None, forked)
    assert texts(state)[2] == "another question"
    old = await graph.aget_state(history[0].config)
    assert len(old.values["messages"]) == 6


async def test_a_node_asks_and_goes_on_with_the_answer(saver):
    def asks(_state):
        return {"log": [interrupt("first?"), interrupt("second?")]}

    graph = graph_of(saver, {"asks": asks}, [(START, "asks"), ("asks", END)])
    asked = await graph.ainvoke({"log": ["start"]}, ADA)
    assert asked["__interrupt__"][0].value == "first?"
    state = await graph.aget_state(ADA)
    assert state.next == ("asks",)
    assert state.interrupts[0].value == "first?"
    asked = await graph.ainvoke(Command(resume="yes"), ADA)
    assert asked["__interrupt__"][0].value == "second?"
    done = await graph.ainvoke(Command(resume="no"), ADA)
    assert done["log"] == ["start", "yes", "no"]


async def test_a_stop_before_a_node_is_kept(saver):
    nodes = {"one": says("one"), "two": says("two")}
    edges = [(START, "one"), ("one", "two"), ("two", END)]
    graph = graph_of(saver, nodes, edges, interrupt_before=["two"])
    await graph.ainvoke({"log": []}, ADA)
    assert (await graph.aget_state(ADA)).next == ("two",)
    await graph.aupdate_state(ADA, {"log": ["a word between"]}, as_node="one")
    state = await graph.ainvoke(None, ADA)
    assert state["log"] == ["one", "a word between", "two"]


async def test_branches_write_in_the_order_of_their_paths(saver):
    names = [f"branch {number}" for number in range(6)]
    edges = [edge for name in names for edge in ((START, name), (name, END))]
    graph = graph_of(saver, {name: says(name) for name in names}, edges)
    state = await graph.ainvoke({"log": []}, ADA)
    history = [state async for state in graph.aget_state_history(ADA)]
    assert state["log"] == names
    assert [task.name for task in history[1].tasks] == names
    assert [task.result for task in history[1].tasks] == [{"log": [name]} for name in names]


async def test_tasks_that_were_sent_are_kept(saver):
    def sends(_state):
        return [Send("works", {"log": [str(number)]}) for number in range(20)]

    builder = StateGraph(Log)
    builder.add_node("works", lambda state: {"log": state["log"]})
    builder.add_conditional_edges(START, sends, ["works"])
    graph = builder.compile(checkpointer=saver)
    state = await graph.ainvoke({"log": []}, ADA)
    assert state["log"] == [str(number) for number in range(20)]


async def test_a_subgraph_has_its_own_namespace(saver):
    def asks(_state):
        return {"log": [interrupt("inside?")]}

    inner = graph_of(None, {"asks": asks}, [(START, "asks"), ("asks", END)])
    outer = graph_of(saver, {"inner": inner}, [(START, "inner"), ("inner", END)])
    await outer.ainvoke({"log": ["start"]}, ADA)
    state = await outer.aget_state(ADA, subgraphs=True)
    inside = state.tasks[0].state
    assert inside.config["configurable"]["checkpoint_ns"].startswith("inner:")
    assert inside.next == ("asks",)
    done = await outer.ainvoke(Command(resume="yes"), ADA)
    assert done["log"][-1] == "yes"
    namespaces = {found.config["configurable"]["checkpoint_ns"] async for found in saver.alist(ADA)}
    assert len(namespaces) == 2


class Telling(LocusSaver):
    """Tells when the writes of the node `works` are stored."""

    def __init__(self, where):
        super().__init__(where)
        self.written = asyncio.Event()

    async def aput_writes(self, config, writes, task_id, task_path=""):
        await super().aput_writes(config, writes, task_id, task_path)
        if ("log", ["works"]) in writes:
            self.written.set()


async def test_what_a_task_wrote_survives_the_crash_of_its_neighbour(where):
    ran = []

    async def works(_state):
        ran.append("works")
        return {"log": ["works"]}

    def fails_beside(saver):
        async def fails(_state):
            ran.append("fails")
            if ran.count("fails") > 1:
                return {"log": ["fails"]}
            await saver.written.wait()
            raise RuntimeError("the machine caught fire")

        edges = [(START, "works"), (START, "fails"), ("works", END), ("fails", END)]
        return graph_of(saver, {"works": works, "fails": fails}, edges)

    async with open_backend(where) as backend:
        async with Telling(backend) as saver:
            with pytest.raises(RuntimeError, match="fire"):
                await fails_beside(saver).ainvoke({"log": []}, ADA)
        async with LocusSaver(backend) as fresh:
            state = await fails_beside(fresh).ainvoke(None, ADA)
    assert sorted(state["log"]) == ["fails", "works"]
    assert ran.count("works") == 1


async def test_a_message_changed_in_place_is_stored_as_it_is(saver, conversation):
    """An element far from the end, returned again by the node that changed it."""
    graph = conversation(saver)
    many = [HumanMessage(f"message {number}", id=str(number)) for number in range(60)]
    await graph.ainvoke({"messages": many}, ADA)

    def edits(state):
        first = state["messages"][0]
        first.content = "edited in place"
        return {"messages": [first]}

    builder = StateGraph(graph.builder.state_schema)
    builder.add_node("edits", edits)
    builder.add_edge(START, "edits")
    editing = builder.compile(checkpointer=saver)
    await editing.ainvoke({"messages": [HumanMessage("go", id="go")]}, ADA)
    loaded = (await editing.aget_state(ADA)).values["messages"]
    assert loaded[0].content == "edited in place"
    assert [message.id for message in loaded[1:60]] == [str(number) for number in range(1, 60)]


@pytest.mark.slow
async def test_removed_messages_are_gone_and_their_texts_with_them(saver, conversation):
    graph = conversation(saver)
    for turn in range(40):
        await graph.ainvoke({"messages": [HumanMessage(f"{turn} " + "word " * 50)]}, ADA)
        old = (await graph.aget_state(ADA)).values["messages"][:-4]
        removed = [RemoveMessage(id=message.id) for message in old]
        await graph.aupdate_state(ADA, {"messages": removed})
    state = await graph.aget_state(ADA)
    assert len(state.values["messages"]) == 4
    assert state.values["messages"][2].content.startswith("39 ")
    stats = await saver._checkpointer.get_storage_stats('langgraph:["ada",""]')
    newest = await saver._checkpointer.load('langgraph:["ada",""]')
    assert len(newest["t"]) < 40
    assert stats["total_checkpoints"] == 160


async def test_what_is_returned_is_nobody_elses(saver, conversation):
    graph = conversation(saver)
    await graph.ainvoke({"messages": [HumanMessage("hello")]}, ADA)
    first = await saver.aget_tuple(ADA)
    first.checkpoint["channel_values"]["messages"][0].content = "overwritten"
    first.checkpoint["channel_values"]["messages"].clear()
    first.metadata["step"] = 99
    again = await saver.aget_tuple(ADA)
    assert again.checkpoint["channel_values"]["messages"][0].content == "hello"
    assert again.metadata["step"] == 1


async def test_each_durability_ends_with_the_same_state(saver, conversation):
    graph = conversation(saver)
    for durability in ("sync", "async", "exit"):
        config = {"configurable": {"thread_id": durability}}
        for _ in range(2):
            await graph.ainvoke(
                {"messages": [HumanMessage("hello")]}, config, durability=durability
            )
        state = await graph.aget_state(config)
        assert texts(state.values) == ["hello", "answer 1", "hello", "answer 3"]


async def test_a_checkpointer_of_the_callers_is_not_closed(where):
    async with get_checkpointer(where) as checkpointer:
        async with LocusSaver(checkpointer) as saver:
            assert await saver.aget_tuple(ADA) is None
        assert await checkpointer.list_threads() == []


def test_what_leads_to_no_checkpointer_is_refused():
    with pytest.raises(ConfigurationError):
        LocusSaver("nowhere:at:all")


async def test_two_savers_take_turns_on_one_thread(where, conversation):
    async with open_backend(where) as backend:
        savers = LocusSaver(backend), LocusSaver(backend)
        for turn in range(6):
            graph = conversation(savers[turn % 2])
            state = await graph.ainvoke({"messages": [HumanMessage(f"question {turn}")]}, ADA)
    assert len(state["messages"]) == 12
    assert isinstance(state["messages"][-1], AIMessage)
