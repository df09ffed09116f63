"""When two contents say the same."""

from __future__ import annotations

from typing import Final

__all__ = ["gist", "same_content"]

_ENDS: Final = ".!?\u2026\u3002 "


def same_content(one: str, other: str) -> bool:
    """Whether two contents differ in spaces at most: what replaces a content is never lost."""
    return one == other or one.split() == other.split()


def gist(content: str) -> tuple[str, ...]:
    """Return the words that matter, in order; empty if there are none.

    Contents of the same gist are near-duplicates: they differ in spaces, in how they end, in
    "the", and in how ordinary words begin. Everything else counts, since two facts taken for one
    would lose a fact: "a few", "> 5", "has a cold", "IT", "/srv/Data", ".NET".
    """
    words = map(_folded, content.strip().rstrip(_ENDS).split())
    return tuple(word for word in words if word != "the")


def _folded(word: str) -> str:
    return word.lower() if word.isalpha() and word[1:].islower() else word
