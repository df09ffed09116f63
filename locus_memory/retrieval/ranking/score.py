"""Scores of candidates beside those of the engines."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Final

from locus_memory.retrieval.ranking.fields import Passage, Place, Words

__all__ = ["neighbour_gains", "word_scores"]

_K1: Final = 1.2
_B: Final = 0.75
_WORD: Final = 6
"""A word counts as so many characters, so that scripts without spaces are no exception."""

_TOGETHER: Final = 120
"""The most words of two neighbours; as of a turn and those around it in `index_turns`."""


def word_scores(words: Sequence[str], documents: Sequence[Words]) -> list[float]:
    """Return a score of each document's words, from 0 to 1; the best has 1.

    The formula is BM25's with the candidates as the collection: S. Robertson, H. Zaragoza,
    "The probabilistic relevance framework: BM25 and beyond", 2009,
    https://doi.org/10.1561/1500000019, with k1 = 1.2 and b = 0.75.

    Args:
        words: Stems to search for, each once.
        documents: The words of each candidate.
    """
    total = len(documents)
    found = [[word for word in words if word in each.counts] for each in documents]
    having = Counter(chain.from_iterable(found))
    rarity = {word: math.log1p((total - n + 0.5) / (n + 0.5)) for word, n in having.items()}
    mean = sum(each.length for each in documents) / (total or 1)
    scores: list[float] = []
    for has, (counts, length) in zip(found, documents, strict=True):
        norm = _K1 * (1 - _B + _B * length / (mean or 1))
        scores.append(sum([rarity[word] * counts[word] / (counts[word] + norm) for word in has]))
    best = max(scores, default=0.0)
    return [score / best for score in scores] if best > 0 else scores


def neighbour_gains(evidence: Sequence[float], passages: Sequence[Passage]) -> list[float]:
    """Return for each item the evidence of its better neighbour; 0 without one.

    A short turn needs the turns around it to be understood, and a long one does not: both together
    have at most 120 words.

    Args:
        evidence: The evidence of each candidate.
        passages: The candidates.
    """
    most = _TOGETHER * _WORD
    known: dict[Place, tuple[float, int]] = {}
    for each, own in zip(passages, evidence, strict=True):
        if each.place:
            known[each.place] = own, len(each.text)
    gains = [0.0] * len(passages)
    for number, each in enumerate(passages) if known else ():
        if each.place:
            conversation, position = each.place
            room = most - len(each.text)
            for beside in (position - 1, position + 1):
                gain, length = known.get((conversation, beside), (0.0, 0))
                if length <= room:
                    gains[number] = max(gains[number], gain)
    return gains
