"""Threads of LangGraph read like threads, and no class of theirs is built to show them."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import operator
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated
from uuid import UUID

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from pydantic import BaseModel

from locus_memory.integrations.langgraph import LocusSaver
from locus_memory.registry import open_backend

URL = "sqlite:./locus.db"


class Trip(BaseModel):
    city: str
    nights: int


@dataclasses.dataclass
class Boat:
    name: str


class Planned(MessagesState):
    trip: Trip | None
    facts: dict
    steps: Annotated[list[str], operator.add]


FACTS = {
    "id": UUID(int=5),
    "day": date(2026, 3, 9),
    "at": datetime(2026, 3, 9, 12, tzinfo=UTC),
    "price": Decimal("12.50"),
    "path": Path("a/b"),
    "tags": {"one"},
    "raw": b"\x00\x01",
    "boat": Boat("Petrel"),
    3: "a number names it",
}


def answer(state):
    last = state["messages"][-1]
    if last.content == "look":
        call = {"name": "look", "args": {"where": "shed"}, "id": "call-1"}
        return {"messages": [AIMessage("", tool_calls=[call])], "steps": ["called"]}
    return {"messages": [AIMessage(f"Noted: {last.text}", name="Wren")], "steps": ["noted"]}


def look(state):
    if not getattr(state["messages"][-1], "tool_calls", None):
        return {"trip": Trip(city="Brest", nights=2), "facts": FACTS}
    return {"messages": [ToolMessage("a ladder", tool_call_id="call-1", name="look")]}


def graph(saver):
    builder = StateGraph(Planned)
    builder.add_node("answer", answer)
    builder.add_node("look", look)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", "look")
    builder.add_edge("look", END)
    return builder.compile(checkpointer=saver.with_allowlist([Boat]))


def config(thread_id):
    return {"configurable": {"thread_id": thread_id}}


@pytest.fixture
def talk(empty_directory):
    """Let a graph talk on the thread `ada`, with writes that wait, and on `bo`."""

    async def work():
        async with LocusSaver(URL) as saver:
            compiled = graph(saver)
            for text in ("Hello", "look", "bye"):
                await compiled.ainvoke({"messages": [HumanMessage(text)]}, config("ada"))
            parts = [{"type": "text", "text": "a picture"}, {"type": "image_url", "image_url": "x"}]
            opening = [SystemMessage("Be brief."), HumanMessage(parts)]
            await compiled.ainvoke({"messages": opening}, config("bo"))
            newest = (await compiled.aget_state(config("ada"))).config
            await saver.aput_writes(newest, [("steps", ["waiting"])], "task")

    asyncio.run(work())


SAID = [
    "   1  user: Hello",
    "   2  Wren: Noted: Hello",
    "   3  user: look",
    '   4  assistant: [calls look({"where":"shed"})]',
    "   5  look: a ladder",
    "   6  user: bye",
    "   7  Wren: Noted: bye",
]


def test_show_reads_the_conversation(ok, talk):
    heading, *lines = ok("show", "ada").out.splitlines()
    assert heading.startswith('langgraph:["ada",""]@')
    assert lines == SAID
    assert ok("show", 'langgraph:["ada",""]').out.splitlines()[1:] == SAID
    first = ok("show", "ada@3").out.splitlines()[1:]
    assert first == SAID[: len(first)]
    assert ok("show", "ada@-1", "--last", "1").out.splitlines()[1:] == SAID[-1:]


def test_what_else_a_state_holds_is_plain_data(ok, talk):
    document = ok("show", "ada", "--json").json
    state = document["state"]
    assert set(state) == {"messages", "trip", "facts", "steps"}
    assert state["trip"] == {"city": "Brest", "nights": 2}
    assert state["steps"] == ["noted", "called", "noted"]
    assert state["facts"] == {
        "id": UUID(int=5).hex,
        "day": "2026-03-09",
        "at": "2026-03-09T12:00:00+00:00",
        "price": "12.50",
        "path": "a/b",
        "tags": ["one"],
        "raw": "<2 bytes>",
        "boat": {"name": "Petrel"},
        "3": "a number names it",
    }
    assert [message["role"] for message in state["messages"]][:5] == [
        "user", "assistant", "user", "assistant", "tool",
    ]  # fmt: skip
    assert not any(name.startswith("~") for name in document["metadata"])


@pytest.mark.slow
def test_diff_and_export_read_it_too(ok, talk):
    lines = ok("diff", "ada@-5", "ada").out.splitlines()
    assert [line for line in lines if "user: bye" in line] == ["+   6  user: bye"]
    exported = ok("export", "ada").json
    assert [message.get("content") for message in exported["messages"]][4:] == [
        "a ladder", "bye", "Noted: bye",
    ]  # fmt: skip
    assert exported["messages"][3]["tool_calls"][0]["function"] == {
        "name": "look",
        "arguments": '{"where":"shed"}',
    }
    pictured = ok("export", "bo", "--bare").json["messages"]
    assert pictured[1]["content"] == [
        {"type": "text", "text": "a picture"},
        {"type": "image_url", "image_url": "x"},
    ]


def test_what_is_exported_can_be_imported(ok, write, talk):
    ok("import", write("copy.json", ok("export", "ada").out), "--thread", "copy")
    lines = ok("show", "copy").out.splitlines()[1:]
    assert lines == SAID


def test_the_threads_of_writes_are_hidden(ok, talk):
    def listed(*options):
        return [t["thread_id"] for t in ok("threads", *options, "--json").json["threads"]]

    shown = ['langgraph:["ada",""]', 'langgraph:["bo",""]']
    assert listed() == shown
    # On a slow machine a step's writes do not wait for its checkpoint: `bo` has some too then.
    hidden = [name for name in listed("--all") if name not in shown]
    assert 'langgraph:["ada","","writes"]' in hidden
    assert all(name.endswith(',"writes"]') for name in hidden)
    assert len(listed("--all")) == len(shown) + len(hidden)
    assert listed("--limit", "1") == shown[:1]
    assert ok("threads", "--limit", "1", "--json").json["more"] == 1
    assert listed("--after", shown[0]) == shown[1:]


def test_checkpoints_say_what_langgraph_says(ok, talk):
    listed = ok("checkpoints", "ada", "--json").json["checkpoints"]
    assert not any(name.startswith("~") for each in listed for name in each["metadata"])
    assert {each["metadata"]["source"] for each in listed} == {"input", "loop"}
    wanted = ("--filter", '{"source": "input"}')
    inputs = ok("checkpoints", "ada", *wanted, "--json").json["checkpoints"]
    assert len(inputs) == 3


def test_rm_takes_the_writes_along(ok, talk):
    (gone,) = ok("threads", "rm", "ada", "--yes", "--json").json["threads"]
    assert gone["writes"] == ['langgraph:["ada","","writes"]']
    left = [t["thread_id"] for t in ok("threads", "--all", "--json").json["threads"]]
    assert 'langgraph:["bo",""]' in left
    assert not any(name.startswith('langgraph:["ada"') for name in left)


@pytest.mark.slow
def test_a_fork_is_a_thread_of_langgraph(ok, run, talk):
    forked = ok("fork", "ada", "again", "--json").json
    assert forked["thread_id"] == 'langgraph:["again",""]'
    assert ok("show", "again").out.splitlines()[1:] == SAID

    async def go_on():
        async with LocusSaver(URL) as saver:
            allowed = saver.with_allowlist([Boat, Trip])
            waiting = (await allowed.aget_tuple(config("again"))).pending_writes
            state = await graph(saver).ainvoke({"messages": [HumanMessage("on")]}, config("again"))
            return waiting, state["messages"]

    waiting, messages = asyncio.run(go_on())
    assert [(channel, value) for _, channel, value in waiting] == [("steps", ["waiting"])]
    assert messages[-1].text == "Noted: on"
    assert ok("show", "ada").out.splitlines()[1:] == SAID
    assert "again" in run("fork", "ada", "again").err


def test_a_thread_of_ones_own_comes_first(ok, write, talk):
    ok("import", write("ada.json", [{"role": "user", "content": "my own"}]))
    assert ok("show", "ada").out.splitlines()[1:] == ["   1  user: my own"]
    assert ok("show", 'langgraph:["ada",""]').out.splitlines()[1:] == SAID


@pytest.mark.parametrize(
    "name",
    ["langgraph:[[1],[2]]", 'langgraph:["a"]', "langgraph:[", "langgraph:{}", '["a",""]', "12",
     "langgraph:" + "[" * 2_000, 'langgraph:["a","",1]', 'langgraph:["a","",  "writes"]'],
)  # fmt: skip
def test_a_name_that_only_looks_like_one(ok, name):
    """A thread of one's own may be called so: it is listed, shown and deleted like any other."""

    async def save():
        async with open_backend(URL, state_type=None) as backend:
            await backend.checkpointer.save({"messages": [], "n": 1}, name)

    asyncio.run(save())
    assert [t["thread_id"] for t in ok("threads", "--json").json["threads"]] == [name]
    assert ok("show", name, "--json").json["state"] == {"messages": [], "n": 1}
    ok("threads", "rm", name, "--yes")


@pytest.mark.slow
def test_no_class_is_imported_for_what_is_stored(empty_directory, talk):
    """The bytes name a class of this module; whoever shows them does not import it."""
    code = """
import json, sys
from locus_memory.cli import app
code = app.run(["show", "ada", "--json"])
assert code == 0
assert not [name for name in sys.modules if "test_langgraph_threads" in name]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["state"]["trip"] == {"city": "Brest", "nights": 2}


@pytest.mark.slow
def test_without_langgraph_it_says_what_is_missing(empty_directory, talk):
    code = """
import sys
for name in ("langgraph", "langchain_core", "ormsgpack"):
    sys.modules[name] = None
from locus_memory.cli import app
for arguments in (["threads"], ["checkpoints", "ada"], ["show", "ada"], ["diff", "ada", "bo"]):
    print(app.run(arguments), flush=True)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
    assert [line for line in done.stdout.splitlines() if line.isdecimal()] == ["0", "0", "1", "1"]
    for line in done.stderr.splitlines():
        assert line.startswith("error: thread 'ada' of LangGraph: needs the 'langgraph' extra: ")
    assert len(done.stderr.splitlines()) == 2
