"""The passages of a long message, and the hits of all of them as one ranking; no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from typing import Final

from locus_memory.retrieval.pack import in_packs
from locus_memory.retrieval.ranking.absolute import relevances, shares_of
from locus_memory.retrieval.ranking.explain import Explanation
from locus_memory.retrieval.ranking.fields import Fields
from locus_memory.retrieval.ranking.query import read_query
from locus_memory.retrieval.ranking.ranking import Name, Ranked, prefer_current

__all__ = ["Passages", "joined", "passages_of"]

Passages = list[list[str]]
"""The passages of a message, each by its sentences."""

_PASSAGE: Final = 600
"""How many characters of a message are searched together."""

_END: Final = 4 * _PASSAGE
"""How many characters of each end of a longer message are searched."""

_SENTENCE: Final = re.compile(
    r"(?s).+?(?:\n+|[.!?\u2026]\s+"
    # Of Armenian, Arabic, Urdu, India, Tibet, Burma, Ethiopia, Khmer, Mongolia, China and Japan.
    r"|[\u0589\u061f\u06d4\u0964\u0965\u0f0d\u0f0e\u104b\u1362\u1367\u1368\u17d4\u17d5"
    r"\u1803\u1809\u3002\uff01\uff0e\uff1f\uff61]\s*|\Z)"
)
"""A sentence or a line, in any script."""


def passages_of(message: str) -> Passages:
    """Return the passages of a message in order; a short one is one passage of one sentence.

    What is asked may stand anywhere in a long message: after a story, before code, or between both.
    As one query, the rest of the message would hide it. Of a very long one, these are the ends.
    """
    if len(message) <= _PASSAGE:
        return [[message]]
    ends = [message] if len(message) <= 2 * _END else [message[:_END], message[-_END:]]
    whole = (part[0] for end in ends for part in _SENTENCE.finditer(end))
    parts = (part[at : at + _PASSAGE] for part in whole for at in range(0, len(part), _PASSAGE))
    return in_packs(parts, len, _PASSAGE)


def joined(
    windows: Sequence[Sequence[Ranked]],
    passages: Passages,
    seen: AbstractSet[Name],
    fields: Fields,
) -> list[Ranked]:
    """Return the hits of the passages of a message, each once, the most relevant first.

    An item is as relevant as it is to the sentence that it fits best, and that is its score; none
    is above one that supersedes it.

    Args:
        windows: The hits of each passage.
        passages: The passages.
        seen: Items to leave out.
        fields: The names of the fields that hold the links between items.
    """
    best: dict[Name, Ranked] = {}
    for each in chain.from_iterable(map(_judged, windows, passages)):
        name = each.item.namespace, each.item.key
        if name not in seen and (name not in best or each.relevance > best[name].relevance):
            best[name] = each._replace(score=each.relevance, parts=_parts(each))
    return prefer_current(sorted(best.values(), key=attrgetter("score"), reverse=True), fields)


def _parts(ranked: Ranked) -> Explanation | None:
    """Return the explanation of a score that is the relevance to a sentence."""
    parts, score = ranked.parts, ranked.relevance
    return parts and replace(parts, sentence=score, succession=0.0, capped=0.0, superseded_by=None)


def _judged(window: Sequence[Ranked], sentences: Iterable[str]) -> Iterator[Ranked]:
    """Yield the hits of a passage with their relevance to the best of its sentences."""
    passages = [each.passage for each in window]
    shares = [shares_of(read_query(each), passages) for each in sentences if each.strip()]
    best = list(map(max, zip(*filter(None, shares), strict=True)))
    told = relevances(best, [each.nearness for each in window])
    return (hit._replace(relevance=each) for hit, each in zip(window, told, strict=True))
