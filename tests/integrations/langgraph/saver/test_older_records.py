"""Threads that earlier versions saved: they are read, continued and copied as they were."""

from __future__ import annotations

import base64
import json
import re
from collections import deque
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt

from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.checkpoint.inmemory import InMemoryDeltaStorage
from locus_memory.checkpoint.record import Record
from locus_memory.errors import CheckpointCorruptError
from locus_memory.integrations.langgraph import LocusSaver
from locus_memory.integrations.langgraph.checkpoints import older

RECORDS = Path(__file__).with_name("older_records.jsonl")
"""What the version before binary values wrote for `converse`; never written again."""

TEXTS = (
    "plain words of no consequence, long enough that they are held once in a document",
    "„Žluťoučký kůň“ – ‘naïve’ café, Straße, ¿qué?",  # noqa: RUF001 - as people write
    "今天天气很好，我们去公园散步吧。" * 4,  # noqa: RUF001 - as people write
    "😀👩‍🚀 and \ue001 private \U000f0005 use \U0010ffff, \x00 and \x7f",
    "additional_kwargs response_metadata type human name id, tool_calls, model_validate_json",
    "",
)


def appended(messages, writes):
    return [*messages, *(message for write in writes for message in write)]


class Plain(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    seen: Any


class Delta(TypedDict):
    messages: Annotated[list[AnyMessage], DeltaChannel(appended, snapshot_frequency=3)]
    seen: Any


async def answer(state):
    turn = len(state["messages"]) // 2
    text = TEXTS[turn % len(TEXTS)]
    call = {"name": "find", "args": {"text": text, "n": [1, 2.5]}, "id": f"call{turn}"}
    said = AIMessage(text, id=f"a{turn}", tool_calls=[call] if turn % 2 else [])
    seen = {"turn": turn, "raw": bytes(range(256)), "last": deque([text]), "set": {1, 2}}
    return {"messages": [said], "seen": seen}


async def ask(state):
    told = interrupt({"question": TEXTS[1]})
    return {"messages": [ToolMessage(told, id=f"t{len(state['messages'])}", tool_call_id="c")]}


def graph_of(saver, schema):
    builder = StateGraph(schema)
    builder.add_node("answer", answer)
    builder.add_node("ask", ask)
    builder.add_edge(START, "answer")
    builder.add_conditional_edges(
        "answer", lambda state: "ask" if len(state["messages"]) % 6 == 0 else END
    )
    builder.add_edge("ask", END)
    return builder.compile(checkpointer=saver)


def config(schema):
    return {"configurable": {"thread_id": schema.__name__}}


async def converse(saver):
    for schema in (Plain, Delta):
        graph = graph_of(saver, schema)
        for turn, text in enumerate(TEXTS):
            question = HumanMessage(text, id=f"q{turn}", additional_kwargs={"é": [1, None]})
            await graph.ainvoke({"messages": [question]}, config(schema))
            if (await graph.aget_state(config(schema))).next and turn < 4:
                await graph.ainvoke(Command(resume=TEXTS[2]), config(schema))


async def story(saver, schema):
    """Return all states of a thread, and what waits in them, without ids and times."""
    graph = graph_of(saver, schema)
    return [
        (
            state.values,
            state.next,
            state.metadata["step"],
            [task.interrupts for task in state.tasks],
        )
        async for state in graph.aget_state_history(config(schema))
    ]


_SEQUENCES = re.compile(
    "(?:[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})+"
)


def text_of(data):
    """Return bytes as the version before wrote them."""
    text = data.decode("latin-1")
    for number, phrase in enumerate(older._PHRASES):
        text = text.replace(phrase, chr(0xE000 + number))

    def characters(match):
        run = match[0]
        try:
            said = run.encode("latin-1").decode()
        except UnicodeDecodeError:
            return run
        if re.search("[\ue000-\ue1ff\U000f0000-\U0010ffff]", said):
            return run
        return said.translate({number: number + 0xE100 for number in range(0x80, 0x100)})

    return _SEQUENCES.sub(characters, text)


WORDS = st.text(
    st.sampled_from("abc XYZ\n\té€語🎉\ue000\ue1ff\U000f0000\U000f0001\x00\x7f\xff"), max_size=200
)


@given(st.binary(max_size=400) | (WORDS | st.sampled_from(older._PHRASES)).map(str.encode))
def test_any_bytes_of_the_version_before_come_back(data):
    assert older.bytes_of(text_of(data), []) == data
    pooled = chr(0xF0000) + "é".encode().decode("latin-1") + chr(0xF0001)
    assert older.bytes_of(pooled, [text_of(data), "b"]) == data + "é".encode() + b"b"


@pytest.mark.parametrize("text", ["\ue0ff", "\U000f0005"])
def test_a_private_character_without_a_meaning_is_reported(text):
    with pytest.raises(CheckpointCorruptError, match="newer version"):
        older.bytes_of(text, ["only one"])


async def stored():
    """Return a storage with the records of the earlier version."""
    storage = InMemoryDeltaStorage()
    for line in RECORDS.read_text().splitlines():
        fields = json.loads(line)
        payload = base64.b64decode(fields.pop("payload"))
        await storage.store(Record(**fields, payload=payload))
    return storage


@pytest.mark.parametrize("schema", [Plain, Delta])
async def test_threads_of_the_version_before_are_read(schema):
    fresh = LocusSaver("memory")
    await converse(fresh)
    older = LocusSaver(DeltaCheckpointer(await stored(), state_type=None))
    expected = await story(fresh, schema)
    assert len(expected) > 15
    assert [part[:3] for part in await story(older, schema)] == [part[:3] for part in expected]
    waiting = [[len(each) for each in part[3]] for part in await story(older, schema)]
    assert waiting == [[len(each) for each in part[3]] for part in expected]


@pytest.mark.parametrize("schema", [Plain, Delta])
async def test_threads_of_the_version_before_are_continued(schema):
    storage = await stored()
    saver = LocusSaver(DeltaCheckpointer(storage, state_type=None))
    graph = graph_of(saver, schema)
    before = await story(saver, schema)
    for turn in range(3):
        await graph.ainvoke(
            {"messages": [HumanMessage(TEXTS[turn], id=f"n{turn}")]}, config(schema)
        )
    again = LocusSaver(DeltaCheckpointer(storage, state_type=None))
    after = await story(again, schema)
    assert [part[:3] for part in after[-len(before) + 1 :]] == [part[:3] for part in before[1:]]
    assert after[0][0]["messages"][-1].content == TEXTS[(len(after[0][0]["messages"]) - 1) // 2 % 6]
    await again.acopy_thread(schema.__name__, "copy")
    await again.adelete_thread(schema.__name__)
    thread = {"configurable": {"thread_id": "copy"}}
    state = await graph_of(again, schema).aget_state(thread)
    assert state.values == after[0][0]
