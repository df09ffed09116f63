"""Measure what a lowest relevance leaves out: `python tests/benchmarks/relevance.py FILE`.

`FILE` has conversations in the format of `locus-memory eval`. Each turn is a memory that is valid
from its session's date. The answers to three questions are printed:

- How many of the 200 questions of `unrelated.txt`, which none of the memories answers, find
  nothing? And how many questions of the file still find something?
- Which share of the evidence is among the first ten, by lowest relevance?
- Which share with each blend of recall, if a question is asked a day after the last session? The
  trust in each memory is 0.5.

`--embedder local` adds vectors. The relevance is the one of `HybridSearch` and of recall.
"""

from __future__ import annotations

import argparse
import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.evaluation.dataset import read_dataset
from locus_memory.memory.blend import Blend
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.retrieval.embedders.registry import get_embedder
from locus_memory.retrieval.embedders.wrappers.caching import CachingEmbedder
from locus_memory.retrieval.hybrid import Hit, HybridSearch
from locus_memory.retrieval.turns import index_turns

UNRELATED = Path(__file__).with_name("unrelated.txt")
LEVELS = (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
FIRST = 10


@dataclass
class Asked:
    """A question, its evidence, and its hits."""

    evidence: frozenset[str]
    hits: Sequence[Hit]
    asked_at: datetime

    def recall(self, hits: Sequence[Hit]) -> float:
        """Return the share of the evidence among the first hits."""
        found = {hit.item.metadata["turn"] for hit in hits[:FIRST]}
        return len(self.evidence & found) / len(self.evidence)

    def above(self, least: float) -> list[Hit]:
        return [hit for hit in self.hits if hit.relevance >= least]

    def blended(self, blend: Blend) -> list[Hit]:
        """Return the relevant hits in the order of a blend."""
        hits = self.above(blend.min_relevance)
        found = [(_memory(hit), hit.relevance) for hit in hits]
        return [hits[place] for place in blend.order(found, self.asked_at)]


def _memory(hit: Hit) -> Memory:
    valid = {"valid_from": hit.item.metadata.get("date")}
    return Memory(MemoryType.USER, hit.item.key, hit.text or "-", valid)


async def ask(path: Path, embedder) -> tuple[list[Asked], list[Asked]]:
    """Return the questions of the file, and the unrelated questions to each conversation."""
    related, unrelated = [], []
    questions = UNRELATED.read_text(encoding="utf-8").splitlines()
    for conversation in read_dataset(path):
        last = datetime.min.replace(tzinfo=UTC)
        async with SQLiteStore(":memory:") as store:
            for session in conversation.sessions:
                place = ("turns",)
                puts = await index_turns(place, session.turns, embedder, session=session.name)
                await store.put_batch(puts)
                said = [turn.said_at for turn in session.turns if turn.said_at]
                last = max([last, *(each.replace(tzinfo=UTC) for each in said)])
            asked_at = last + timedelta(days=1)
            search = HybridSearch(store, embedder)
            for question in conversation.questions:
                hits = await search.search(place, question.text, 100)
                related.append(Asked(frozenset(question.evidence), hits, asked_at))
            for question in questions:
                hits = await search.search(place, question, 100)
                unrelated.append(Asked(frozenset(), hits, asked_at))
    return related, unrelated


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def report(related: Sequence[Asked], unrelated: Sequence[Asked]) -> None:
    print(f"{len(related)} questions, {len(unrelated)} unrelated ones")
    print("min_score  unrelated find nothing  related find something  R@10")
    for least in LEVELS:
        nothing = mean([not each.above(least) for each in unrelated])
        something = mean([bool(each.above(least)) for each in related])
        recall = mean([each.recall(each.above(least)) for each in related])
        print(f"{least:9.1f}  {nothing:22.3f}  {something:22.3f}  {recall:.3f}")
    print("order      min_relevance  R@10")
    # Without recency, the order is that of the relevance.
    blends = {"relevance": ("recency", (1.0, 0.0)), "recency": ("recency", None)}
    for told, (name, weights) in {**blends, "trust": ("trust", None)}.items():
        for least in (0.0, 0.3, 0.5):
            blend = Blend(name=name, weights=weights, min_relevance=least)
            recall = mean([each.recall(each.blended(blend)) for each in related])
            print(f"{told:10} {least:13.1f}  {recall:.3f}")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--embedder")
    options = parser.parse_args()
    made = None if options.embedder is None else CachingEmbedder(get_embedder(options.embedder))
    report(*await ask(options.file, made))


if __name__ == "__main__":
    asyncio.run(main())
