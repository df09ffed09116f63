"""Whole words: whether a text has the words of a query, for a reader that may not guess."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from locus_memory.store.words.languages import is_stop_word, language_of
from locus_memory.store.words.normal_forms import normalized
from locus_memory.store.words.porter import stem
from locus_memory.store.words.variants import HAN_AND_KANA, UNSPACED, letter_and_word, stemmed

__all__ = ["WholeWords"]

_HANGUL: Final = "\uac00-\ud7a3"
_RUN: Final = re.compile(f"[{_HANGUL}]+|(?:(?![{_HANGUL}])[{UNSPACED}{HAN_AND_KANA}])+")

# Accents that join no letter, points of Hebrew, short vowels of Arabic: many write without them.
_POINTS: Final = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670]"
)


class WholeWords(NamedTuple):
    """The words of a text, with the signs that search takes for spaces.

    Attributes:
        words: The words between spaces, in lower case.
        runs: The runs of scripts without spaces; a space follows each of their letters.
        language: The language of the words, see `language_of`.
        fold: Folds a word as text search does.
    """

    words: tuple[str, ...]
    runs: tuple[str, ...]
    language: str | None
    fold: Callable[[str], str]

    @classmethod
    def of(cls, text: str, fold: Callable[[str], str]) -> WholeWords:
        """Return the words of a text, each once."""
        letter, word = letter_and_word()
        composed = _POINTS.sub("", normalized("NFKC", text.lower()).lower())
        words = tuple(dict.fromkeys(word.findall(_RUN.sub(" ", composed))))
        runs = dict.fromkeys(
            "".join(f"{each} " for each in letter.findall(run)) for run in _RUN.findall(composed)
        )
        return cls(words, tuple(filter(None, runs)), language_of(map(fold, words)), fold)

    def asked(self) -> WholeWords:
        """Return the words that say what a query is about; all of them, if none does."""
        told = tuple(w for w in self.words if not is_stop_word(self.fold(w), self.language))
        return self._replace(words=told) if told or self.runs else self

    def finder(self) -> Callable[[WholeWords], bool]:
        """Return what says whether all words of another text are in this one, in any form.

        A word between spaces is found by its stem. In Latin script, two words that differ in their
        accents alone are two words, unless one has none: Vietnamese has hundreds of those. A run
        of letters is found in a longer one, in Hangul at the beginning of a word, where particles
        follow it, and a single syllable of it only alone.
        """
        known: defaultdict[str, set[str]] = defaultdict(set)
        for word in self.words:
            for form in _forms(word, self.language, self.fold):
                known[form].add(word)
        told = "".join(f"\n{run}\n" for run in self.runs)

        def finds(asked: WholeWords) -> bool:
            return all(_needle(run) in told for run in asked.runs) and all(
                any(
                    self._may_be(word, each)
                    for language in {self.language, asked.language}
                    for form in _forms(word, language, self.fold)
                    for each in known.get(form, ())
                )
                for word in asked.words
            )

        return finds

    def _may_be(self, one: str, other: str) -> bool:
        # In capitals, an ß is two letters, and a sigma at the end is as any other.
        bare, pair = self.fold(one), (one.casefold(), other.casefold())
        return pair[0] == pair[1] or bare in pair or bare != self.fold(other)


def _needle(run: str) -> str:
    if not re.match(f"[{_HANGUL}]", run):
        return run
    return f"\n{run}" if run.count(" ") > 1 else f"\n{run}\n"


@lru_cache(maxsize=65536)
def _forms(word: str, language: str | None, fold: Callable[[str], str]) -> frozenset[str]:
    """Return the English stem of a word, and that of the language of its text or its script."""
    return frozenset(filter(None, (stem(fold(word)), stemmed(word, language, fold))))
