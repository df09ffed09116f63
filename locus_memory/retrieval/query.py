"""What a question says about where its answer is: words, names and dates."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Final

from locus_memory.retrieval.dates import Period, find_dates
from locus_memory.store.text import STOP_WORDS, query_words, stem, tokens

__all__ = ["Query", "read_query"]

_WORD: Final = re.compile(r"[^\W\d_]+")
_ENDS: Final = frozenset(".?!:;\n\"'“‘(")  # noqa: RUF001 - quotation marks start a sentence, too


@dataclass(frozen=True, slots=True)
class Query:
    """A question, taken apart.

    Attributes:
        text: The question as it was asked.
        words: The stems of its words in their order, each once, stop words left out.
        names: The stems of what is written as a name: capitalised, and no stop word that
            merely starts a sentence.
        dates: The periods it names.
    """

    text: str
    words: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    dates: tuple[Period, ...] = ()

    def mentions(self, speaker: str) -> bool:
        """Whether any part of a speaker's name, or a role, is named, in capitals or not.

        A name that is also a function word, such as Will, must be written as a name.
        """
        known = self.names.union(word for word in self.words if word not in STOP_WORDS)
        return not known.isdisjoint(tokens(speaker))


def read_query(text: str, *, today: date | None = None) -> Query:
    """Return the question, taken apart.

    Args:
        text: A question, or any words to search for.
        today: What "last week" counts from; `None`: relative dates mean nothing.

    Raises:
        InvalidArgumentError: `text` is not a string of whole characters.
    """
    words = tuple(dict.fromkeys(map(stem, query_words(text))))
    return Query(text, words, _names(text), find_dates(text, today=today))


def _names(text: str) -> frozenset[str]:
    found: set[str] = set()
    for match in _WORD.finditer(text):
        word = match[0]
        before = text[: match.start()].rstrip(" \t")[-1:]
        starts = not before or before in _ENDS
        if word[0].isupper() and not (starts and word.lower() in STOP_WORDS):
            found.update(tokens(word))
    # One letter is an initial, or what an apostrophe left.
    return frozenset(name for name in found if len(name) > 1)
