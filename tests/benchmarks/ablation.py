"""What each rule of the ranking brings: `python tests/benchmarks/ablation.py FILE`.

`FILE` has conversations in the format of `locus-memory eval`. Each one is a database of its own.
R@5, R@10 and nDCG@10 are printed for text, vectors and both, with all rules and with none, and for
both without each rule; then the difference of both to each side, with its interval of 95%.

`--embedder local` adds vectors; `--query-prefix` replaces the prefix of its queries. `--long` joins
the turns of the first speaker of each conversation, up to ten in a session, as one that takes the
place of the last of them. `--only` keeps the conversations whose id contains a text, such as one
language.
"""

from __future__ import annotations

import argparse
import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.evaluation.dataset import Conversation, Session, read_dataset
from locus_memory.evaluation.metrics import grouped_interval, ndcg_at, recall_at
from locus_memory.retrieval.embedders.registry import get_embedder
from locus_memory.retrieval.embedders.wrappers.caching import CachingEmbedder
from locus_memory.retrieval.hybrid import HybridSearch
from locus_memory.retrieval.options import SearchOptions
from locus_memory.retrieval.turns import index_turns

RULES = {
    "own words": {"word_weight": 0},
    "speakers": {"speaker_boost": 1},
    "the day": {"date_boost": 1},
    "neighbours": {"neighbour_weight": 0},
}
NONE = {name: value for rule in RULES.values() for name, value in rule.items()}
PLACE = ("turns",)
TOGETHER = 10

Found = dict[tuple[str, str], list[tuple[float, ...]]]
"""The figures of each question, by the rules that are off and the search."""


def joined(conversation: Conversation) -> Conversation:
    """Return a conversation in which its first speaker has long turns."""
    speaker = conversation.sessions[0].turns[0].speaker
    names: dict[str, str] = {}
    sessions = [_joined(each, speaker, names) for each in conversation.sessions]
    questions = [
        replace(each, evidence=tuple(dict.fromkeys(names[turn] for turn in each.evidence)))
        for each in conversation.questions
    ]
    return replace(conversation, sessions=tuple(sessions), questions=tuple(questions))


def _joined(session: Session, speaker: str, names: dict[str, str]) -> Session:
    turns, waiting = [], []
    for place, turn in enumerate(session.turns, 1):
        if turn.speaker == speaker:
            waiting.append(turn)
        else:
            names[turn.id] = turn.id
            turns.append(turn)
        if waiting and (len(waiting) == TOGETHER or place == len(session.turns)):
            first = waiting[0]
            names.update({each.id: first.id for each in waiting})
            turns.append(replace(first, text=" ".join(each.words for each in waiting)))
            waiting = []
    return replace(session, turns=tuple(turns))


async def ask(conversation: Conversation, embedder, found: Found) -> None:
    """Add the figures of the questions of a conversation."""
    modes = ("text",) if embedder is None else ("text", "vector", "hybrid")
    async with SQLiteStore(":memory:") as store:
        for session in conversation.sessions:
            await store.put_batch(
                await index_turns(PLACE, session.turns, embedder, session=session.name)
            )
        for rule, off in {"nothing": {}, **RULES, "all of them": NONE}.items():
            search = HybridSearch(store, embedder, options=SearchOptions(**off))
            for mode in modes if rule in ("nothing", "all of them") else modes[-1:]:
                rows = found.setdefault((rule, mode), [])
                for question in conversation.questions:
                    hits = await search.search(PLACE, question.text, mode=mode)
                    turns = [hit.item.metadata["turn"] for hit in hits]
                    told = [recall_at(turns, question.evidence, k) for k in (5, 10)]
                    rows.append((*told, ndcg_at(turns, question.evidence, 10)))


def written(differences: Sequence[float]) -> str:
    """Return the mean of some differences, and its interval."""
    mean, low, high = grouped_interval([differences])
    return f"{mean:+.4f} ({low:+.4f} to {high:+.4f})"


def report(found: Found) -> None:
    print("| without | search | R@5 | R@10 | nDCG@10 |\n|---|---|---|---|---|")
    for (rule, mode), rows in found.items():
        means = [math.fsum(each) / len(rows) for each in zip(*rows, strict=True)]
        print(f"| {rule} | {mode} | " + " | ".join(f"{each:.4f}" for each in means) + " |")
    both = found.get(("nothing", "hybrid"))
    if both is None:
        return
    print("\n| both, less | R@5 | R@10 | nDCG@10 |\n|---|---|---|---|")
    others = [("nothing", "text"), ("nothing", "vector"), *((rule, "hybrid") for rule in RULES)]
    for rule, mode in others:
        pairs = zip(both, found[rule, mode], strict=True)
        apart = [[ours - theirs for ours, theirs in zip(*pair, strict=True)] for pair in pairs]
        cells = " | ".join(map(written, zip(*apart, strict=True)))
        print(f"| {mode}, without {rule} | {cells} |")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--embedder")
    parser.add_argument("--query-prefix")
    parser.add_argument("--only", default="")
    parser.add_argument("--long", action="store_true")
    given = parser.parse_args()
    made = None
    if given.embedder is not None:
        prefix = {} if given.query_prefix is None else {"query_prefix": given.query_prefix}
        made = CachingEmbedder(get_embedder(given.embedder, **prefix))
    found: Found = {}
    for conversation in read_dataset(given.file):
        if given.only in conversation.id:
            changed = joined(conversation) if given.long else conversation
            await ask(changed, made, found)
    report(found)


if __name__ == "__main__":
    asyncio.run(main())
