"""Measure the two points of a model's scale: `python tests/benchmarks/scales.py MODEL...`.

A model is a string of `get_embedder` or `get_reranker`, such as `local`, `static:/path/to/folder`
or `cross-encoder`. Each line of `paraphrases.tsv` is a sentence and another wording of it, the
query and the document. The pairs of one line are paraphrases. The pairs of two
lines are unrelated. The medians of both are the two points in `embedders/scale.py`.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from statistics import median, quantiles

import numpy as np

from locus_memory.retrieval.embedders.registry import get_embedder
from locus_memory.retrieval.rerankers.registry import get_reranker, list_rerankers

PAIRS = Path(__file__).with_name("paraphrases.tsv")


def read_pairs() -> tuple[list[str], list[str]]:
    """Return the sentences, and the other wording of each."""
    rows = [line.split("\t") for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    return [first for first, _ in rows], [second for _, second in rows]


async def cosines(model: str, queries: list[str], documents: list[str]) -> np.ndarray:
    """Return the cosine of each query with each document."""
    embedder = get_embedder(model)
    asked = _unit(await embedder.embed(queries, kind="query"))
    told = _unit(await embedder.embed(documents, kind="document"))
    return asked @ told.T


def _unit(vectors) -> np.ndarray:
    made = np.asarray(vectors, dtype=np.float64)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


async def reranked(model: str, queries: list[str], documents: list[str]) -> np.ndarray:
    """Return the reranker's score of each query with each document."""
    reranker = get_reranker(model)
    return np.asarray([await reranker.rerank(query, documents) for query in queries])


def report(model: str, scores: np.ndarray) -> str:
    """Return the two points, and how the rest spreads around them."""
    same = np.eye(len(scores), dtype=bool)
    unrelated, paraphrases = scores[~same].tolist(), scores[same].tolist()
    high, low = quantiles(unrelated, n=100)[98], quantiles(paraphrases, n=20)[0]
    return (
        f"{model}: unrelated {median(unrelated):.3f} (99% below {high:.3f}), "
        f"paraphrases {median(paraphrases):.3f} (95% above {low:.3f})"
    )


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+")
    for model in parser.parse_args().models:
        scored = reranked if model.partition(":")[0] in list_rerankers() else cosines
        print(report(model, await scored(model, *read_pairs())), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
