"""When two contents say the same."""

from __future__ import annotations

from typing import Final

from locus_memory.store.text import stem

__all__ = ["gist", "same_content"]

_EDGES: Final = ".,;:!?\"'()[]{}<>\u2018\u2019\u201c\u201d\u00ab\u00bb\u2026\u3001\u3002"

# Words without which a sentence says the same. Most stop words of a search are not among
# them: not, from, to, was, without, I and she tell facts apart.
_EMPTY_WORDS: Final = "a an the am is are be do does have has that this these those it its"
_EMPTY: Final = frozenset(_EMPTY_WORDS.split())


def same_content(one: str, other: str) -> bool:
    """Whether two contents differ in case, spaces and the punctuation around words at most."""
    return one == other or (_words(one) == _words(other) and bool(_words(one)))


def gist(content: str) -> tuple[str, ...]:
    """Return the stems of the words that matter, in order; empty if there are none.

    Contents of the same gist are near-duplicates. Order, numbers, negations, prepositions,
    persons and tenses all count: two facts taken for one would lose a fact.
    """
    words = (word for word in _words(content) if word not in _EMPTY)
    return tuple(stem(word) if word.isascii() and word.isalpha() else word for word in words)


def _words(content: str) -> list[str]:
    stripped = (word.strip(_EDGES) for word in content.casefold().split())
    return [word for word in stripped if word]
