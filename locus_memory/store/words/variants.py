"""Further words for a text that is not English: stems, and words whole that engines split."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, Final

from locus_memory.store.words.languages import language_of
from locus_memory.store.words.porter import stem

__all__ = ["pairs", "variants"]

# Vowel signs of the scripts of India: an engine takes them for spaces.
_SIGNS: Final = "\u0900-\u0963\u0971-\u0de5"
_MARKS: Final = "\u064b-\u065f\u0670"
_WORD: Final = re.compile(rf"[^\W_](?:[^\W_]|[{_SIGNS}{_MARKS}])*")
_PLAIN: Final = re.compile(r"[^\W_]+")
_SCRIPTS: Final = (
    ("hindi", re.compile("[\u0900-\u097f]")),
    ("arabic", re.compile("[\u0620-\u064a]")),
    ("russian", re.compile("[\u0400-\u04ff]")),
)
_ANY_SCRIPT: Final = re.compile(f"[{_SIGNS}\u0400-\u04ff\u0620-\u064a]")
_ACCENTS: Final = re.compile("[\u0300-\u036f]")
_LONGEST: Final = 64


def pairs(run: str) -> str:
    """Return a run of Han and Kana: its characters and pairs of them in order, with spaces.

    These scripts have no spaces, and most of their words have two characters.
    """
    found = [run[0]]
    for place in range(len(run) - 1):
        found += (run[place : place + 2], run[place + 1])
    return f" {' '.join(found)} "


def variants(text: str, words: Sequence[str], fold: Callable[[str], str]) -> list[tuple[str, str]]:
    """Return further words of a text in order, each after the folded word that it is made of.

    - The stem of a word of a language that Snowball knows, if it differs from the English stem:
      M. F. Porter, "Snowball: a language for stemming algorithms", 2001,
      https://snowballstem.org/texts/introduction.html. The language of Latin words is that of the
      text; other scripts tell it.
    - A word with vowel signs, spelled in ASCII, since engines split it at the signs.

    Args:
        text: Any text.
        words: Its folded words.
        fold: Folds a word as text search does.
    """
    language = language_of(words)
    if language is None and text.isascii():
        return []
    found: list[tuple[str, str]] = []
    # An accent that NFKC does not join to its letter only marks the stress.
    composed = _ACCENTS.sub("", unicodedata.normalize("NFKC", text).lower())
    if language is None and not _ANY_SCRIPT.search(composed):
        return []
    for word in _WORD.findall(composed):
        further = _further(word, language, fold)
        if further:
            found.append((fold(word), further))
    return found


@lru_cache(maxsize=65536)
def _further(word: str, language: str | None, fold: Callable[[str], str]) -> str:
    """Return the further word for a word, or an empty string."""
    if len(word) > _LONGEST:
        return ""
    algorithm = next((name for name, script in _SCRIPTS if script.match(word)), None)
    if algorithm is None and (language is None or not _LATIN.match(word)):
        return ""
    base = fold(_stemmer(algorithm or language or "").stemWord(word))
    if _PLAIN.fullmatch(base):
        return "" if stem(base) == stem(fold(word)) else base
    return _spelled(base) if base.strip() else ""


_LATIN: Final = re.compile("[a-z\u00df-\u024f]")


def _spelled(word: str) -> str:
    """Return a word in ASCII; no other word has the same, and no engine stems it."""
    return f"u{'x'.join(f'{ord(each):x}' for each in word)}q"


@lru_cache(maxsize=32)
def _stemmer(algorithm: str) -> Any:
    # Not imported above, since most processes read English only. It has no types.
    return import_module("snowballstemmer").stemmer(algorithm)
