"""The words by which texts are erased; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from locus_memory.store.text import query_words, segment, stem, tokens

__all__ = ["Words", "text_of"]


class Words:
    """The words of queries: a text that has all words of one of them is found.

    A query without words finds nothing, and `Words` of such queries alone are false.

    Args:
        queries: The queries.
    """

    def __init__(self, queries: Iterable[str]) -> None:
        self._wanted = [
            # Scripts without spaces: the characters of a word must be together as well.
            (stems, [run.casefold() for run in query.split() if segment(run) != run])
            for query in queries
            if (stems := {stem(word) for word in query_words(query)})
        ]

    def __bool__(self) -> bool:
        return bool(self._wanted)

    def are_in(self, text: str) -> bool:
        """Return whether a text has all words of a query, in any form and any order."""
        if not self._wanted:
            return False
        folded, found = text.casefold(), set(tokens(text))
        return any(
            stems <= found and all(run in folded for run in runs) for stems, runs in self._wanted
        )


def text_of(value: Any) -> str:
    """Return the `text` of a stored value; empty if it has none."""
    text = value.get("text") if isinstance(value, Mapping) else None
    return text if isinstance(text, str) else ""
