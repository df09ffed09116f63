"""Measure which of two values ranks first: `python tests/benchmarks/changed_values.py`.

41 values of one user that changed, in sentences of our own and five languages: each with the old
sentence of 2022, the new one of 2024, and a question. All are memories of one namespace. Some have
a question about the past as well, whose answer is the old sentence. The table counts the questions
for which the right sentence ranks above the other one, and among the first three.
`--embedder NAME` adds vectors.
"""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from locus_memory import HybridSearch, SearchOptions, get_store
from locus_memory.retrieval.embedders import get_embedder
from locus_memory.retrieval.turns import Turn, index_turns

VALUES = Path(__file__).with_name("changed_values.tsv")
PLACE = ("changed",)
OLD, NEW = datetime(2022, 3, 1, tzinfo=UTC), datetime(2024, 2, 1, tzinfo=UTC)
FIRST = 3


@dataclass(frozen=True)
class Change:
    """A value that changed, and the questions about it."""

    old: str
    new: str
    now: str
    past: str | None


def read() -> list[Change]:
    """Return the changes of the file."""
    lines = [line.split("\t") for line in VALUES.read_text(encoding="utf-8").splitlines()]
    return [Change(*line[1:4], past=line[4] if len(line) > 4 else None) for line in lines]


async def order(changes: list[Change], embedder, options: SearchOptions) -> dict[str, list[bool]]:
    """Return for each kind of question whether the right one is above, and among the first."""
    found: dict[str, list[bool]] = {"now above": [], "now @3": [], "past above": [], "past @3": []}
    async with get_store("sqlite::memory:") as store:
        for number, change in enumerate(changes):
            for kind, text, day in (("old", change.old, OLD), ("new", change.new, NEW)):
                turn = Turn(text=text, speaker="Ada", said_at=day + timedelta(days=number), id=kind)
                name = f"{number}-{kind}"
                await store.put_batch(await index_turns(PLACE, [turn], embedder, session=name))
        search = HybridSearch(store, embedder, options=options)
        for number, change in enumerate(changes):
            for kind, question, right in (("now", change.now, "new"), ("past", change.past, "old")):
                if question is None:
                    continue
                hits = await search.search(PLACE, question, 100)
                ranks = {hit.item.metadata["session"]: place for place, hit in enumerate(hits)}
                wrong = f"{number}-{'old' if right == 'new' else 'new'}"
                place = ranks.get(f"{number}-{right}", 100)
                found[f"{kind} above"].append(place < ranks.get(wrong, 100))
                found[f"{kind} @3"].append(place < FIRST)
    return found


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embedder")
    options = parser.parse_args()
    embedder = None if options.embedder is None else get_embedder(options.embedder)
    print(
        "| rule | now: new above old | now: in the first 3 | past: old above new | in the first 3 |"
    )
    for name, setting in (("off", SearchOptions(newer=False)), ("on", SearchOptions())):
        counts = await order(read(), embedder, setting)
        print(f"| {name} | {' | '.join(f'{sum(row)} of {len(row)}' for row in counts.values())} |")


if __name__ == "__main__":
    asyncio.run(main())
