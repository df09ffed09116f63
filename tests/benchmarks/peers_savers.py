"""LangGraph's savers and ours under one real graph: bytes, turns, cold loads."""

from __future__ import annotations

import random
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Annotated, Any, TypedDict

import orjson
from conversations import Talk
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from peers_figures import LOADS, MARKS, TIME_COLUMNS, TURNS, Part, Times, elapsed
from peers_places import Place, Places, provider
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool
from rows import Row

from locus_memory import open_backend
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.integrations.langgraph import LocusSaver

POOL = 16
THREAD: Any = {"configurable": {"thread_id": "t"}}
Opener = Callable[[], AbstractAsyncContextManager[Any]]


def appended(messages, writes):
    return [*messages, *(message for write in writes for message in write)]


class Plain(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


class Delta(TypedDict):
    messages: Annotated[list[AnyMessage], DeltaChannel(appended)]


class Dialogue:
    """Messages with names of their own, the same in every run."""

    def __init__(self, turns: int) -> None:
        talk, names = Talk(), random.Random(5)
        self.questions: list[HumanMessage] = []
        self.answers: list[AIMessage] = []
        for _ in range(turns):
            question, answer = (said["content"] for said in talk.turn())
            self.questions.append(HumanMessage(question, id=_name(names)))
            self.answers.append(AIMessage(answer, id=_name(names)))

    def graph(self, saver: Any, schema: Any = Plain) -> Any:
        """Return a graph of one node, so that a turn makes three checkpoints."""

        async def model(state):
            return {"messages": [self.answers[len(state["messages"]) // 2]]}

        builder = StateGraph(schema)
        builder.add_node("model", model)
        builder.add_edge(START, "model")
        builder.add_edge("model", END)
        return builder.compile(checkpointer=saver)

    def json_of(self, turns: int) -> int:
        """Return the bytes of the least JSON that keeps the state after so many turns."""
        pairs = zip(self.questions[:turns], self.answers[:turns], strict=True)
        messages = [
            {"type": message.type, "id": message.id, "content": message.content}
            for pair in pairs
            for message in pair
        ]
        return len(orjson.dumps({"messages": messages}))


def _name(names: random.Random) -> str:
    return str(uuid.UUID(int=names.getrandbits(128), version=4))


@dataclass
class Contender:
    """A saver in a place, how to open another one there, and what it took."""

    who: str
    place: Place
    opened: Opener
    schema: Any = Plain
    times: Times = field(default_factory=Times)
    size: int = 0
    ours: bool = False


async def memory_contenders(places: Places) -> list[Contender]:
    theirs, held = await places.new("memory"), InMemorySaver()
    theirs.held = [held.storage, held.blobs, held.writes]
    ours = await places.new("memory")
    backend: Any = open_backend("memory")
    storage = backend.checkpointer.storage
    ours.held = storage._threads

    @asynccontextmanager
    async def same() -> AsyncIterator[InMemorySaver]:
        yield held

    @asynccontextmanager
    async def fresh() -> AsyncIterator[LocusSaver]:
        yield LocusSaver(DeltaCheckpointer(storage, state_type=None))

    return [
        Contender("LangGraph InMemorySaver (the same one loads)", theirs, same),
        Contender("LocusSaver", ours, fresh, ours=True),
    ]


async def sqlite_contenders(places: Places) -> list[Contender]:
    def open_theirs(place: Place) -> AbstractAsyncContextManager[Any]:
        return AsyncSqliteSaver.from_conn_string(str(place.path))

    return await _pairs(places, "SQLite", "AsyncSqliteSaver", open_theirs)


@asynccontextmanager
async def pooled_saver(place: Place) -> AsyncIterator[AsyncPostgresSaver]:
    """Open LangGraph's saver on a pool, as its documentation does."""
    settings = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    async with AsyncConnectionPool(place.url, min_size=1, max_size=POOL, kwargs=settings) as pool:
        saver = AsyncPostgresSaver(pool)
        await saver.setup()
        yield saver


async def postgresql_contenders(places: Places) -> list[Contender]:
    return await _pairs(places, "PostgreSQL", "AsyncPostgresSaver", pooled_saver)


async def redis_contenders(places: Places) -> list[Contender]:
    place = await places.new("Redis")
    return [Contender("LocusSaver", place, partial(LocusSaver, provider(place)), ours=True)]


async def _pairs(places: Places, database: str, who: str, open_theirs: Any) -> list[Contender]:
    """Return theirs and ours, each with plain channels and with DeltaChannel."""
    made = []
    for schema, mark in ((Plain, ""), (Delta, ", DeltaChannel")):
        theirs, ours = await places.new(database), await places.new(database)
        opened = partial(open_theirs, theirs)
        made.append(Contender(f"LangGraph {who}{mark}", theirs, opened, schema))
        opened = partial(LocusSaver, provider(ours))
        made.append(Contender(f"LocusSaver{mark}", ours, opened, schema, ours=True))
    return made


async def converse(contenders: list[Contender], dialogue: Dialogue) -> None:
    """Run all turns, the contenders in rotation, and a cold load at each of the marks."""
    for each in contenders:
        each.size = -await empty_size(each.opened, each.place)
    async with AsyncExitStack() as stack:
        graphs = [
            dialogue.graph(await stack.enter_async_context(each.opened()), each.schema)
            for each in contenders
        ]
        pairs = list(zip(contenders, graphs, strict=True))
        for turn in range(1, TURNS + 1):
            question = {"messages": [dialogue.questions[turn - 1]]}
            pairs = pairs[1:] + pairs[:1]
            for each, graph in pairs:
                each.times.saves.append(await elapsed(graph.ainvoke(question, THREAD)))
            if turn in MARKS:
                for each in contenders:
                    each.times.loads[turn] = await cold_loads(each, dialogue, turn)
    for each in contenders:
        each.size += await each.place.bytes_stored()


async def empty_size(opened: Opener, place: Place) -> int:
    """Set a place up, and return what its empty tables and indexes take."""
    async with opened() as saver:
        await saver.aget_tuple({"configurable": {"thread_id": "nobody"}})
    return await place.bytes_stored()


async def cold_loads(contender: Contender, dialogue: Dialogue, turn: int) -> list[float]:
    """Return the times of `aget_state` by savers that have read another thread only."""
    taken = []
    for _ in range(LOADS):
        async with contender.opened() as saver:
            graph = dialogue.graph(saver, contender.schema)
            await graph.aget_state({"configurable": {"thread_id": "nobody"}})
            taken.append(await elapsed(graph.aget_state(THREAD)))
            state = await graph.aget_state(THREAD)
            assert len(state.values["messages"]) == 2 * turn
            assert state.values["messages"][-1] == dialogue.answers[turn - 1]
    return taken


async def savers(places: Places) -> list[Part]:
    """Measure all savers, database by database."""
    dialogue = Dialogue(TURNS)
    final = dialogue.json_of(TURNS)
    head = ("saver", "on", "bytes / JSON", *TIME_COLUMNS, "turn, ours / theirs")
    part = Part("LangGraph savers: 200 turns of three checkpoints", head)
    for contenders in (
        await memory_contenders(places),
        await sqlite_contenders(places),
        await postgresql_contenders(places),
        await redis_contenders(places),
    ):
        await converse(contenders, dialogue)
        for each in contenders:
            _add(part, each, contenders, final)
    part.notes += [
        "Milliseconds, p50 / p95: a save is a whole turn (`ainvoke`), of the 20 about turns 10,",
        "100 and 200; a load is `aget_state` by a fresh, connected saver, 20 times.",
        f"One JSON of the final state is {final / 1e6:.3f} MB: type, id and content of messages.",
        "Bytes are those of the database, indexes included, less those of the empty one.",
        "LangGraph's Redis saver needs RedisJSON and RediSearch, which this Redis has not.",
    ]
    return [part]


def _add(part: Part, each: Contender, contenders: list[Contender], final: int) -> None:
    """Add a contender's line, and its bars if it is ours, in a database, with plain channels."""
    rivals = [
        other
        for other in contenders
        if not other.ours and other.schema is each.schema and each.ours
    ]
    size, on = each.size / final, each.place.database
    turn, ratio = median(each.times.saves), ""
    has_bars = each.ours and each.schema is Plain and on != "memory"
    if has_bars:
        part.bars.append(Row(f"{each.who} on {on}: bytes / JSON of the final state", size, 2.0))
    for rival in rivals:
        ratio = f"{turn / median(rival.times.saves):.2f}"
        figure = f"{each.who} on {on}: median turn / theirs"
        if has_bars:
            part.bars.append(Row(figure, turn / median(rival.times.saves), 1.0))
    part.lines.append((each.who, on, f"{size:.3g}", *each.times.columns(), ratio))
