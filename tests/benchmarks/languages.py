"""Measure search in 28 languages: `python tests/benchmarks/languages.py`.

203 short notes, each with a query of our own, lie in one namespace. Queries inflect the words of
the notes, and some have typos or emoji. Chinese, Japanese, Korean and Thai have twenty and more,
the others two to six. The table has hit@1 and hit@3: the share of queries whose note is first, or
among the first three. `--embedder NAME` adds vectors, and `--store URL` measures another store.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import defaultdict
from pathlib import Path

from locus_memory import HybridSearch, get_store
from locus_memory.retrieval.embedders import get_embedder
from locus_memory.retrieval.turns import Turn, index_turns

PAIRS = Path(__file__).with_name("languages.tsv")
PLACE = ("languages",)
FIRST = 3


def read() -> list[tuple[str, str, str]]:
    """Return language, note and query of each pair."""
    lines = PAIRS.read_text(encoding="utf-8").splitlines()
    return [(parts[0], parts[1], parts[2]) for parts in (line.split("\t") for line in lines)]


async def measure(where: str, embedder, mode) -> dict[str, list[int]]:
    """Return for each language the place of the note of each query, from 0; at most 3."""
    pairs = read()
    found: dict[str, list[int]] = defaultdict(list)
    async with get_store(where) as store:
        for number, (_, note, _) in enumerate(pairs):
            # A session each, so that notes are not neighbours.
            turns = [Turn(text=note, id=str(number))]
            await store.put_batch(await index_turns(PLACE, turns, embedder, session=str(number)))
        search = HybridSearch(store, embedder)
        for number, (language, _, query) in enumerate(pairs):
            hits = await search.search(PLACE, query, FIRST, mode=mode)
            turns = [hit.item.metadata["turn"] for hit in hits]
            found[language].append(turns.index(str(number)) if str(number) in turns else FIRST)
        await store.clear_namespace(PLACE)
    return found


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", default="sqlite::memory:")
    parser.add_argument("--embedder")
    options = parser.parse_args()
    embedder = None if options.embedder is None else get_embedder(options.embedder)
    modes = ("text",) if embedder is None else ("text", "vector", "hybrid")
    tables = {mode: await measure(options.store, embedder, mode) for mode in modes}
    names = " | ".join(f"{mode}: hit@1 | hit@3" for mode in modes)
    print(f"| language | queries | {names} |")
    for language in [*tables["text"], "all"]:
        rows = [
            [place for name, each in table.items() for place in each if language in (name, "all")]
            for table in tables.values()
        ]
        shares = " | ".join(
            f"{sum(place < first for place in row) / len(row):.2f}"
            for row in rows
            for first in (1, FIRST)
        )
        print(f"| {language} | {len(rows[0])} | {shares} |")


if __name__ == "__main__":
    asyncio.run(main())
