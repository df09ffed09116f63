"""BERT's tokenizer in plain Python."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import groupby
from typing import Final

from locus_memory.store.words.normal_forms import normalized

__all__ = ["WordPiece"]

_LONGEST_WORD: Final = 100
_CONTINUED: Final = "##"
_REMEMBERED: Final = 50_000
_ASCII_PUNCTUATION: Final = "!-/:-@\\[-`{-~"
_CJK: Final = (
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b73f"
    "\U0002b740-\U0002b81f\U0002b820-\U0002ceaf\U0002f800-\U0002fa1f"
)
_ALONE = re.compile(f"([{_ASCII_PUNCTUATION}{_CJK}])")
_PLAIN = re.compile(f"[a-z0-9]+|[{_ASCII_PUNCTUATION}]")


class WordPiece:
    """Splits a text as the uncased BERT models do: into words, then into the longest known parts.

    A word with an unknown part is left out as a whole.

    Source: the `BertTokenizer` of https://github.com/google-research/bert, `tokenization.py`.

    Args:
        vocabulary: The number of each token; a token that continues a word starts with `##`.
    """

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._vocabulary = vocabulary
        self._parts = lru_cache(_REMEMBERED)(self._split)

    def ids(self, text: str) -> list[int]:
        """Return the numbers of the text's tokens, in order."""
        found: list[int] = []
        for word in _words(text):
            found += self._parts(word)
        return found

    def _split(self, word: str) -> list[int]:
        found: list[int] = []
        start = 0
        while start < len(word) <= _LONGEST_WORD:
            mark = _CONTINUED if start else ""
            ends = range(len(word), start, -1)
            end = next((e for e in ends if mark + word[start:e] in self._vocabulary), None)
            if end is None:
                return []
            found.append(self._vocabulary[mark + word[start:end]])
            start = end
        return found


def _words(text: str) -> Iterator[str]:
    if text.isascii() and text.isprintable():
        yield from _PLAIN.findall(text.lower())
        return
    for word in _folded(text).split():
        yield from _apart(word)


def _folded(text: str) -> str:
    """Return `text` in lower case without accents, control characters or unusual spaces."""
    spaced = "".join(" " if _is_space(c) else c for c in text if not _is_dropped(c))
    decomposed = normalized("NFD", _ALONE.sub(r" \1 ", spaced))
    return "".join(c for c in decomposed if unicodedata.category(c) != "Mn").lower()


def _apart(word: str) -> Iterator[str]:
    """Yield the parts of a word between its punctuation, and each punctuation mark."""
    for is_mark, run in groupby(word, lambda each: unicodedata.category(each).startswith("P")):
        part = "".join(run)
        yield from part if is_mark else (part,)


def _is_space(character: str) -> bool:
    return character in "\t\n\r" or unicodedata.category(character) == "Zs"


def _is_dropped(character: str) -> bool:
    if character in "\t\n\r":
        return False
    return character in "\0\ufffd" or unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs")
