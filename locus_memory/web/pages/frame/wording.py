"""The words that differ between two versions of a text; pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Final, Literal, NamedTuple
from unicodedata import category

__all__ = ["Piece", "compare_words"]

_WORDS: Final = re.compile(r"\w+|\s+|[^\w\s]")
_MOST: Final = 2_000
"""Of longer texts, only the common beginning and end are found: the rest takes too long."""

_MOST_PAIRS: Final = 20_000
"""The pairs of equal words of two texts; of more, the same. The time grows with them."""


class Piece(NamedTuple):
    """A piece of a comparison.

    Attributes:
        kind: Whether both texts have it, or the old one, or the new one.
        text: Its text.
    """

    kind: Literal["same", "removed", "added"]
    text: str


def compare_words(old: str, new: str) -> list[Piece]:
    """Return both texts as pieces: those of the old one in order, and those of the new one."""
    left, right = _words(old), _words(new)
    counts = Counter(right)
    pairs = sum(counts[word] for word in left if not word.isspace())
    if max(len(left), len(right)) > _MOST or pairs > _MOST_PAIRS:
        return list(_roughly(old, new))
    pieces: list[Piece] = []
    # Spaces are only matched beside a word: there are too many pairs of them.
    matcher = SequenceMatcher(str.isspace, left, right, autojunk=False)
    for tag, a, a_end, b, b_end in matcher.get_opcodes():
        if tag == "equal":
            pieces.append(Piece("same", "".join(left[a:a_end])))
            continue
        if a < a_end:
            pieces.append(Piece("removed", "".join(left[a:a_end])))
        if b < b_end:
            pieces.append(Piece("added", "".join(right[b:b_end])))
    return pieces


def _words(text: str) -> list[str]:
    """Return the words of a text, its spaces and its signs; a vowel sign belongs to its word."""
    letters = text if text.isascii() else "".join(map(_letter, text))
    return [text[slice(*found.span())] for found in _WORDS.finditer(letters)]


def _letter(char: str) -> str:
    return "x" if category(char).startswith("M") else char


def _roughly(old: str, new: str) -> Iterator[Piece]:
    shortest = min(len(old), len(new))
    start = next((n for n in range(shortest) if old[n] != new[n]), shortest)
    rest = shortest - start
    end = next((n for n in range(rest) if old[-1 - n] != new[-1 - n]), rest)
    parts = (
        Piece("same", old[:start]),
        Piece("removed", old[start : len(old) - end]),
        Piece("added", new[start : len(new) - end]),
        Piece("same", old[len(old) - end :]),
    )
    yield from (part for part in parts if part.text)
