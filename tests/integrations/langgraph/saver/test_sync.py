"""`LocusSaver` inside real graphs that do not await."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TypedDict

import pytest
from langchain_core.messages import HumanMessage
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from locus_memory.errors import BlockingCallError
from locus_memory.integrations.langgraph import LocusSaver

ADA = {"configurable": {"thread_id": "ada"}}


class Answer(TypedDict):
    answer: str


@pytest.fixture
def blocking_saver(where):
    with LocusSaver(where) as opened:
        yield opened


def test_a_conversation_with_history_update_and_fork(blocking_saver, conversation):
    graph = conversation(blocking_saver)
    for turn in range(3):
        graph.invoke({"messages": [HumanMessage(f"question {turn}")]}, ADA)
    history = list(graph.get_state_history(ADA))
    assert len(history) == 9
    forked = graph.update_state(history[6].config, {"messages": [HumanMessage("another")]})
    state = graph.invoke(None, forked)
    assert [message.content for message in state["messages"]][2] == "another"
    assert len(list(graph.get_state_history(ADA, limit=2))) == 2


def test_a_node_asks_and_goes_on_with_the_answer(blocking_saver):
    builder = StateGraph(Answer)
    builder.add_node("asks", lambda _state: {"answer": interrupt("really?")})
    builder.add_edge(START, "asks")
    builder.add_edge("asks", END)
    graph = builder.compile(checkpointer=blocking_saver)
    graph.invoke({"answer": ""}, ADA)
    assert graph.get_state(ADA).next == ("asks",)
    assert graph.invoke(Command(resume="yes"), ADA) == {"answer": "yes"}


@pytest.mark.slow
def test_many_threads_at_once(blocking_saver, conversation):
    graph = conversation(blocking_saver)

    def talk(name):
        config = {"configurable": {"thread_id": name}}
        for turn in range(3):
            state = graph.invoke({"messages": [HumanMessage(f"{name} {turn}")]}, config)
        return [message.content for message in state["messages"]][::2]

    names = [f"thread {number}" for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(talk, names)) == [
            [f"{name} {turn}" for turn in range(3)] for name in names
        ]


def test_threads_are_copied_pruned_and_deleted(blocking_saver, conversation):
    graph = conversation(blocking_saver)
    for turn in range(3):
        graph.invoke({"messages": [HumanMessage(f"question {turn}")]}, ADA)
    blocking_saver.copy_thread("ada", "bob")
    bob = {"configurable": {"thread_id": "bob"}}
    blocking_saver.prune(["ada"])
    assert len(list(blocking_saver.list(ADA))) == 1
    assert len(graph.get_state(ADA).values["messages"]) == 6
    assert len(list(blocking_saver.list(bob))) == 9
    blocking_saver.delete_thread("ada")
    assert blocking_saver.get_tuple(ADA) is None
    assert blocking_saver.get_tuple(bob) is not None


async def test_a_blocking_call_where_a_loop_runs_is_refused(saver):
    with pytest.raises(BlockingCallError, match="await the original"):
        saver.get_tuple(ADA)
    with pytest.raises(BlockingCallError):
        saver.put_writes({"configurable": {"thread_id": "a", "checkpoint_id": "1"}}, [], "task")
