"""The Locus SDK's checkpointers and ours with its own agent's state: bytes, saves, cold loads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson
from conversations import Talk
from locus.core.messages import Message
from locus.core.state import AgentState
from locus.memory import DeltaCheckpointer as SdkDeltaCheckpointer
from locus.memory.backends import (
    FileCheckpointer,
    MemoryCheckpointer,
    PgCheckpointer,
    postgresql_checkpointer,
    redis_checkpointer,
)
from peers_figures import LOADS, MARKS, TIME_COLUMNS, TURNS, Part, Times, elapsed
from peers_places import Place, Places, provider
from rows import Row

from locus_memory import get_checkpointer, open_backend
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.integrations.locus import LocusCheckpointer


@dataclass
class Contender:
    """A checkpointer in a place, how to make another one there, and what it took."""

    who: str
    place: Place
    make: Callable[[], Any]
    times: Times = field(default_factory=Times)
    size: int = 0
    ours: bool = False

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Any]:
        made = self.make()
        try:
            yield made
        finally:
            # What is in memory would be gone.
            if self.place.database != "memory":
                await made.close()


async def memory_contenders(places: Places) -> list[Contender]:
    plain, delta, ours, bare = [await places.new("memory") for _ in range(4)]
    held, storage = MemoryCheckpointer(), SdkDeltaCheckpointer().storage
    plain.held, delta.held = held._storage, storage._storage
    adapted: Any = open_backend("memory")
    alone: Any = open_backend("memory")
    ours.held = adapted.checkpointer.storage._threads
    bare.held = alone.checkpointer.storage._threads
    return [
        Contender("SDK MemoryCheckpointer (the same one loads)", plain, lambda: held),
        Contender("SDK DeltaCheckpointer", delta, lambda: SdkDeltaCheckpointer(storage)),
        Contender("LocusCheckpointer", ours, partial(_adapted, adapted), ours=True),
        Contender("get_checkpointer", bare, partial(_fresh, alone), ours=True),
    ]


def _fresh(backend: Any) -> Any:
    return DeltaCheckpointer(backend.checkpointer.storage, state_type=AgentState)


def _adapted(backend: Any) -> Any:
    return LocusCheckpointer(_fresh(backend))


async def _on(places: Places, database: str, **theirs: Callable[[Place], Any]) -> list[Contender]:
    """Return their checkpointers of a database, each in a place of its own, and ours."""
    made = []
    for who, make in theirs.items():
        place = await places.new(database)
        made.append(Contender(f"SDK {who}", place, partial(make, place)))
    ours, bare = await places.new(database), await places.new(database)
    adapted = partial(LocusCheckpointer, provider(ours))
    alone = partial(get_checkpointer, provider(bare), state_type=AgentState)
    made.append(Contender("LocusCheckpointer", ours, adapted, ours=True))
    made.append(Contender("get_checkpointer", bare, alone, ours=True))
    return made


async def groups(places: Places) -> list[list[Contender]]:
    return [
        await memory_contenders(places),
        await _on(places, "files", FileCheckpointer=lambda place: FileCheckpointer(place.path)),
        await _on(places, "SQLite"),
        await _on(
            places,
            "PostgreSQL",
            postgresql_checkpointer=lambda place: postgresql_checkpointer(dsn=place.url),
            PgCheckpointer=lambda place: PgCheckpointer(place.url),
        ),
        await _on(
            places, "Redis", redis_checkpointer=lambda place: redis_checkpointer(url=place.url)
        ),
    ]


def conversation() -> list[AgentState]:
    """Return the state of an agent after each turn."""
    talk, state, states = Talk(), AgentState(), []
    for _ in range(TURNS):
        question, answer = (said["content"] for said in talk.turn())
        state = state.with_message(Message.user(question))
        state = state.with_message(Message.assistant(answer))
        states.append(state)
    return states


async def save_all(contenders: list[Contender], states: list[AgentState]) -> None:
    """Save all states, the contenders in rotation, with cold loads at each of the marks."""
    for each in contenders:
        async with each.opened() as checkpointer:
            await checkpointer.load("nobody")
        each.size = -await each.place.bytes_stored()
    async with AsyncExitStack() as stack:
        pairs = [(each, await stack.enter_async_context(each.opened())) for each in contenders]
        for turn, state in enumerate(states, 1):
            pairs = pairs[1:] + pairs[:1]
            for each, checkpointer in pairs:
                each.times.saves.append(await elapsed(checkpointer.save(state, "t")))
            if turn in MARKS:
                for each in contenders:
                    each.times.loads[turn] = await cold_loads(each, state)
    for each in contenders:
        each.size += await each.place.bytes_stored()


async def cold_loads(contender: Contender, state: AgentState) -> list[float]:
    """Return the times of loads by checkpointers that have asked for another thread only."""
    taken = []
    for _ in range(LOADS):
        async with contender.opened() as checkpointer:
            await checkpointer.load("nobody")
            taken.append(await elapsed(checkpointer.load("t")))
            loaded = await checkpointer.load("t")
            texts = [message.content for message in loaded.messages]
            assert texts == [message.content for message in state.messages]
    return taken


async def checkpointers(places: Places) -> list[Part]:
    """Measure all checkpointers, database by database."""
    states = conversation()
    final = len(orjson.dumps(states[-1].to_checkpoint()))
    part = Part(
        "Locus SDK checkpointers: 200 saves of its AgentState",
        ("checkpointer", "on", "bytes / JSON", *TIME_COLUMNS),
    )
    for contenders in await groups(places):
        await save_all(contenders, states)
        for each in contenders:
            size = each.size / final
            on = each.place.database
            part.lines.append((each.who, on, f"{size:.3g}", *each.times.columns()))
            if each.ours:
                figure = f"{each.who} on {on}: bytes / JSON of the final state"
                part.bars.append(Row(figure, size, 2.0))
    part.notes += [
        "Milliseconds, p50 / p95: of the 20 saves about turns 10, 100 and 200; loads are by a",
        "fresh, connected checkpointer, 20 times.",
        f"One JSON of the final state is {final / 1e6:.3f} MB.",
        "Bytes are those of the database, indexes included, less those of the empty one.",
        "Of memory, the texts and blobs in it are counted, each once, and no objects around them.",
        "Its checkpointers on OpenSearch, MySQL, S3, OCI and Oracle need servers not at hand.",
    ]
    return [part]
