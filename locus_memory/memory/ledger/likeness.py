"""Sameness: when two facts are one."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from locus_memory.store.text import query_words
from locus_memory.store.words.normal_forms import normalized

__all__ = ["folded", "made_up_key", "same_content"]

_WORDS: Final = 4
_LONGEST: Final = 57
_LETTERS: Final = str.maketrans("0123456789abcdef", "ghkmnpqrstabcdef")
"""Letters for digits: a word with both looks like a secret."""


def folded(content: str) -> str:
    """Return a content without what tells no fact from another: two are the same if this is equal.

    These are the forms of characters (NFKC), case, and white space. All other differences count,
    since one word, sign or accent may turn a fact into its opposite.
    """
    return " ".join(normalized("NFKC", normalized("NFKC", content).casefold()).split())


def same_content(one: str, other: str) -> bool:
    """Return whether two contents of one key differ at most in white space.

    So a new spelling of a fact, such as "Ada" for "ada", is a version of its own.
    """
    return one.split() == other.split()


def made_up_key(content: str) -> str:
    """Return a key for a content that has none: its first four content words, and a mark.

    The mark is that of the `folded` content: a fact never takes the place of another one that
    begins with the same words.
    """
    said = folded(content).encode("utf-8", "replace")
    words = "-".join(query_words(content)[:_WORDS])[:_LONGEST]
    mark = blake2b(said, digest_size=3).hexdigest().translate(_LETTERS)
    return f"{words}-{mark}".lstrip("-")
