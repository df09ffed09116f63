"""Scores of candidates beside those of the engines."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from itertools import chain
from typing import Final

from locus_memory.retrieval.options import SearchOptions
from locus_memory.retrieval.ranking.fields import Passage, Place, Words
from locus_memory.retrieval.ranking.query import Query

__all__ = [
    "date_factor",
    "date_shares",
    "neighbour_gains",
    "neighbour_share",
    "speaker_factor",
    "word_scores",
]

_K1: Final = 1.2
_B: Final = 0.75
_WORD: Final = 6
_LONG: Final = 1.5
"""A document of fewer passages than this is whole."""


def word_scores(
    words: Sequence[str],
    documents: Sequence[Words],
    *,
    passage: int = 0,
    dated: Sequence[float] | None = None,
) -> list[float]:
    """Return a score of each document's words, from 0 to 1; the best has 1.

    The formula is BM25's with the candidates as the collection: S. Robertson, H. Zaragoza,
    "The probabilistic relevance framework: BM25 and beyond", 2009,
    https://doi.org/10.1561/1500000019, with k1 = 1.2 and b = 0.75. A long document counts by its
    best passage: J. Callan, "Passage-level evidence in document retrieval", SIGIR 1994,
    https://doi.org/10.1007/978-1-4471-2099-5_31.

    Args:
        words: Stems to search for, each once.
        documents: The words of each candidate.
        passage: The number of words of a passage; passages overlap by half. 0: documents are whole.
        dated: How far each has the date that is searched for, which is one more word; `None`: none
            is.
    """
    total = len(documents)
    found = [[word for word in words if word in each.counts] for each in documents]
    having = Counter(chain.from_iterable(found))
    rarity = {word: _rarity(total, having[word]) for word in words}
    parts = [_parts(*each, passage) for each in zip(found, documents, strict=True)]
    count = sum(map(len, parts))
    mean = sum(length for each in parts for _, length in each) / (count or 1)
    scores = [max([_bm25(part, rarity, mean) for part in each]) for each in parts]
    if dated is not None:
        # As one more word that occurs once in a passage of the mean length.
        once = _rarity(total, dated.count(1)) / (_K1 + 1)
        scores = [score + once * share for score, share in zip(scores, dated, strict=True)]
    best = max(scores, default=0.0)
    return [score / best for score in scores] if best > 0 else scores


_Part = tuple[Mapping[str, int], int]
"""How often each word occurs in a passage, and the length of the passage."""


def _rarity(total: int, found: int) -> float:
    return (_K1 + 1) * math.log(1 + (total - found + 0.5) / (found + 0.5))


def _bm25(part: _Part, rarity: Mapping[str, float], mean: float) -> float:
    counts, length = part
    norm = _K1 * (1 - _B + _B * length / (mean or 1))
    return sum([rarity[word] * times / (times + norm) for word, times in counts.items()])


def _parts(words: Iterable[str], document: Words, passage: int) -> list[_Part]:
    """Return the passages of a document that have any of its words, at least one passage."""
    counts, length = document.counts, document.length
    found = {word: counts[word] for word in words}
    if not passage or length <= passage * _LONG or not document.stems:
        return [(found, length)]
    if not found:
        return [(found, passage)]
    step = max(1, passage // 2)
    parts: dict[int, dict[str, int]] = {}
    for word, times in found.items():
        place = -1
        for _ in range(times):
            # A document has few of the words: a search for each is quicker than a look at all.
            place = document.stems.index(word, place + 1)
            # Each place is in two passages, but for those of the first half of the first one.
            for number in {max(0, place // step - 1), place // step}:
                part = parts.setdefault(number, {})
                part[word] = part.get(word, 0) + 1
    return [(part, min(passage, length - step * number)) for number, part in parts.items()]


def neighbour_gains(evidence: Sequence[float], places: Sequence[Place | None]) -> list[float]:
    """Return for each item the evidence of its better neighbour; 0 without one.

    Args:
        evidence: The evidence of each candidate.
        places: The place of each in its conversation, if it has one.
    """
    conversations: dict[str, dict[int, float]] = {}
    for place, own in zip(places, evidence, strict=True):
        if place:
            conversation, position = place
            conversations.setdefault(conversation, {})[position] = own
    if not conversations:
        return [0.0] * len(places)
    gains: list[float] = []
    for place in places:
        if place is None:
            gains.append(0.0)
            continue
        conversation, position = place
        beside = conversations[conversation].get
        gains.append(max(beside(position - 1, 0.0), beside(position + 1, 0.0)))
    return gains


def speaker_factor(query: Query, speakers: Iterable[str], options: SearchOptions) -> float:
    """Return the boost if the query names a speaker or a role of the item; else 1."""
    return options.speaker_boost if any(map(query.mentions, speakers)) else 1.0


def date_factor(query: Query, day: date | None, options: SearchOptions) -> float:
    """Return the boost if the query names the date of the item; else 1.

    A day beside a named one gains a share of it, as of `date_shares`.
    """
    return 1.0 + (options.date_boost - 1.0) * _date_share(query, day, options)


def date_shares(
    query: Query, passages: Sequence[Passage], options: SearchOptions
) -> list[float] | None:
    """Return how far each item has the date of the query, from 0 to 1; `None`: it names none.

    A date is one word of the question, however it is written. An item of that day has it, and one
    whose text has all words of its name. One that is `n` days beside it has `1 / (1 + 2 * n)` of
    it. Alone, the words of a date tell little: "May" is in many texts.
    """
    if not query.dates:
        return None
    days = {each: _date_share(query, each, options) for each in {each.day for each in passages}}
    return [1.0 if _tells_date(query, each.words) else days[each.day] for each in passages]


def _tells_date(query: Query, words: Words) -> bool:
    return any(
        all(any(stem in words.counts for stem in entry) for entry in entries)
        for entries in query.told
        if entries
    )


def _date_share(query: Query, day: date | None, options: SearchOptions) -> float:
    if day is None or not query.dates:
        return 0.0
    for slack in range(options.date_slack + 1):
        if any(period.covers(day, slack=slack) for period in query.dates):
            return 1 / (1 + 2 * slack)
    return 0.0


def neighbour_share(texts: Sequence[str], options: SearchOptions) -> float:
    """Return the share of the weight of neighbours that is left for items of this length.

    A short turn needs the turns around it to be understood, and a long one does not. A word counts
    as six characters, so that scripts without spaces are no exception.
    """
    mean = sum(map(len, texts)) / _WORD / (len(texts) or 1)
    return min(1.0, options.neighbour_words / mean) if options.neighbour_words and mean else 1.0
