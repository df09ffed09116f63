"""Further words for a text that is not English: stems, and parts of words that engines split."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib import import_module
from itertools import chain, pairwise
from typing import Any, Final

from locus_memory.store.words.languages import is_english, language_of
from locus_memory.store.words.normal_forms import normalized
from locus_memory.store.words.porter import stem

__all__ = ["HAN_AND_KANA", "UNSPACED", "letter_and_word", "pairs", "stemmed", "variants"]

HAN_AND_KANA: Final = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3041-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U000323af"
)
"""Han with its radicals and numerals, Hiragana and Katakana, full and half width."""


_MARKS: Final = "\u064b-\u065f\u0670"
"""The vowels of Arabic, which folding takes away."""

_WITH_MARKS: Final = (range(0x0700, 0x1D00), range(0xA800, 0xAC00), range(0x11000, 0x12000))
"""The scripts whose marks are part of a word, such as vowel signs; engines take them for spaces."""

UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\u1b00-\u1b7f"
    "\ua980-\uaadf\uac00-\ud7a3"
)
"""Scripts with spaces between sentences only: Thai, Lao, Burmese, Khmer, Tai, Balinese, Javanese,
Cham (class SA of https://www.unicode.org/reports/tr14/, and those of aksaras); and Hangul, whose
words carry particles."""

_PLAIN: Final = re.compile(r"[^\W_]+")
_SCRIPTS: Final = (
    ("greek", re.compile("[\u0370-\u03ff\u1f00-\u1fff]")),
    ("russian", re.compile("[\u0400-\u04ff]")),
    ("armenian", re.compile("[\u0531-\u0587]")),
    ("arabic", re.compile("[\u0620-\u064a]")),
    ("hindi", re.compile("[\u0900-\u097f]")),
    ("tamil", re.compile("[\u0b80-\u0bff]")),
)
_LATIN: Final = re.compile("[a-z\u00df-\u024f\u1e00-\u1eff]")
_FOREIGN: Final = re.compile(r"[^\W\d_a-z]")
_DIGIT: Final = re.compile(r"\d")
_ACCENTS: Final = re.compile("[\u0300-\u036f]")
_RUN: Final = re.compile(f"[{UNSPACED}]+")
_UNSPACED_RUN: Final = re.compile(f"[{UNSPACED}{HAN_AND_KANA}]+")
_LONGEST: Final = 64
_UNKNOWN: Final = ""
_BEGINNING: Final = 5
"""The letters of a word that stand for its stem where no stemmer knows the language: P. McNamee,
C. Nicholas, J. Mayfield, "Addressing morphological variation in alphabetic languages", SIGIR 2009,
https://doi.org/10.1145/1571941.1571957."""


def pairs(run: str) -> str:
    """Return a run of Han and Kana: its characters and pairs of them in order, with spaces.

    These scripts have no spaces, and most of their words have two characters.
    """
    found = [run[0]]
    for place in range(len(run) - 1):
        found += (run[place : place + 2], run[place + 1])
    return f" {' '.join(found)} "


def variants(
    text: str,
    words: Sequence[str],
    fold: Callable[[str], str],
    *,
    beginnings: bool = True,
) -> list[tuple[str, str]]:
    """Return further words of a text, each after the folded word that it is made of.

    - The stem of a word of a language that Snowball knows, if it differs from the English stem:
      M. F. Porter, "Snowball: a language for stemming algorithms", 2001,
      https://snowballstem.org/texts/introduction.html. The language of Latin words is that of the
      text; other scripts tell it.
    - The beginning of a word of any other language.
    - Pairs of letters of `UNSPACED` scripts, each a word of its own.
    - What has vowel signs is spelled in ASCII, since engines split it at the signs.

    Args:
        text: Any text.
        words: Its folded words.
        fold: Folds a word as text search does.
        beginnings: Whether the beginnings of words are among them.
    """
    language = language_of(words)
    if language is None and beginnings and not is_english(words):
        language = _UNKNOWN
    if text.isascii():
        return (
            [] if language is None else _with_further(words, language, fold, beginnings=beginnings)
        )
    # An accent that NFKC does not join to its letter only marks the stress.
    composed = _ACCENTS.sub("", normalized("NFKC", text).lower())
    if language is None and not _FOREIGN.search(composed):
        return []
    letter, word = letter_and_word()
    unfolded = word.findall(_UNSPACED_RUN.sub(" ", composed))
    found = _with_further(unfolded, language, fold, beginnings=beginnings)
    for run in _RUN.findall(composed):
        pairs_of_run = map("".join, pairwise(letter.findall(run)))
        found += ((pair, pair) for pair in map(_spelled, pairs_of_run))
    return found


def _with_further(
    words: Sequence[str], language: str | None, fold: Callable[[str], str], *, beginnings: bool
) -> list[tuple[str, str]]:
    """Return the further word of each word that has one, after the folded word."""
    found: list[tuple[str, str]] = []
    for each in words:
        algorithm = _algorithm(each, language)
        further = _further(each, algorithm, fold) if algorithm or beginnings else ""
        if further:
            found.append((fold(each), further))
    return found


def stemmed(word: str, language: str | None, fold: Callable[[str], str]) -> str:
    """Return the folded stem of a word by Snowball, or an empty string.

    Args:
        word: A word in lower case.
        language: The language of its text, see `language_of`; other scripts than Latin tell it.
        fold: Folds a word as text search does.
    """
    algorithm = _algorithm(word, language)
    if len(word) > _LONGEST or not algorithm or _DIGIT.search(word):
        return ""
    return fold(_by_snowball(word, algorithm))


def _algorithm(word: str, language: str | None) -> str | None:
    """Return the stemmer of a word; `_UNKNOWN`: there is none; `None`: the word is English."""
    if _LATIN.match(word):
        return language
    return next((name for name, script in _SCRIPTS if script.match(word)), _UNKNOWN)


@lru_cache(maxsize=65536)
def _further(word: str, algorithm: str | None, fold: Callable[[str], str]) -> str:
    """Return the further word for a word, or an empty string."""
    if len(word) > _LONGEST or algorithm is None or _DIGIT.search(word):
        return ""
    known = algorithm != _UNKNOWN
    base = fold(_by_snowball(word, algorithm)) if known else fold(word)[:_BEGINNING]
    if _PLAIN.fullmatch(base):
        return "" if stem(base) == stem(fold(word)) else base
    return _spelled(base) if base.strip() else ""


@lru_cache(maxsize=65536)
def _spelled(word: str) -> str:
    """Return a word in ASCII if an engine splits it; no other word has the same."""
    if _PLAIN.fullmatch(word):
        return word
    return f"u{'x'.join(f'{ord(each):x}' for each in word)}q"


@cache
def letter_and_word() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return a letter, and a word, each with its marks; `re` has no class of marks."""
    kept = (chr(code) for code in chain(*_WITH_MARKS))
    marks = "".join(filter(lambda each: unicodedata.category(each)[0] == "M", kept))
    letter = rf"[^\W_][{_MARKS}{marks}]*"
    return re.compile(letter), re.compile(f"(?:{letter})+")


def _by_snowball(word: str, algorithm: str) -> str:
    # Not imported above, since most processes read English only. A stemmer keeps its word in
    # itself, so threads share none; a new one takes a fiftieth of the time of a stem.
    stemmer: Any = import_module("snowballstemmer").stemmer(algorithm)
    return str(stemmer.stemWord(word))
