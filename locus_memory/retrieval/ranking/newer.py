"""Changed values: of two sentences about the same thing, the newer one ranks first; pure.

Someone who said "I live in Vienna" and a year later "I live in Graz" lives in Graz. Both sentences
have the words of the question, and the old one is often nearer to it. A later sentence of the same
speaker moves directly before an earlier one if both are short statements on the same subject. That
is so if the later one has all words of the question that the earlier one has, or if the two have
half of their words in common. Questions about the past keep their order: those with a date, in the
past tense, or with a word such as "before".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date
from typing import Final

from locus_memory.retrieval.ranking.asker import is_question
from locus_memory.retrieval.ranking.fields import Passage, stems_of_names
from locus_memory.retrieval.ranking.query import Query
from locus_memory.store.text import STOP_WORDS
from locus_memory.store.words.languages import language_of
from locus_memory.store.words.porter import stem

__all__ = ["asks_for_now", "newer_first"]

_DEPTH: Final = 20
"""How many of the best items are compared."""

_LONGEST: Final = 40
"""Words of a statement; a longer text has several subjects."""

_SIMILAR: Final = 0.5
_STOP_STEMS: Final = frozenset(map(stem, STOP_WORDS))

_PAST: Final = re.compile(
    r"\b(?:did|were|had|used\s+to|before|previous(?:ly)?|former(?:ly)?|earlier|original(?:ly)?"
    r"|at\s+first|initial(?:ly)?|back\s+then|once|ago|last|first|old|past|yesterday|ever|when\s+I)\b"
    r"|\b(?:war|waren|warst|hatte|hatten|wurde|früher|vorher|damals|zuerst|gestern|letzte[nrs]?"
    r"|ehemalig\w*|ge(?!rn\b)\w+[nt]\s*\?)"
    r"|\b(?:était|étaient|étais|avait|avais|avant|autrefois|ancien\w*|hier|\w+ait|\w+ais)\b"
    r"|\b(?:era|eran|fue|fueron|estaba|antes|anterior\w*|ayer|\w+ía|\w+aba)\b"
    r"|以前|之前|曾|过去|原来|当时|最初|昨天|上次|过(?!敏)|昔|でした|ました|前は|だった|た[?\uff1f]?$",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[^\W_]+")


def asks_for_now(query: Query) -> bool:
    """Whether a query asks for a value that holds now, as far as its words tell."""
    return query.asks and not query.dates and not _is_of_the_past(query.text)


def _is_of_the_past(text: str) -> bool:
    if _PAST.search(text):
        return True
    words = set(_WORD.findall(text.casefold()))
    # In German it means "what".
    return "was" in words and language_of(words - {"was"}) != "german"


def newer_first(query: Query, passages: Sequence[Passage]) -> list[tuple[int, int | None]]:
    """Return the order in which a newer statement is above an older one on the same subject.

    Args:
        query: The parsed question.
        passages: A ranking, the best first.

    Returns:
        The places in their new order, each with the place that it took if it has risen.
    """
    places = range(len(passages))
    has_days = any(each.day is not None for each in passages[:_DEPTH])
    if not has_days or not query.meanings or not asks_for_now(query):
        return [(place, None) for place in places]
    statements = [_statement(query, each) for each in passages[:_DEPTH]]
    placed: set[int] = set()
    order: list[tuple[int, int | None]] = []
    for place in places:
        if place in placed:
            continue
        risen = _newer(statements, place, placed) if place < _DEPTH else []
        order += [*((each, place) for each in risen), (place, None)]
        placed.update(risen, (place,))
    return order


@dataclass(frozen=True, slots=True)
class _Statement:
    """A short statement of someone at a time.

    Attributes:
        speakers: The speaker and the role.
        day: The day.
        asked: Which words of the question it has.
        words: The stems of its words without function words.
        least: How many words of the question a statement on its subject has.
    """

    speakers: tuple[str, ...]
    day: date
    asked: AbstractSet[int]
    words: AbstractSet[str]
    least: int

    def replaces(self, old: _Statement) -> bool:
        if self.speakers != old.speakers or self.day <= old.day or len(old.asked) < old.least:
            return False
        if self.asked >= old.asked:
            return True
        common = len(self.words & old.words)
        return bool(self.asked) and common >= _SIMILAR * min(len(self.words), len(old.words))


def _statement(query: Query, passage: Passage) -> _Statement | None:
    counts = passage.words.counts
    if passage.day is None or passage.words.length > _LONGEST or is_question(passage.text):
        return None
    # The name of the speaker is no subject.
    names = stems_of_names(passage.speakers, "")
    subject = [entry for entry in query.meanings if names.isdisjoint(entry)]
    asked = {
        number for number, entry in enumerate(subject) if any(word in counts for word in entry)
    }
    least = max(1, -(-len(subject) // 2))
    words = counts.keys() - _STOP_STEMS
    return _Statement(passage.speakers, passage.day, asked, words, least)


def _newer(
    statements: Sequence[_Statement | None], place: int, placed: AbstractSet[int]
) -> list[int]:
    """Return the places after `place` that replace it, the newest first."""
    old = statements[place]
    if old is None:
        return []
    found = [
        (each.day, -number)
        for number, each in enumerate(statements)
        if number > place and number not in placed and each is not None and each.replaces(old)
    ]
    return [-number for _, number in sorted(found, reverse=True)]
