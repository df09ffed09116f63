"""Text search, within one namespace or a tree of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from locus_memory.backends.oracle.connection.connection import OraclePool
from locus_memory.backends.oracle.connection.driver import Row
from locus_memory.backends.oracle.items import queries
from locus_memory.backends.oracle.items.queries import Arguments
from locus_memory.backends.oracle.items.ranges import Scope
from locus_memory.backends.oracle.items.rows import word_name
from locus_memory.backends.oracle.search.filters import compile_filter
from locus_memory.backends.oracle.search.hits import hits_of
from locus_memory.backends.selection import Page
from locus_memory.store.filters import Condition
from locus_memory.store.item import StoreItem
from locus_memory.store.text import query_words, stem

__all__ = ["query_stems", "search_text", "stems_text"]

_MOST_WORDS: Final = 200
"""Words of a query: a longer one is a text, and so many words describe it well enough."""

_LONGEST_QUERY: Final = 4_000
"""Bytes of a text that is bound."""


def query_stems(query: str) -> list[str]:
    """Return the distinct stems of a query, at most 200.

    Raises:
        InvalidArgumentError: `query` is not a string of whole characters.
    """
    return list(dict.fromkeys(map(stem, query_words(query, beginnings=True))))[:_MOST_WORDS]


async def search_text(
    pool: OraclePool, scope: Scope, words: Sequence[str], condition: Condition, page: Page
) -> list[StoreItem]:
    """Return the items with any of the words that satisfy the condition, the best first.

    Each word of the query adds `ln(1 + (N - n + 0.5) / (n + 0.5)) * tf * (k1 + 1) / (tf + k1 *
    (1 - b + b * dl / avgdl))`, where `N` items in the scope have any text, `n` of them this word,
    the item has it `tf` times and `dl` words in all, `avgdl` on average; `k1` is 1.2 and `b` 0.75.
    S. Robertson, H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond",
    Foundations and Trends in Information Retrieval 3(4), 2009. With an index of Oracle Text, the
    score is that of Oracle Text.

    Args:
        pool: The database.
        scope: The namespaces.
        words: The stems that `query_stems` returned.
        condition: A parsed filter.
        page: The wanted part of the hits.
    """

    async def query(offset: int, size: int) -> list[Row]:
        arguments = Arguments()
        here, live = scope.condition(arguments), scope.live(arguments)
        fits = compile_filter(condition, arguments, native_json=pool.features.native_json)
        skip, most = arguments.bind(offset), arguments.bind_new(size)
        if pool.features.has_oracle_text:
            statement = queries.ranked_by_oracle_text(
                f"{here} AND {live} AND ({fits})",
                query=arguments.bind(_any_of(words)),
                offset=skip,
                most=most,
            )
        else:
            names = ", ".join(arguments.bind(word_name(word)) for word in words)
            statement = queries.ranked(here, live, fits=fits, words=names, offset=skip, most=most)
        return await pool.fetch(statement, arguments.binds)

    hits = await hits_of(scope, condition, query, page)
    return [replace(item, score=float(score)) for item, score in hits]


def stems_text(words: Iterable[str]) -> str:
    """Return words as a text for Oracle Text: hexadecimal, so that none is an operator of it."""
    return " ".join(f"x{word_name(word).hex()}" for word in words)


def _any_of(words: Iterable[str]) -> str:
    """Return the text of CONTAINS for any of the words, as many as it takes."""
    text = ""
    for word in words:
        longer = f"{text} OR {stems_text([word])}" if text else stems_text([word])
        if len(longer) > _LONGEST_QUERY:
            break
        text = longer
    return text
