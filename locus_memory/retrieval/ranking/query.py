"""What a question says about where its answer is: words, names and dates."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Final

from locus_memory.retrieval.ranking.dates import Period, find_dates
from locus_memory.store.text import STOP_WORDS, query_words, stem, tokens

__all__ = ["Query", "read_query"]

_WORD: Final = re.compile(r"[^\W\d_]+")
_ENDS: Final = frozenset(".?!:;\n\"'“‘(")  # noqa: RUF001 - quotation marks start a sentence, too
_LOOKED_AT: Final = 1_000
"""How many characters of each end of a long question are looked at."""


@dataclass(frozen=True, slots=True)
class Query:
    """A question, taken apart.

    Attributes:
        text: The question as it was asked; of a long one, its two ends.
        terms: What a text search is asked for: the text, or of many words the longest.
        words: The stems of these words in their order, each once, stop words left out.
        names: The stems of what is written as a name: capitalised, and no stop word that
            merely starts a sentence.
        dates: The periods it names.
    """

    text: str
    terms: str = ""
    words: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    dates: tuple[Period, ...] = ()

    def mentions(self, speaker: str) -> bool:
        """Whether any part of a speaker's name, or a role, is named, in capitals or not.

        A name that is also a function word, such as Will, must be written as a name.
        """
        known = self.names.union(word for word in self.words if word not in STOP_WORDS)
        return not known.isdisjoint(tokens(speaker))


def read_query(text: str, *, today: date | None = None, most_words: int | None = None) -> Query:
    """Return the question, taken apart.

    Of a long text, such as a message with a document pasted into it, only about a thousand
    characters of each end are looked at: a question stands before or after what was pasted.

    Args:
        text: A question, or any words to search for.
        today: What "last week" counts from; `None`: relative dates mean nothing.
        most_words: How many words to search for at most, for each costs time; the longest are
            kept, which are the rarest. `None`: all.

    Raises:
        InvalidArgumentError: `text` is not a string of whole characters.
    """
    ends = _both_ends(text)
    found = query_words(ends)
    kept = _longest(found, most_words)
    return Query(
        text=ends,
        terms=ends if kept is found else " ".join(kept),
        words=tuple(dict.fromkeys(map(stem, kept))),
        names=_names(ends),
        dates=find_dates(ends, today=today),
    )


def _both_ends(text: str) -> str:
    if len(text) <= 2 * _LOOKED_AT:
        return text
    return f"{text[:_LOOKED_AT]}\n{text[-_LOOKED_AT:]}"


def _longest(words: list[str], most: int | None) -> list[str]:
    if most is None or len(words) <= most:
        return words
    kept = frozenset(sorted(words, key=len, reverse=True)[:most])
    return [word for word in words if word in kept]


def _names(text: str) -> frozenset[str]:
    found: set[str] = set()
    for match in _WORD.finditer(text):
        word = match[0]
        # Few words are capitalised, and looking at what is before one takes time.
        if not word[0].isupper():
            continue
        before = text[: match.start()].rstrip(" \t")[-1:]
        starts = not before or before in _ENDS
        if not (starts and word.lower() in STOP_WORDS):
            found.update(tokens(word))
    # One letter is an initial, or what an apostrophe left.
    return frozenset(name for name in found if len(name) > 1)
