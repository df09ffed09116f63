"""Atoms: the pieces of a text that no chunk cuts, and their weight in tokens; pure.

An atom is a word with the spaces before it. A long word, and a text without spaces, are cut between
characters that a reader sees as one. The atoms of a text, joined, are the text.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Iterator
from functools import cache, lru_cache, partial
from itertools import accumulate, groupby
from typing import Final

from locus_memory.conversation.tokens import is_accented, weigh
from locus_memory.documents.chunking.config import ChunkConfig

__all__ = ["CJK", "atoms_of"]

_LONG: Final = 16
"""The length of the pieces of a long word, and of a long run of spaces, in characters."""

_SMALL: Final = 64
"""In smaller chunks, each character of a long word is a piece of its own."""

_PIECE: Final = re.compile(r"(?s:.{1,1048576})[^\n]*")
"""About a million characters, which are cut into atoms at a time, to bound the memory."""

CJK: Final = (
    "\u2e80-\u303f\u3041-\u31ff\u3400-\u9fff\uf900-\ufaff\uff01-\uff9f\U00020000-\U000323af"
)
"""Han, Kana and their punctuation, as a regular expression's class: they have no spaces."""

_WORDS: Final = re.compile(r"\s*\S+|\s+")
_LINE: Final = re.compile(r"\n[^\n]*|[^\n]+")

_SHAPES: Final = {
    code: "a" if char.islower() else "A" if char.isupper() else "0" if char.isdigit() else "."
    for code, char in enumerate(map(chr, range(128)))
    if not char.isspace()
}
"""ASCII characters that weigh the same, as one character each."""


def atoms_of(text: str, config: ChunkConfig) -> tuple[array[int], array[float]]:
    """Cut a text into atoms; linear in its length.

    Returns:
        The start of each atom in characters, and the end of the last one; and the tokens before
        each atom, and those of all.
    """
    starts, weights = array("q", [0]), array("d", [0.0])
    in_words = config.unit == "words"
    longest = 1 if config.chunk_size < _SMALL else _LONG
    # Each is computed once for all the same atoms of this text.
    in_tokens = [cache(partial(_tokens, foreign=foreign)) for foreign in (False, True)]
    for piece, foreign in _pieces(text):
        pattern = _WORDS if in_words else _token_pattern(longest, is_ascii=piece.isascii())
        found = pattern.findall(piece)
        weight = _words if in_words else in_tokens[foreign]
        starts.extend(accumulate(map(len, found), initial=starts.pop()))
        weights.extend(accumulate(map(weight, found), initial=weights.pop()))
    return starts, weights


def _words(atom: str) -> float:
    return float(not atom.isspace())


def _tokens(atom: str, *, foreign: bool) -> float:
    shape = atom.translate(_SHAPES) if atom.isascii() else atom
    word = shape.lstrip()
    spaces = shape[: len(shape) - len(word)]
    if len(spaces) > 1:
        # There are many indents and many words, and far more pairs of them.
        return _weight(spaces, foreign) + _weight(word, foreign)
    return _weight(shape, foreign)


@lru_cache(maxsize=65536)
def _weight(shape: str, foreign: bool) -> float:  # noqa: FBT001 - a key of the cache
    weight = weigh(shape, foreign=foreign)
    # A piece of a long word weighs more than a word of its length.
    is_long = len(shape) >= _LONG
    return max(weight, weigh(shape + shape, foreign=foreign) - weight) if is_long else weight


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Yield pieces that end before a line feed, and whether each is of another language.

    The language is that of the whole text, else of each line.
    """
    if text.isascii() or is_accented(text):
        foreign = not text.isascii()
        for found in _PIECE.finditer(text):
            yield found[0], foreign
        return
    kept: list[str] = []
    kept_foreign = False
    for line in _LINE.findall(text):
        foreign = is_accented(line)
        if kept and (foreign != kept_foreign or len(kept) == _LONG * _SMALL):
            yield "".join(kept), kept_foreign
            kept = []
        kept.append(line)
        kept_foreign = foreign
    if kept:
        yield "".join(kept), kept_foreign


@cache
def _token_pattern(longest: int, *, is_ascii: bool) -> re.Pattern[str]:
    """Return the pattern of an atom with at most `longest` characters of a word.

    The pattern of texts in ASCII finds the same atoms, several times as fast.
    """
    if is_ascii:
        return re.compile(f"\\s{{0,{_LONG}}}\\S{{1,{longest}}}|\\s{{1,{_LONG}}}")
    joined = f"(?:\u200d\\S|[{_joining()}]){{0,32}}"
    flag = "[\U0001f1e6-\U0001f1ff]{2}"
    unit = f"(?:{flag}|[^\\s{CJK}]){joined}"
    # Most words are ASCII and short: the first choice is only for speed.
    word = f"[!-~]{{1,{longest}}}(?![^\\s])|(?:{unit}){{1,{longest}}}|[{CJK}]{joined}"
    return re.compile(f"\\s{{0,{_LONG}}}(?:{word})|\\s{{1,{_LONG}}}")


@cache
def _joining() -> str:
    """Return the characters that belong to the one before, as a regular expression's class.

    They are combining marks, variation selectors, the colours of emoji and the later letters of a
    Hangul syllable. See https://unicode.org/reports/tr29/ for the whole rules.
    """
    marks = [code for code in range(0x300, 0x20000) if unicodedata.category(chr(code))[0] == "M"]
    # Codes that follow each other are as far from their places.
    runs = [list(run) for _, run in groupby(enumerate(marks), lambda each: each[1] - each[0])]
    ranges = "".join(f"{chr(run[0][1])}-{chr(run[-1][1])}" for run in runs)
    return f"{ranges}\u1160-\u11ff\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f\U000e0100-\U000e01ef"
