"""The parts of a question that help to find its answer: words, names and dates."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

from locus_memory.retrieval.ranking.asker import Person, person_of
from locus_memory.retrieval.ranking.dates import Period, find_named
from locus_memory.store.text import STOP_WORDS, query_meanings, query_words, stem, tokens

__all__ = ["Meanings", "Query", "both_ends", "read_query"]

Meanings = tuple[tuple[str, ...], ...]
"""The stems of words; those with one meaning are one entry."""

_WORD: Final = re.compile(r"[^\W\d_]+")
_ENDS: Final = frozenset(".?!:;\n\"'“‘(")  # noqa: RUF001 - quotation marks start a sentence, too
_LOOKED_AT: Final = 1_000
"""How many characters of each end of a long question are used."""


@dataclass(frozen=True)
class Query:
    """A parsed question.

    Few items have a speaker, so that names and the person are read at first use.

    Attributes:
        text: The original question; of a long one, its two ends.
        terms: The query of the text search: the text, and the days and months that it names, as
            `index_turns` writes them.
        words: The stems of its words in order, each once, without stop words.
        meanings: The same stems, by meaning.
        dates: The periods that it names.
        dated: The meanings of the text in which dates are written as `index_turns` does; empty
            without dates.
    """

    text: str
    terms: str = ""
    words: tuple[str, ...] = ()
    meanings: Meanings = ()
    dates: tuple[Period, ...] = ()
    dated: Meanings = ()

    @cached_property
    def names(self) -> frozenset[str]:
        """The stems of names: capitalised words, but no stop word that only starts a sentence."""
        return _names(self.text)

    @cached_property
    def person(self) -> Person | None:
        """The one whom it means by "I" or "you"."""
        return person_of(self.text)

    def mentions(self, speaker: str) -> bool:
        """Whether any part of a speaker's name, or a role, is named, in any case.

        A name that is also a function word, such as Will, must be written as a name.
        """
        known = self.names.union(word for word in self.words if word not in STOP_WORDS)
        return not known.isdisjoint(tokens(speaker))


# A turn searches several layers for one message.
@lru_cache(maxsize=64)
def read_query(text: str) -> Query:
    """Return the parsed question.

    Of a long text, such as a message with a pasted document, only about a thousand characters of
    each end are used: a question comes before or after the pasted text. All of their words count.

    Args:
        text: A question, or any words to search for.

    Raises:
        InvalidArgumentError: `text` is not a string of whole characters.
    """
    ends = written = both_ends(text)
    named = find_named(ends)
    for each in reversed(named):
        written = f"{written[: each.start]} {each.period.in_words} {written[each.end :]}"
    return Query(
        text=ends,
        # A message is no prefix query, whatever stars it has.
        terms=" ".join(
            [ends.replace("*", " "), *dict.fromkeys(each.period.in_words for each in named)]
        ),
        words=tuple(dict.fromkeys(map(stem, query_words(ends, beginnings=True)))),
        meanings=tuple(query_meanings(ends)),
        dates=tuple(dict.fromkeys(each.period for each in named)),
        dated=tuple(query_meanings(written)) if named else (),
    )


def both_ends(text: str) -> str:
    """Return the part of a text that is read as a question."""
    if len(text) <= 2 * _LOOKED_AT:
        return text
    return f"{text[:_LOOKED_AT]}\n{text[-_LOOKED_AT:]}"


def _names(text: str) -> frozenset[str]:
    found: set[str] = set()
    for match in _WORD.finditer(text):
        word = match[0]
        # Few words are capitalised, and a check of the text before a word takes time.
        if not word[0].isupper():
            continue
        before = text[: match.start()].rstrip(" \t")[-1:]
        starts = not before or before in _ENDS
        if not (starts and word.lower() in STOP_WORDS):
            found.update(tokens(word))
    # One letter is an initial, or the rest after an apostrophe.
    return frozenset(name for name in found if len(name) > 1)
