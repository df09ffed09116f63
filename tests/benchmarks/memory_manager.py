"""What memory adds to a turn that has nothing to extract."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

from rows import Row

from locus_memory.agent import Agent
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.chat import ScriptedModel
from locus_memory.memory.extraction.distillate import Distillate, NoteDraft
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.messages import Message
from locus_memory.registry import open_backend
from locus_memory.state import AgentState

STORED = 5_000
TURNS = 200
THREAD = 20
LONG_RUN = 1_000
PAUSE = 0.02
VOCABULARY = 4_000
SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
QUESTION = "What should I know about {} before I talk to {} and {} again on Monday?"


class NothingToSay:
    """An extractor that finds nothing worth keeping."""

    name = "nothing"

    async def extract(self, messages, memories):
        return []


class Distiller(NothingToSay):
    """An extractor that makes an episode of each session."""

    def __init__(self) -> None:
        self.calls = 0

    async def distill(self, messages, memories):
        self.calls += 1
        return Distillate(notes=(NoteDraft(f"{len(messages)} messages"),))


async def turns(folder: Path) -> list[Row]:
    """Session start and end of a turn, on sqlite, with many memories in the user's scope."""
    generator = random.Random(7)
    words = ["".join(generator.choices(SYLLABLES, k=3)) for _ in range(VOCABULARY)]
    # Some words are said often and most of them seldom, as in any language; the most frequent
    # of a language are stop words, which the questions below have enough of.
    weights = [1 / (rank + 30) for rank in range(VOCABULARY)]

    def sentence(count: int) -> list[str]:
        return generator.choices(words, weights, k=count)

    async with SQLiteStore(folder / "memory.db") as store:
        filler = LLMMemoryManager(store, max_memories=STORED)
        await filler.for_user("ada").save(
            Memory(kind, f"fact_{n}", f"Ada said {' '.join(sentence(8))} in {n}.")
            for n in range(STORED)
            for kind in [list(MemoryType)[n % len(MemoryType)]]
        )
        manager = LLMMemoryManager(
            store, extract_fn=NothingToSay(), extract_mode="background", max_memories=STORED
        )
        await manager.open()
        rows = [
            await _row("nothing said", manager, lambda: QUESTION.format(*sentence(3)), said=False),
            await _row("its messages queued", manager, lambda: QUESTION.format(*sentence(3))),
        ]
        await manager.close()
        tending = LLMMemoryManager(
            store,
            extract_fn=NothingToSay(),
            max_memories=STORED,
            extract_mode="session_end",
        )
        await tending.open()
        rows.append(
            await _row(
                "its messages queued, tended", tending, lambda: QUESTION.format(*sentence(3))
            )
        )
        await tending.close()
    return rows


async def sessions(folder: Path) -> list[Row]:
    """The end of a turn of a memory that tends itself, on sqlite, with many memories."""
    generator = random.Random(7)
    words = ["".join(generator.choices(SYLLABLES, k=3)) for _ in range(VOCABULARY)]

    def sentence(count: int) -> str:
        return " ".join(generator.choices(words, k=count))

    async with SQLiteStore(folder / "tending.db") as store:
        filler = LLMMemoryManager(store, max_memories=STORED)
        await filler.for_user("ada").save(
            Memory(kind, f"fact_{n}", f"Ada said {sentence(8)} in {n}.")
            for n in range(STORED)
            for kind in [list(MemoryType)[n % len(MemoryType)]]
        )
        model = Distiller()
        manager = LLMMemoryManager(
            store, extract_fn=model, max_memories=STORED, extract_mode="session_end"
        )
        await manager.open()
        ends = [
            taken
            for thread in range(TURNS // THREAD)
            for taken in await _session(manager, f"thread {thread}", sentence)
        ]
        await manager.sync_now()
        await manager.close()
    detail = f"p95 {sorted(ends)[int(len(ends) * 0.95)] * 1e3:.2f} ms, {model.calls} calls"
    name = f"end of a turn, buffered for its session, {STORED:,} stored, ms"
    return [Row(name, median(ends) * 1e3, 2, detail)]


async def agents(folder: Path) -> list[Row]:
    """What a memory that tends itself adds to 1,000 turns of an agent, from an empty file on.

    An agent without memory takes each turn right before, with a file of its own.
    """
    generator = random.Random(7)
    words = ["".join(generator.choices(SYLLABLES, k=3)) for _ in range(VOCABULARY)]
    texts = [" ".join(generator.choices(words, k=20)) for _ in range(LONG_RUN)]
    bare: list[float] = []
    tended: list[float] = []
    async with (
        open_backend(f"sqlite:{folder / 'bare.db'}") as plain,
        open_backend(f"sqlite:{folder / 'agent.db'}") as backend,
    ):
        distiller = Distiller()
        manager = LLMMemoryManager(backend.store, extract_fn=distiller, extract_mode="session_end")
        await manager.open()
        without = Agent(ScriptedModel(texts), checkpointer=plain.checkpointer)
        agent = Agent(
            ScriptedModel(texts), checkpointer=backend.checkpointer, memory_manager=manager
        )
        for number, text in enumerate(texts):
            run = {"thread_id": f"{number // THREAD}", "user_id": "ada"}
            bare.append(await _timed(without.run(text, **run)))
            tended.append(await _timed(agent.run(text, **run)))
            await asyncio.sleep(PAUSE)
        await manager.close()
    added = median(tended) - median(bare)
    detail = f"{median(tended) * 1e3:.2f} / {median(bare) * 1e3:.2f}, {distiller.calls} calls"
    return [Row("memory that tends itself adds to a turn, ms", added * 1e3, 2, detail)]


async def _session(
    manager: LLMMemoryManager, thread: str, sentence: Callable[[int], str]
) -> list[float]:
    state = AgentState(metadata={"user_id": "ada", "thread_id": thread})
    taken = []
    for _ in range(THREAD):
        said = Message.user(sentence(30)), Message.assistant(sentence(60))
        state = state.with_messages(said)
        taken.append(await _timed(manager.on_session_end(state)))
        # People take longer between two turns than the session before takes to be distilled.
        await asyncio.sleep(PAUSE)
    return taken


async def _row(
    name: str, manager: LLMMemoryManager, ask: Callable[[], str], *, said: bool = True
) -> Row:
    starts, ends = [], []
    state = AgentState()
    for turn in range(TURNS):
        if turn % THREAD == 0:
            metadata = {"user_id": "ada", "thread_id": f"{name} {turn}"}
            state = AgentState(messages=(Message.system("You help Ada."),), metadata=metadata)
        state = state.with_message(Message.user(ask()))
        begin = time.perf_counter()
        state = await manager.on_session_start(state)
        starts.append(time.perf_counter() - begin)
        if said:
            state = state.with_message(Message.assistant(f"Here is what I know, {turn}."))
        else:
            # What was said last turn is extracted: this turn's end finds nothing new.
            await manager.on_session_end(state)
            await manager.drain()
        ends.append(await _timed(manager.on_session_end(state)))
        await manager.drain()
    both = median(map(sum, zip(starts, ends, strict=True)))
    detail = f"start {median(starts) * 1e3:.2f} ms, end {median(ends) * 1e3:.2f} ms"
    return Row(f"turn with memory, {name}, {STORED:,} stored, ms", both * 1e3, 2, detail)


async def _timed(work: Awaitable[object]) -> float:
    before = time.perf_counter()
    await work
    return time.perf_counter() - before
