"""What a run is shown: all that is known while it fits, and the words that answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from everyday import facts, fill, needs, questions
from rows import Row

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.errors import LocusMemoryError
from locus_memory.evaluation.block import Shown
from locus_memory.evaluation.block import shown as shown_of
from locus_memory.evaluation.dataset import read_dataset
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.embedders.registry import get_embedder

DATA = Path(__file__).parents[3] / "shared" / "data"
BARS = {"locomo-dev": 0.88, "beam-dev": 0.6, "memorybank-dev": 0.9}


async def shown(folder: Path) -> list[Row]:
    """Everyday messages, questions about the user, and the words of conversations."""
    rows = await _everyday("by words", None)
    try:
        embedder = get_embedder("local")
        await embedder.embed(["tea"], kind="query")
    except LocusMemoryError:
        pass
    else:
        rows += await _everyday("with the local embedder", embedder)
    for name, bar in BARS.items():
        if (DATA / f"{name}.json").is_file():
            blocks = await _words(DATA / f"{name}.json", folder / f"{name}.db")
            detail = f"{len(blocks)} questions; {mean(each.tokens for each in blocks):.0f} tokens"
            share = mean(each.recall for each in blocks)
            rows.append(Row(f"{name}: evidence in the block", share, bar, detail, at_least=True))
    return rows


async def _everyday(how: str, embedder: Embedder | None) -> list[Row]:
    """Messages that need nothing of a person, and those that do, with all facts of a person."""
    async with InMemoryStore() as store:
        manager = LLMMemoryManager(store, embedder=embedder, extract_mode="session_end")
        await fill(store, manager)
        asked = [*questions(), *questions("everyday_more.txt")]
        tails = [(await manager.plan(text)).tail for text in asked]
        needed = [(await manager.plan(text), word) for _, text, word in needs()]
        await manager.close()
    detail = f"{len(tails)} messages, {len(facts())} facts"
    told = mean(word.casefold() in (plan.block or "").casefold() for plan, word in needed if word)
    empty = mean(tail is None for tail in tails)
    return [
        Row(f"{how}: everyday messages without a tail", empty, 0.8, detail, at_least=True),
        Row(f"{how}: questions whose answer is shown", told, 1, f"{len(needed)}", at_least=True),
    ]


async def _words(path: Path, database: Path) -> Sequence[Shown]:
    async with SQLiteStore(database) as store:
        return [
            block
            for number, each in enumerate(read_dataset(path))
            async for block in shown_of(each, store, ("shown", str(number)))
        ]
