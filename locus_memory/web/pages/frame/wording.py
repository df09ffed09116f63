"""The words that differ between two versions of a text; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Final, Literal, NamedTuple

__all__ = ["Piece", "compare_words"]

_WORDS: Final = re.compile(r"\w+|\s+|[^\w\s]")
_MOST: Final = 2_000
"""Of longer texts, only the common beginning and end are found: the rest takes too long."""


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
    left, right = _WORDS.findall(old), _WORDS.findall(new)
    if max(len(left), len(right)) > _MOST:
        return list(_roughly(old, new))
    pieces: list[Piece] = []
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    for tag, a, a_end, b, b_end in matcher.get_opcodes():
        if tag == "equal":
            pieces.append(Piece("same", "".join(left[a:a_end])))
            continue
        if a < a_end:
            pieces.append(Piece("removed", "".join(left[a:a_end])))
        if b < b_end:
            pieces.append(Piece("added", "".join(right[b:b_end])))
    return pieces


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
