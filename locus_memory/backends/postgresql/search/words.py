"""The words of an item as a `tsvector`, and of a query as a `tsquery`.

Words are folded, split and stemmed here, as everywhere in the library, not by a configuration of
the server. So neither `unaccent` nor a dictionary is needed, and the same query finds the same
items in every database.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from locus_memory.store.text import indexed, query_words, stem, tokens

__all__ = ["any_of", "index_words", "query_stems"]

# https://www.postgresql.org/docs/current/textsearch-limitations.html: a lexeme has less than
# 2 KB, at most 256 positions of it are kept, and all lexemes with their positions have 1 MB.
_LONGEST: Final = 500
"""Characters, of at most four bytes; of a longer word only the beginning is indexed."""

_MOST_POSITIONS: Final = 255
_ROOM: Final = 1_000_000
_OVERHEAD: Final = 3

_MOST_WORDS: Final = 200
"""Of a query: a longer one is a text, and so many words describe it well enough."""


def index_words(value: Any, text: str | None) -> tuple[str, int]:
    """Return the words of an item as the text of a `tsvector`, and their number.

    A word that occurs `n` times has `n` positions, which tell its frequency, not its place.
    Words that exceed the limit are left out.

    Raises:
        InvalidArgumentError: `text` is not a string of whole characters.
    """
    words = tokens(indexed(value, text))
    return _vector(words), len(words)


def _vector(words: list[str]) -> str:
    # A generator, not a list: to count a list blocks every other thread.
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
def _positions(count: int) -> str:
    return ",".join(map(str, range(1, min(count, _MOST_POSITIONS) + 1)))


def query_stems(query: str) -> list[str]:
    """Return the distinct words of a query, in the format of `index_words`; at most 200.

    Raises:
        InvalidArgumentError: `query` is not a string of whole characters.
    """
    return list(dict.fromkeys(_cut(map(stem, query_words(query, beginnings=True)))))[:_MOST_WORDS]


def any_of(words: list[str]) -> str:
    """Return the text of a `tsquery` that any of the words satisfies.

    It is a balanced tree: the server recurses into it, and a long query stays shallow.
    """
    if len(words) == 1:
        prefix = words[0].removesuffix("*")
        return f"'{words[0]}'" if prefix == words[0] else f"'{stem(prefix)[:_LONGEST]}':*"
    middle = len(words) // 2
    return f"({any_of(words[:middle])} | {any_of(words[middle:])})"


def _cut(words: Iterable[str]) -> list[str]:
    # Letters and digits only: no character with a meaning in a `tsvector` or a `tsquery`.
    return [word[:_LONGEST] for word in words]
