"""The parts of a question that help to find its answer: words, names and dates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property, lru_cache
from typing import Final

from locus_memory.retrieval.ranking.asker import Person, person_of
from locus_memory.retrieval.ranking.dates import Named, Period, find_dates, find_named, without
from locus_memory.store.text import STOP_WORDS, query_meanings, query_words, stem, tokens

__all__ = ["Query", "both_ends", "read_query"]

_WORD: Final = re.compile(r"[^\W\d_]+")
_NUMBER: Final = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
_ENDINGS: Final = ("", "st", "nd", "rd", "th")
_ENDS: Final = frozenset(".?!:;\n\"'“‘(")  # noqa: RUF001 - quotation marks start a sentence, too
_LOOKED_AT: Final = 1_000
"""How many characters of each end of a long question are used."""


@dataclass(frozen=True)
class Query:
    """A parsed question.

    Few items have a speaker or a day, so that names, dates and the person are read at first use.

    Attributes:
        text: The original question; of a long one, its two ends.
        terms: The query of the text search: the text, or the longest of many words; and the days
            and months that it names, as `index_turns` writes them.
        words: The stems of the words of the text in order, each once, without stop words and
            without the days and months that it names.
        meanings: The same stems; those with one meaning are one entry.
        named: The days and months that it names, without relative ones.
        today: The day from which "last week" is counted; `None`: relative dates are ignored.
    """

    text: str
    terms: str = ""
    words: tuple[str, ...] = ()
    meanings: tuple[tuple[str, ...], ...] = ()
    named: tuple[Named, ...] = ()
    today: date | None = None

    @cached_property
    def names(self) -> frozenset[str]:
        """The stems of names: capitalised words, but no stop word that only starts a sentence."""
        return _names(self.text)

    @cached_property
    def dates(self) -> tuple[Period, ...]:
        """The periods that it names."""
        return find_dates(self.text, today=self.today)

    @cached_property
    def told(self) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """The stems in the name of each day or month, as in `meanings`.

        A text with all of them names it, too.
        """
        return _told(self.named)

    @cached_property
    def person(self) -> Person | None:
        """The one whom it means by its first "I" or "you"."""
        return person_of(self.text)

    def mentions(self, speaker: str) -> bool:
        """Whether any part of a speaker's name, or a role, is named, in any case.

        A name that is also a function word, such as Will, must be written as a name.
        """
        known = self.names.union(word for word in self.words if word not in STOP_WORDS)
        return not known.isdisjoint(tokens(speaker))


def read_query(text: str, *, today: date | None = None, most_words: int | None = None) -> Query:
    """Return the parsed question.

    Of a long text, such as a message with a pasted document, only about a thousand characters of
    each end are used: a question comes before or after the pasted text.

    Args:
        text: A question, or any words to search for.
        today: The day from which "last week" is counted; `None`: relative dates are ignored.
        most_words: At most this many words are searched, since each takes time; the longest are
            kept, which are the rarest. `None`: all.

    Raises:
        InvalidArgumentError: `text` is not a string of whole characters.
    """
    return _read(both_ends(text), today, most_words)


# A turn searches several layers for one message.
@lru_cache(maxsize=64)
def _read(ends: str, today: date | None, most_words: int | None) -> Query:
    named = find_named(ends)
    days = dict.fromkeys(each.period.in_words for each in named)
    asked, kept = _cut(_undated(ends, named), most_words)
    return Query(
        text=ends,
        terms=_cut(" ".join([ends, *days]), most_words)[0] if days else asked,
        words=tuple(dict.fromkeys(map(stem, kept))),
        meanings=tuple(query_meanings(asked)),
        named=tuple(named),
        today=today,
    )


def both_ends(text: str) -> str:
    """Return the part of a text that is read as a question."""
    if len(text) <= 2 * _LOOKED_AT:
        return text
    return f"{text[:_LOOKED_AT]}\n{text[-_LOOKED_AT:]}"


def _undated(text: str, named: Sequence[Named]) -> str:
    """Return a text without the dates that it names; empty if only function words are left."""
    left = without(text, named)
    return "" if named and STOP_WORDS.issuperset(query_words(left)) else left


def _cut(text: str, most_words: int | None) -> tuple[str, list[str]]:
    """Return a text, or the longest of its words if it has more; and these words."""
    found = query_words(text)
    kept = _longest(found, most_words)
    return (text if kept is found else " ".join(kept)), kept


def _told(named: Iterable[Named]) -> tuple[tuple[tuple[str, ...], ...], ...]:
    """Return the stems in the name of each date; "2nd" is also "2", and the other way round."""
    told: dict[tuple[tuple[str, ...], ...], None] = {}
    for each in named:
        entries = query_meanings(each.told)
        told[tuple(tuple({*entry, *_ordinals(entry)}) for entry in entries)] = None
    return tuple(told)


def _ordinals(entry: tuple[str, ...]) -> list[str]:
    numbers = [match[1] for match in map(_NUMBER.fullmatch, entry) if match]
    return [f"{number}{ending}" for number in numbers for ending in _ENDINGS]


def _longest(words: list[str], most: int | None) -> list[str]:
    if most is None or len(words) <= most:
        return words
    kept = frozenset(sorted(words, key=len, reverse=True)[:most])
    return [word for word in words if word in kept]


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
