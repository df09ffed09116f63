"""The names in facts and messages; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Self

from locus_memory.memory.planning.everyday import CALENDAR_AND_LANGUAGES, EVERYDAY
from locus_memory.retrieval.ranking.query import both_ends, read_query
from locus_memory.store.text import STOP_WORDS, tokens

__all__ = ["Names"]

_LONGEST: Final = 4
"""How many words a name has at most."""

_WORD: Final = re.compile(r"[^\W\d_][\w&]*(?:[-'\u2019][^\W\d_]\w*)*")
_CAPITALISED: Final = re.compile(r"[^\W\d_a-z][\w&]*(?:[-'\u2019][^\W\d_]\w*)*")
_SENTENCE_END: Final = '.?!:;\n"(\u2014\u201c'
_LOOKED_AT: Final = 2_000
_SHORTEST: Final = 2


@dataclass(frozen=True, slots=True)
class Names:
    """The names that a scope knows.

    Attributes:
        whole: Folded names of 1 to 4 words, joined by spaces.
        parts: The folded words of the longer ones, which count in a message only as names.
    """

    whole: frozenset[str] = frozenset()
    parts: frozenset[str] = frozenset()

    @classmethod
    def of(cls, entities: Iterable[str], facts: Iterable[str] = ()) -> Self:
        """Return the names of entities, and the capitalised ones in facts."""
        whole: set[str] = set()
        parts: set[str] = set()
        runs = [tokens(entity[:_LOOKED_AT]) for entity in entities]
        runs += [run for fact in facts for run in _capitalised(fact[:_LOOKED_AT])]
        for run in runs:
            if not 1 <= len(run) <= _LONGEST or all(map(_is_plain, run)):
                continue
            whole.add(" ".join(run))
            if len(run) > 1:
                parts.update(word for word in run if not _is_plain(word))
        return cls(frozenset(whole), frozenset(parts))

    @classmethod
    def of_message(cls, message: str, facts: Iterable[str]) -> Self:
        """Return the capitalised names in those facts that have a name's word in common with it.

        No other fact has a name that is in the message, since each name has a word that is not
        plain: a sentence that starts with "The" names nobody by that.
        """
        said = frozenset(word for word in tokens(both_ends(message)) if not _is_plain(word))
        return cls.of((), (fact for fact in facts if not said.isdisjoint(_named_in(fact))))

    def are_in(self, text: str) -> bool:
        """Return whether a message has one of the names."""
        if not self.whole:
            return False
        query = read_query(text)
        words = tokens(query.text)
        runs = (
            " ".join(words[start : start + length])
            for length in range(1, _LONGEST + 1)
            for start in range(len(words) - length + 1)
        )
        return any(run in self.whole for run in runs) or not self.parts.isdisjoint(query.names)


@lru_cache(maxsize=4096)
def _named_in(fact: str) -> frozenset[str]:
    """Return the folded words of a fact that are capitalised; the same facts are found often."""
    return frozenset(tokens(" ".join(_CAPITALISED.findall(fact[:_LOOKED_AT]))))


def _is_plain(word: str) -> bool:
    """Return whether a folded word alone names nobody."""
    return (
        len(word) < _SHORTEST
        or word.isdigit()
        or word in STOP_WORDS
        or word in EVERYDAY
        or word in CALENDAR_AND_LANGUAGES
    )


def _capitalised(fact: str) -> Iterator[list[str]]:
    """Yield the folded words of each run of capitalised words."""
    run: list[str] = []
    end = -2
    for found in _WORD.finditer(fact):
        word = found[0]
        is_name = word[0].isupper() and not (
            _starts_sentence(fact, found.start()) and _is_opening(fact, found)
        )
        if run and not (is_name and found.start() == end + 1):
            yield run
            run = []
        if is_name:
            run += tokens(word.removesuffix("'s").removesuffix("\u2019s"))
            end = found.end()
    if run:
        yield run


def _starts_sentence(text: str, start: int) -> bool:
    before = text[:start].rstrip(" \t-")[-1:]
    return not before or before in _SENTENCE_END


def _is_opening(text: str, found: re.Match[str]) -> bool:
    """Return whether a capitalised word that starts a sentence is no name.

    Verbs in short notes, such as "Prefers tea", end in an s; names are followed by a colon, by a
    verb of being or having, or by an s after an apostrophe.
    """
    word, after = found[0], text[found.end() :]
    if all(map(_is_plain, tokens(word))):
        return True
    return not (word[-2:] in ("'s", "\u2019s") or _AFTER_NAME.match(after))


_AFTER_NAME: Final = re.compile(
    r":| [A-Z][a-z]| (?:is|was|are|has|had|and|lives?|works?|will|can|likes?|loves?|wants?|said"
    r"|says|moved|plans?|needs?|plays?|owns?|studies|teaches|runs|uses|prefers?|hates?|does|did)\b"
)
