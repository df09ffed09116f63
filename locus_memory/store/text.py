"""The words of items and queries in text search.

An engine of a database indexes `searchable(value, text)`, and an engine of the library
`tokens(indexed(value, text))`. Both search for `query_words(query)`. All fold characters that are
not ASCII in the same way, so that the same query finds the same items on every backend. `tokens`
follows SQLite's tokenizer `porter unicode61 remove_diacritics 2`.

Words of other languages than English have variants, such as their stems, and Chinese and Japanese
have pairs of characters beside the characters: see `locus_memory.store.words`. Item and query have
both the words and the variants, so an item that was indexed without variants is found as well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain
from typing import Any, Final

from locus_memory.store.item import check_text
from locus_memory.store.words.languages import STOP_WORDS, is_stop_word, language_of
from locus_memory.store.words.normal_forms import normalized
from locus_memory.store.words.porter import stem
from locus_memory.store.words.variants import HAN_AND_KANA, UNSPACED, pairs, variants
from locus_memory.store.words.whole import WholeWords

__all__ = [
    "STOP_WORDS",
    "count_searchable",
    "count_tokens",
    "index_text",
    "indexed",
    "query_meanings",
    "query_prefix",
    "query_words",
    "searchable",
    "segment",
    "stem",
    "tokens",
    "whole_words",
]

_CJK: Final = re.compile(f"([{HAN_AND_KANA}]+)")
_TOLD_BY_PAIRS: Final = re.compile(f"[{UNSPACED}]{{3,}}")
_WORD = re.compile(r"[^\W_]+")
_BETWEEN = re.compile(r"[\W_]")
_CONTAINERS: Final = (dict, list)
_PIECE: Final = 64 * 1024
"""Characters of a text that are folded and split at a time; that takes a few milliseconds."""

_FOLDED: Final = bytes(
    ord(chr(code).lower()) if chr(code).isascii() and chr(code).isalnum() else ord(" ")
    for code in range(256)
)
"""The result of `_WORD` and `_fold` for ASCII, as a table: several times as fast."""

_PREFIX = re.compile(r"\s*([^\s*]+)\*\s*")
_SHORTEST_PREFIX: Final = 3
"""Characters; a shorter one would be that of a large part of the words."""

_SHORT: Final = 500
"""The most characters of a query whose words are kept."""

_END: Final = "\x01"
"""The same, but the end of a part is not changed."""

# Accents of Latin, Greek and Cyrillic, points of Hebrew, short vowels of Arabic, marks of
# symbols. The marks of other scripts are kept: there they are part of the word.
_MARKS = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
    "\u08d3-\u08e1\u08e3-\u08ff]+"
)


def index_text(value: Any) -> str:
    """Return all strings inside a JSON value, in order, one per line; no key names."""
    if isinstance(value, str):
        return value.replace("\x00", " ")
    found: list[str] = []
    if isinstance(value, _CONTAINERS):
        _collect(value, found)
    return "\n".join(found).replace("\x00", " ")


def _collect(value: Any, found: list[str]) -> None:
    children: Iterable[Any] = value.values() if isinstance(value, dict) else value
    for child in children:
        if isinstance(child, str):
            found.append(child)
        elif isinstance(child, _CONTAINERS):
            _collect(child, found)


def segment(text: str) -> str:
    """Return `text` with the characters of Han and Kana, and pairs of them, as words.

    These scripts have no spaces, so an engine that splits on spaces would read a sentence as one
    word. Hangul has spaces and is not changed, like all other scripts.
    """
    return text if text.isascii() else _CJK.sub(lambda run: pairs(run[0]), text)


def indexed(value: Any, text: str | None) -> str:
    """Return the text of an item for text search: `text` if given, else the value's strings.

    Raises:
        InvalidArgumentError: `text` is not a string of whole characters.
    """
    return index_text(value) if text is None else index_text(check_text(text, "text"))


def searchable(value: Any, text: str | None) -> str:
    """Return `indexed(value, text)` as an engine of a database reads it.

    ASCII is not changed; the engine splits and folds it. Other characters are folded and split
    here, because engines differ in the letters they know. Variants come last.

    Raises:
        InvalidArgumentError: `text` is not a string of whole characters.
    """
    found = indexed(value, text)
    whole = found.isascii()
    return "".join(_searchable(piece, as_it_is=whole) for piece in _pieces(found))


def _searchable(piece: str, *, as_it_is: bool) -> str:
    read = piece if as_it_is else _BETWEEN.sub(" ", segment(_fold(piece)))
    further = variants(piece, _plain_words(piece) if as_it_is else read.split(), _fold)
    return " ".join((read, *(each for _, each in further), "")) if further else read


def query_words(query: str, *, beginnings: bool = False) -> list[str]:
    """Return the distinct words of a query, folded, in order.

    Stop words are left out unless the query has no other words. A query without a letter or a digit
    has no words, and matches nothing.

    Args:
        query: The query.
        beginnings: Whether the beginnings of words of unknown languages are among them, as a search
            looks for them.

    Raises:
        InvalidArgumentError: `query` is not a string of whole characters.
    """
    text = check_text(query, "a query") or ""
    read = _short_words if len(text) <= _SHORT else _query_words
    return list(read(text, beginnings=beginnings))


def query_prefix(query: str) -> str:
    """Return the beginning of a word that a query such as `mull*` asks for, folded; empty: none.

    It has at least three characters, and stands alone: a star elsewhere is punctuation.

    Raises:
        InvalidArgumentError: `query` is not a string of whole characters.
    """
    found = _PREFIX.fullmatch(check_text(query, "a query") or "")
    words = _plain_words(found[1]) if found else []
    return words[0] if len(words) == 1 and len(words[0]) >= _SHORTEST_PREFIX else ""


def _query_words(text: str, *, beginnings: bool) -> tuple[str, ...]:
    read = (_words(piece, beginnings=beginnings) for piece in _pieces(text))
    words = list(dict.fromkeys(chain.from_iterable(read)))
    language = language_of(words)
    return tuple(word for word in words if not is_stop_word(word, language)) or tuple(words)


def query_meanings(query: str) -> list[tuple[str, ...]]:
    """Return the stems of the words of a query; words with the same meaning are one entry.

    An entry has a word and its variant. Pairs of characters are left out: their characters tell the
    same. Stop words are left out as in `query_words`.

    Raises:
        InvalidArgumentError: `query` is not a string of whole characters.
    """
    text = check_text(query, "a query") or ""
    return list(_short_meanings(text) if len(text) <= _SHORT else _query_meanings(text))


def _query_meanings(text: str) -> tuple[tuple[str, ...], ...]:
    words = query_words(text, beginnings=True)
    further = variants(text, _plain_words(text), _fold)
    sources = {variant: source for source, variant in further}
    entries: dict[str, dict[str, None]] = {}
    for word in words:
        if len(word) == 1 or not (_CJK.fullmatch(word) or _TOLD_BY_PAIRS.fullmatch(word)):
            entries.setdefault(sources.get(word, word), {})[stem(word)] = None
    return tuple(dict.fromkeys(map(tuple, entries.values()))) or tuple((stem(w),) for w in words)


# A message is searched for in several layers of memory, and each search reads it.
_short_words: Final = lru_cache(maxsize=1024)(_query_words)
_short_meanings: Final = lru_cache(maxsize=1024)(_query_meanings)


def tokens(text: str) -> list[str]:
    """Return the words of `text`, folded and stemmed, with repeats."""
    found: list[str] = []
    for piece in _pieces(text):
        found += map(stem, _words(piece))
    return found


def whole_words(text: str) -> WholeWords:
    """Return the whole words of `text`; search compares parts of those that have vowel signs."""
    return WholeWords.of(text, _fold)


def count_tokens(text: str) -> Counter[str]:
    """Return how often each of the `tokens` of a text occurs."""
    counts: Counter[str] = Counter()
    for piece in _pieces(text):
        counts.update(map(stem, _words(piece)))
    return counts


def count_searchable(text: str) -> Counter[str]:
    """Return how often each word of the result of `searchable` occurs, as SQLite counts them.

    Its variants are among its words already, whatever version made it.
    """
    counts: Counter[str] = Counter()
    for piece in _pieces(text):
        counts.update(map(stem, _split(_fold(piece))))
    return counts


def _pieces(text: str) -> Iterator[str]:
    """Yield the parts of a long text, cut before a space, where nothing is folded or joined.

    Code in C lets no other thread run before it is done, so it gets one piece at a time. A text
    without spaces stays whole.
    """
    start = 0
    while len(text) - start > _PIECE:
        end = text.find(" ", start + _PIECE)
        if end < 0:
            break
        yield text[start:end]
        start = end
    yield text[start:] if start else text


def _words(text: str, *, beginnings: bool = True) -> list[str]:
    words = _plain_words(text)
    further = variants(text, words, _fold, beginnings=beginnings)
    return [*words, *(each for _, each in further)] if further else words


def _plain_words(text: str) -> list[str]:
    return _split(text if text.isascii() else segment(_fold(text)))


def _split(text: str) -> list[str]:
    """Return the words of a text that is folded, or ASCII."""
    if text.isascii():
        return text.encode().translate(_FOLDED).decode().split()
    return _WORD.findall(text)


def _fold(text: str) -> str:
    """Return `text` without case and accents, one form for each character; idempotent."""
    if text.isascii():
        return text.lower()
    bare = _MARKS.sub("", normalized("NFKD", text))
    # The syllables of Hangul, and Kana with their voicing marks, are composed again.
    return normalized("NFC", bare.casefold())
