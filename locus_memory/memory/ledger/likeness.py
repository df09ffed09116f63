"""Comparison of contents: equal ones and near-duplicates."""

from __future__ import annotations

from typing import Final

__all__ = ["gist", "same_content"]

_ENDS: Final = ".!?\u2026\u3002 "


def same_content(one: str, other: str) -> bool:
    """Return whether two contents differ at most in spaces: a replaced content is never lost."""
    return one == other or one.split() == other.split()


def gist(content: str) -> tuple[str, ...]:
    """Return the significant words, in order; empty if there are none.

    Contents with the same gist are near-duplicates: they differ in spaces, in their last
    punctuation, in "the", and in the case of the first letter of ordinary words. All other
    differences count, since merging two different facts would lose one: "a few", "> 5",
    "has a cold", "IT", "/srv/Data", ".NET".
    """
    words = map(_folded, content.strip().rstrip(_ENDS).split())
    return tuple(word for word in words if word != "the")


def _folded(word: str) -> str:
    return word.lower() if word.isalpha() and word[1:].islower() else word
