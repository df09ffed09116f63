"""The words of an item as a `tsvector`, and of a query as a `tsquery`.

Words are folded, split and stemmed here, as everywhere in the library, and not by one of the
server's configurations. So neither `unaccent` nor a dictionary has to be there, and the same
query finds the same items in every database.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from locus_memory.store.text import query_words, searchable, stem, tokens, tokens_of_all

__all__ = ["any_of", "index_all", "index_words", "query_stems"]

# https://www.postgresql.org/docs/current/textsearch-limitations.html: a lexeme has less than
# 2 KB, at most 256 positions are kept of it, and all lexemes with their positions have 1 MB.
_LONGEST: Final = 500
"""Characters, of at most four bytes; of a longer word only the beginning counts."""

_MOST_POSITIONS: Final = 255
_ROOM: Final = 1_000_000
_OVERHEAD: Final = 3

_MOST_WORDS: Final = 200
"""Of a query: what is longer is a text, and these tell enough of it."""


def index_words(value: Any, text: str | None) -> tuple[str, int]:
    """Return the words of an item as the text of a `tsvector`, and how many there are.

    A word that is there `n` times has `n` positions: they tell how often it is there, not where.
    Words that no longer fit in are left out.

    Raises:
        InvalidArgumentError: `text` is not a string of whole characters.
    """
    words = tokens(searchable(value, text))
    return _vector(words), len(words)


def index_all(values: Sequence[Any], texts: Sequence[str | None]) -> tuple[list[str], list[int]]:
    """Return what `index_words` makes of each item: the texts, and how many words there are.

    Raises:
        InvalidArgumentError: A text is not a string of whole characters.
    """
    found = tokens_of_all(values, texts)
    return list(map(_vector, found)), list(map(len, found))


def _vector(words: list[str]) -> str:
    if len(words) <= _MOST_POSITIONS:
        # The server puts the positions of a word together.
        text = _template(len(words)) % tuple(words)
        if len(text) <= _LONGEST or max(map(len, words)) <= _LONGEST:
            return text
    # Not of a list: to count one holds up every other thread.
    entries = _that_fit(Counter(word[:_LONGEST] for word in words))
    return " ".join(f"'{word}':{_positions(count)}" for word, count in entries)


def _that_fit(counts: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    room = _ROOM
    for word, count in counts.items():
        room -= len(word.encode()) + 2 * min(count, _MOST_POSITIONS) + _OVERHEAD
        if room < 0:
            return
        yield word, count


@lru_cache(maxsize=_MOST_POSITIONS)
def _template(count: int) -> str:
    return " ".join(f"'%s':{position}" for position in range(1, count + 1))


@lru_cache(maxsize=_MOST_POSITIONS)
def _positions(count: int) -> str:
    return ",".join(map(str, range(1, min(count, _MOST_POSITIONS) + 1)))


def query_stems(query: str) -> list[str]:
    """Return the distinct words to look for, as `index_words` has them; at most 200.

    Raises:
        InvalidArgumentError: `query` is not a string of whole characters.
    """
    return list(dict.fromkeys(_cut(map(stem, query_words(query)))))[:_MOST_WORDS]


def any_of(words: list[str]) -> str:
    """Return the text of a `tsquery` that any of the words satisfies.

    It is a balanced tree: the server descends into it, and a long query is no deep one.
    """
    if len(words) == 1:
        return f"'{words[0]}'"
    middle = len(words) // 2
    return f"({any_of(words[:middle])} | {any_of(words[middle:])})"


def _cut(words: Iterable[str]) -> list[str]:
    # Letters and digits only: nothing that has a meaning in a `tsvector` or a `tsquery`.
    return [word[:_LONGEST] for word in words]
