"""50 threads at once on PostgreSQL: through a real graph, without it, and over a network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from statistics import median
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from peers_distance import at_a_distance, round_trip
from peers_figures import Part, elapsed
from peers_places import Place, Places
from peers_savers import POOL, THREAD, Dialogue, pooled_saver
from rows import Row
from typing_extensions import override

from locus_memory import open_backend
from locus_memory.integrations.langgraph import LocusSaver

CROWD, TURNS, ROUNDS = 50, 8, 3
AWAY = 0.001
OURS = "LocusSaver, pool_size=16"
SHIPPED = "AsyncPostgresSaver, as shipped, a pool of 16"
Rates = dict[str, list[float]]
Live = Callable[[Any, str], Coroutine[Any, Any, None]]


class Recorder(InMemorySaver):
    """Keeps what a graph asked of its saver."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, Any, tuple[Any, ...]]] = []

    def _record(self, verb: str, config: Any, *arguments: Any) -> None:
        names = ("checkpoint_ns", "checkpoint_id")
        kept = {name: config["configurable"].get(name) for name in names}
        self.calls.append((verb, {k: v for k, v in kept.items() if v is not None}, arguments))

    @override
    async def aget_tuple(self, config):
        self._record("aget_tuple", config)
        return await super().aget_tuple(config)

    @override
    async def aput(self, config, *arguments):
        self._record("aput", config, *arguments)
        return await super().aput(config, *arguments)

    @override
    async def aput_writes(self, config, *arguments):
        self._record("aput_writes", config, *arguments)
        await super().aput_writes(config, *arguments)


def through_a_graph(dialogue: Dialogue) -> Live:
    """Return a life of one thread: all its turns."""

    async def live(saver: Any, thread: str) -> None:
        graph = dialogue.graph(saver)
        for question in dialogue.questions:
            config = {"configurable": {"thread_id": thread}}
            await graph.ainvoke({"messages": [question]}, config)

    return live


async def replayed(dialogue: Dialogue) -> Live:
    """Return the same life, of nothing but the calls of the saver, each awaited in its turn."""
    recorder = Recorder()
    graph = dialogue.graph(recorder)
    for question in dialogue.questions:
        await graph.ainvoke({"messages": [question]}, THREAD)

    async def live(saver: Any, thread: str) -> None:
        for verb, kept, arguments in recorder.calls:
            config = {"configurable": {"checkpoint_ns": "", **kept, "thread_id": thread}}
            await getattr(saver, verb)(config, *arguments)

    return live


async def crowd(places: Places) -> list[Part]:
    """Measure turns a second of each way to use PostgreSQL, in rotation."""
    dialogue = Dialogue(TURNS)
    graph, calls = through_a_graph(dialogue), await replayed(dialogue)
    near = ("a graph", "the same calls without a graph")
    measured: list[tuple[str, Rates]] = []
    async with AsyncExitStack() as stack:
        ways = await _ways(await _places(places), stack)
        for where, live in zip(near, (graph, calls), strict=True):
            measured.append((where, await _rates(ways, live, where)))
    async with AsyncExitStack() as stack:
        pair = await _places(places)
        for place in pair:
            place.url = await stack.enter_async_context(at_a_distance(place.url, AWAY))
        taken = await round_trip(pair[0].url)
        where = f"a graph, a round trip of {taken * 1e3:.1f} ms"
        measured.append((where, await _rates(await _ways(pair, stack), graph, where)))
    return [_part(measured)]


def _part(measured: list[tuple[str, Rates]]) -> Part:
    columns = [f"{name}, {where}" for where, _ in measured for name in ("turns/s", "ours / it")]
    title = f"LangGraph savers on PostgreSQL: {CROWD} threads at once, {TURNS} turns each"
    part = Part(title, ("saver", *columns))
    for who in measured[0][1]:
        line = [who]
        for where, rates in measured:
            ratio = median(mine / it for mine, it in zip(rates[OURS], rates[who], strict=True))
            line += [f"{median(rates[who]):.0f}", f"{ratio:.2f}"]
            # On one machine a saver that stores nothing is hardly more than that.
            if who == SHIPPED and where == measured[-1][0]:
                figure = f"LocusSaver / AsyncPostgresSaver as shipped: turns/s, {where}"
                part.bars.append(Row(figure, ratio, 3.0, at_least=True))
        part.lines.append(tuple(line))
    part.notes += [
        "Without a graph: the calls that the graph made of its saver, replayed in their order.",
        "With a round trip: through a relay that holds back what it passes on, for all alike.",
        "The bar is for that: without one, what a graph itself takes leaves little room for it.",
    ]
    return part


async def _places(places: Places) -> tuple[Place, Place]:
    """Return one for theirs and one for ours."""
    return await places.new("PostgreSQL"), await places.new("PostgreSQL")


async def _ways(pair: tuple[Place, Place], stack: AsyncExitStack) -> dict[str, Callable[[], Any]]:
    """Return what makes the saver of a thread, by what it is called."""
    theirs, ours = pair
    pooled = await stack.enter_async_context(pooled_saver(theirs))
    alone = AsyncPostgresSaver.from_conn_string(theirs.url)
    single = await stack.enter_async_context(alone)
    saver = LocusSaver(await stack.enter_async_context(open_backend(ours.url, pool_size=POOL)))
    return {
        SHIPPED: lambda: pooled,
        "AsyncPostgresSaver, from_conn_string": lambda: single,
        "AsyncPostgresSaver, one a thread, a pool of 16": lambda: AsyncPostgresSaver(pooled.conn),
        OURS: lambda: saver,
        "InMemorySaver, what the rest costs": InMemorySaver,
    }


async def _rates(ways: dict[str, Callable[[], Any]], live: Live, name: str) -> Rates:
    """Return the turns a second of each way, in each of the rounds."""
    rates: Rates = {who: [] for who in ways}
    for attempt in range(ROUNDS):
        for who, made in ways.items():
            lives = (live(made(), f"{who}-{name}-{attempt}-{n}") for n in range(CROWD))
            rates[who].append(CROWD * TURNS / await elapsed(asyncio.gather(*lives)))
    return rates
