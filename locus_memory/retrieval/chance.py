"""Chance: whether the words of a question may stand in an item without answering it; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from locus_memory.retrieval.ranking.absolute import matches
from locus_memory.retrieval.ranking.fields import Passage
from locus_memory.retrieval.ranking.query import Query

__all__ = ["by_chance"]

_FEW: Final = 2
"""So many words of a question meet in an item by chance."""

_NEAR: Final = 0.5
"""From here on, an item is nearer to a paraphrase of the question than to what is unrelated."""

_APART: Final = 0.07
"""An item that is nearer than the mean of the nearest ones by this much stands out;
`docs/documents.md` has the measurement."""

_WRITTEN: Final = re.compile(r"\w[\w.-]*\w")
_NAME: Final = re.compile(
    r"_|[a-z][A-Z]|[A-Z]{2}[a-z]{2}|[^\W\d_][.-]?\d|\d[^\W\d_]|[^\W\d_]{2}\.[^\W\d_]{2}"
)


def by_chance(query: Query, passage: Passage, near: float, mean: float) -> bool:
    """Return whether nothing speaks for an item but one or two everyday words of the question.

    Among a thousand items, one has two words of a question and is about something else. The vector
    of an item that is about the same is near to the question, or at least stands out.
    A name, such as `run_sync` or `sha256`, is in no item by chance, and vectors hardly know it.

    Args:
        query: The question.
        passage: The item.
        near: The cosine of the item on the scale of the model, from 0 to 1.
        mean: That of the nearest items, see `locus_memory.retrieval.ranking.absolute.level`.
    """
    if near >= _NEAR or near - mean >= _APART:
        return False
    found = sum(has for (has,) in matches(query.meanings, [passage]))
    return found <= _FEW and not _has_name(query, passage)


def _has_name(query: Query, passage: Passage) -> bool:
    names = list(_names(query.text))
    text = f"{passage.title}\n{passage.text}".casefold() if names else ""
    return any(name in text for name in names)


def _names(text: str) -> Iterator[str]:
    """Yield what is written as a name of a program: joined, with digits, or with inner capitals."""
    for match in _WRITTEN.finditer(text):
        if _NAME.search(match[0]):
            yield match[0].casefold()
