"""Documents on a public set: `python tests/benchmarks/documents_public.py FILE`.

`FILE` has conversations in the format of `locus-memory eval`, such as LoCoMo. Each session is a
document, cut as any other; the chunks of one conversation are one index. Recall@k is the share of a
question's evidence turns that are within the first k chunks. The command fails if `hybrid` has less
of it than the better of `text` and `dense`, at a depth of 5, as many as a search returns, or 10.

`--chunk-size` sets the tokens of a chunk: a session is a few chunks of the default size, so a small
one asks more of the ranking.
"""

from __future__ import annotations

import argparse
import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from documents import kinds_over

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.documents import ChunkConfig, DocumentIndex, RetrievalResult
from locus_memory.documents.fusion import Retriever
from locus_memory.evaluation.dataset import Conversation, Session, read_dataset

FIRST = (1, 5, 10)


@dataclass(frozen=True)
class Place:
    """A turn in a document, by its characters."""

    source: str
    start: int
    end: int

    def is_in(self, chunk: RetrievalResult) -> bool:
        start, end = chunk.metadata["start"], chunk.metadata["end"]
        return chunk.source == self.source and start <= self.start and self.end <= end


def written(session: Session) -> tuple[str, dict[str | None, Place]]:
    """Return the text of a session, and the place of each turn in it."""
    text, places = "", {}
    for turn in session.turns:
        said = f"{turn.speaker}: {' '.join(turn.words.split())}"
        places[turn.id] = Place(session.name, len(text), len(text) + len(said))
        text += f"{said}\n\n"
    return text, places


async def asked(conversation: Conversation, size: int) -> dict[str, list[list[float]]]:
    """Return for each kind the recall at each depth, question by question."""
    chunking = ChunkConfig(chunk_size=size, chunk_overlap=size // 8, min_chunk_size=size // 10)
    places: dict[str | None, Place] = {}
    async with InMemoryStore() as store:
        kinds = await kinds_over(store, chunking)
        filled = kinds.get("hybrid") or kinds["text"]
        assert isinstance(filled, DocumentIndex)
        for session in conversation.sessions:
            text, found = written(session)
            await filled.add(text, source=session.name)
            places |= found
        return {name: await recalls(each, conversation, places) for name, each in kinds.items()}


async def recalls(
    index: Retriever, conversation: Conversation, places: dict[str | None, Place]
) -> list[list[float]]:
    made: list[list[float]] = []
    for question in conversation.questions:
        found = await index.retrieve(question.text, top_k=max(FIRST))
        wanted = [places[each] for each in question.evidence]
        made.append([share(wanted, found[:k]) for k in FIRST])
    return made


def share(wanted: Sequence[Place], found: Sequence[RetrievalResult]) -> float:
    """Return the share of the turns that are within a chunk."""
    return sum(any(each.is_in(chunk) for chunk in found) for each in wanted) / len(wanted)


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--chunk-size", type=int, default=512)
    options = parser.parse_args()
    found: dict[str, list[list[float]]] = {}
    for conversation in read_dataset(options.file):
        for name, rows in (await asked(conversation, options.chunk_size)).items():
            found.setdefault(name, []).extend(rows)
    means = {
        name: [math.fsum(each) / len(rows) for each in zip(*rows, strict=True)]
        for name, rows in found.items()
    }
    print(f"{len(next(iter(found.values())))} questions, chunks of {options.chunk_size} tokens\n")
    print("| kind | " + " | ".join(f"recall@{k}" for k in FIRST) + " |")
    print("|---" * (len(FIRST) + 1) + "|")
    for name, row in means.items():
        print(f"| `{name}` | " + " | ".join(f"{each:.3f}" for each in row) + " |")
    if "hybrid" not in means:
        return 0
    rows = zip(FIRST, *(means[name] for name in ("text", "dense", "hybrid")), strict=True)
    return int(any(k > 1 and ours < max(*sides) for k, *sides, ours in rows))


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
