"""The best matches of a query without ranking all of them.

A common word adds little to a score, so the best matches of several words have the rarest of them,
or all. Parts of the matches are ranked, the most promising first, until no other part can have a
better match. The bound of a part is the sum of its words' weights: H. Turtle and J. Flood, "Query
evaluation: strategies and optimizations", Information Processing & Management 31(6), 1995.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from locus_memory.store.text import count_searchable, stem

__all__ = ["Word", "best_of", "most_of", "split", "weighed", "with_heavy"]

_IMPACT: Final = 1.7
"""The most that words add to a score, by their weights, if each is in the text once.

In the shortest text, that is 2.2 / 1.3. The formula allows 2.2, for words that are repeated without
end; with it, nearly all are ranked.
"""

_HEAVY_IMPACT: Final = 1.3
"""The same for words that much of the items have, which add little."""

_K1, _B = 1.2, 0.75
"""The constants of FTS5's BM25."""


class Word(NamedTuple):
    """A quoted word, about how many items have it, and its weight in BM25."""

    quoted: str
    having: int
    weight: float


def split(words: Sequence[Word], items: int) -> tuple[list[Word], list[Word]]:
    """Return the words that less than a fifth of the items have, and the others."""
    light = [word for word in words if word.having * 5 < items]
    return light, [word for word in words if word.having * 5 >= items]


def with_heavy(
    found: Iterable[Sequence[Any]], texts: Mapping[int, str], heavy: Sequence[Word], mean: float
) -> list[tuple[int, int, float]]:
    """Return matches with the share of further words in their scores, the best first.

    Args:
        found: The matches: ids, revisions and scores.
        texts: The texts of the items, as they are indexed.
        heavy: The further words.
        mean: The mean number of words of an item, with the word of its namespace.
    """
    stems = [(stem(word.quoted.strip('"')), word.weight) for word in heavy]
    scored: list[tuple[int, int, float]] = []
    for item, revision, score in found:
        counts = count_searchable(texts[item])
        norm = _K1 * (1 - _B + _B * (sum(counts.values()) + 1) / mean)
        more = sum(
            weight * counts[word] * (_K1 + 1) / (counts[word] + norm)
            for word, weight in stems
            if word in counts
        )
        scored.append((item, revision, score + more))
    return sorted(scored, key=lambda row: (row[2], row[1]), reverse=True)


def most_of(heavy: Iterable[Word]) -> float:
    """Return the most that further words add to a score."""
    return _HEAVY_IMPACT * sum(word.weight for word in heavy)


Ranker = Callable[[str], Sequence[Any]]
"""Returns the best matches of an expression as rows of an id, a revision and a score."""


def weighed(items: int, counts: Iterable[tuple[str, int]]) -> list[Word]:
    """Return words with their weights, the rarest first.

    Args:
        items: How many items there are.
        counts: How many of them have each of the quoted words.
    """
    words = [
        Word(quoted, count, max(1e-6, math.log((max(items, count) - count + 0.5) / (count + 0.5))))
        for quoted, count in counts
    ]
    return sorted(words, key=lambda word: word.having)


def best_of(words: Sequence[Word], limit: int, rank: Ranker) -> list[Any]:
    """Return the best matches of any of the words.

    Args:
        words: At least two words, the rarest first.
        limit: How many matches to return.
        rank: Ranks the matches of an expression, and returns the best `limit`.
    """
    best = list(rank(_and(words)))
    total = sum(word.weight for word in words)
    if _is_enough(best, limit, total - words[-1].weight):
        return best
    found = dict[int, Any]()
    for place, word in enumerate(words):
        before, after = words[:place], words[place + 1 :]
        if _is_enough(best, limit, sum(each.weight for each in words[place:])):
            break
        if after:
            _add(found, rank(f"({word_of(word)} AND ({_or(after)})){_not(before)}"))
            best = _ordered(found, limit)
        if not _is_enough(best, limit, word.weight):
            _add(found, rank(f"{word_of(word)}{_not((*before, *after))}"))
            best = _ordered(found, limit)
    return best


def _is_enough(best: Sequence[Any], limit: int, bound: float) -> bool:
    """Return whether nothing of this bound can be better than the last of the best."""
    return len(best) == limit and best[-1][-1] >= _IMPACT * bound


def _add(found: dict[int, Any], rows: Iterable[Any]) -> None:
    found.update((row[0], row) for row in rows)


def _ordered(found: dict[int, Any], limit: int) -> list[Any]:
    return sorted(found.values(), key=lambda row: (row[-1], row[1]), reverse=True)[:limit]


def word_of(word: Word) -> str:
    """Return the expression of one word."""
    return f"text : {word.quoted}"


def _and(words: Sequence[Word]) -> str:
    return f"text : ({' AND '.join(word.quoted for word in words)})"


def _or(words: Sequence[Word]) -> str:
    return f"text : ({' OR '.join(word.quoted for word in words)})"


def _not(words: Sequence[Word]) -> str:
    return f" NOT ({_or(words)})" if words else ""
