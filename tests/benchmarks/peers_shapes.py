"""LangGraph's savers and ours over the table of shapes: turns, cold loads and bytes of each."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from peers_figures import Part
from peers_places import Place, Places, provider
from peers_savers import Opener, appended, empty_size, pooled_saver
from rows import Row
from shapes import SHAPES, TEXTS, Shape

from locus_memory.integrations.langgraph import LocusSaver

TURNS = 200
LAST = 30
LOADS = 15
DELTA = Shape("flat, prose, DeltaChannel", "prose", "DeltaChannel")
THREAD: Any = {"configurable": {"thread_id": "t"}}


def _joined(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    return {**old, **new}


class Flat(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


class Counted(Flat):
    progress: dict[str, Any]


class Noted(Flat):
    scratchpad: str


class Mapped(Flat):
    by_name: Annotated[dict[str, AnyMessage], _joined]


class Delta(TypedDict):
    messages: Annotated[list[AnyMessage], DeltaChannel(appended)]


SCHEMAS: dict[str, Any] = {
    "nested counter": Counted,
    "mapping of messages": Mapped,
    "scratchpad": Noted,
    "DeltaChannel": Delta,
}


class Play:
    """A conversation of a shape, the same in every run."""

    def __init__(self, shape: Shape) -> None:
        self.shape, say, names = shape, TEXTS[shape.text](7), random.Random(5)
        self.questions = [HumanMessage(say(600), id=_name(names)) for _ in range(TURNS)]
        self.answers = [AIMessage(say(1200), id=_name(names)) for _ in range(TURNS)]
        self.edits = [say(40) for _ in range(TURNS)]
        self.notes = [say(4000) for _ in range(TURNS)]

    def graph(self, saver: Any) -> Any:
        """Return a graph of one node, so that a turn makes three checkpoints."""

        async def model(state):
            return self.update(state)

        builder = StateGraph(SCHEMAS.get(self.shape.form, Flat))
        builder.add_node("model", model)
        builder.add_edge(START, "model")
        builder.add_edge("model", END)
        return builder.compile(checkpointer=saver)

    def question(self, turn: int) -> dict[str, Any]:
        question = self.questions[turn]
        if self.shape.form == "mapping of messages":
            return {"by_name": {f"q{turn}": question}}
        return {"messages": [question]}

    def update(self, state: Any) -> dict[str, Any]:
        form = self.shape.form
        if form == "mapping of messages":
            turn = len(state["by_name"]) // 2
            return {"by_name": {f"a{turn}": self.answers[turn]}}
        turn = len(state["messages"]) // 2
        update: dict[str, Any] = {"messages": [self.answers[turn]]}
        if form == "nested counter":
            update["progress"] = {"turn": turn, "tokens": {"used": turn * 500}, "done": False}
        if form == "scratchpad":
            update["scratchpad"] = self.notes[turn]
        if form == "edited message" and turn:
            edited = self.answers[turn - 1]
            text = f"{edited.content} {self.edits[turn]}"
            update["messages"] = [AIMessage(text, id=edited.id), self.answers[turn]]
        return update

    def check(self, values: Any) -> None:
        """Refuse a state that is not the one after the last turn."""
        said = values.get("by_name", values.get("messages"))
        assert len(said) == 2 * TURNS
        last = said[f"a{TURNS - 1}"] if isinstance(said, dict) else said[-1]
        assert last == self.answers[-1]


def _name(names: random.Random) -> str:
    drawn = f"{names.getrandbits(128):032x}"
    return "-".join((drawn[:8], drawn[8:12], drawn[12:16], drawn[16:20], drawn[20:]))


@dataclass
class Player:
    """A saver in a place, and what it took: times of the clock, then of the processor."""

    place: Place
    opened: Opener
    turns: list[tuple[float, float]] = field(default_factory=list)
    loads: list[tuple[float, float]] = field(default_factory=list)
    size: int = 0

    def typical(self, taken: list[tuple[float, float]], which: int) -> float:
        return median(each[which] for each in taken)


async def _timed(call: Awaitable[Any]) -> tuple[float, float]:
    start, used = time.perf_counter(), time.process_time()
    await call
    return time.perf_counter() - start, time.process_time() - used


async def play(players: list[Player], shape: Shape) -> None:
    """Run all turns of a shape, the players in rotation, and cold loads at the end."""
    conversation = Play(shape)
    for each in players:
        each.size = -await empty_size(each.opened, each.place)
    async with AsyncExitStack() as stack:
        graphs = [
            conversation.graph(await stack.enter_async_context(each.opened())) for each in players
        ]
        pairs = list(zip(players, graphs, strict=True))
        for turn in range(TURNS):
            pairs = pairs[1:] + pairs[:1]
            for each, graph in pairs:
                each.turns.append(await _timed(graph.ainvoke(conversation.question(turn), THREAD)))
    for _ in range(LOADS):
        players.reverse()
        for each in players:
            await _cold_load(each, conversation)
    for each in players:
        each.size += await each.place.bytes_stored()


async def _cold_load(player: Player, conversation: Play) -> None:
    """Time an `aget_state` by a connected saver that has read another thread only."""
    async with player.opened() as saver:
        graph = conversation.graph(saver)
        await graph.aget_state({"configurable": {"thread_id": "nobody"}})
        gc.collect()
        player.loads.append(await _timed(graph.aget_state(THREAD)))
        conversation.check((await graph.aget_state(THREAD)).values)


async def _players(places: Places, database: str) -> list[Player]:
    theirs, ours = await places.new(database), await places.new(database)
    opened: Opener = partial(pooled_saver, theirs)
    if database == "SQLite":
        opened = partial(AsyncSqliteSaver.from_conn_string, str(theirs.path))
    return [Player(theirs, opened), Player(ours, partial(LocusSaver, provider(ours)))]


HEAD = (
    "shape",
    "on",
    "KB",
    "turn",
    "turn / theirs",
    "processor / theirs",
    "cold load",
    "load / theirs",
    "processor / theirs",
)


async def shapes(places: Places) -> list[Part]:
    """Measure the savers over all shapes, database by database."""
    part = Part("LangGraph savers over the table of shapes", HEAD)
    for database in ("SQLite", "PostgreSQL"):
        for shape in (*SHAPES, DELTA):
            players = await _players(places, database)
            theirs, ours = players
            await play(players, shape)
            _add(part, f"{shape.name}", database, theirs, ours)
    part.notes += [
        f"Milliseconds: the median of the last {LAST} of {TURNS} turns, and of {LOADS} loads by",
        "savers that are connected and have read another thread. Bytes are those of the database.",
        "The time of the processor is that of this process: without a server of a database.",
    ]
    return [part]


def _add(part: Part, name: str, database: str, theirs: Player, ours: Player) -> None:
    turn = [each.typical(each.turns[-LAST:], 0) for each in (ours, theirs)]
    load = [each.typical(each.loads, 0) for each in (ours, theirs)]
    used = [
        ours.typical(taken, 1) / theirs.typical(other, 1)
        for taken, other in (
            (ours.turns[-LAST:], theirs.turns[-LAST:]),
            (ours.loads, theirs.loads),
        )
    ]
    part.lines.append(
        (
            name,
            database,
            f"{ours.size / 1e3:.0f}",
            f"{turn[0] * 1e3:.3g}",
            f"{turn[0] / turn[1]:.2f}",
            f"{used[0]:.2f}",
            f"{load[0] * 1e3:.3g}",
            f"{load[0] / load[1]:.2f}",
            f"{used[1]:.2f}",
        )
    )
    is_delta = name == DELTA.name
    part.bars += [
        Row(f"{database}, {name}: turn / theirs", turn[0] / turn[1], 1.0 if is_delta else 0.8),
        Row(f"{database}, {name}: cold load / theirs", load[0] / load[1], 1.0),
    ]
