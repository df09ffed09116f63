"""Text search by BM25, within one namespace or a tree of them."""

from __future__ import annotations

from typing import Final

from locus_memory._internal.recent import RecentlyUsed
from locus_memory.backends.postgresql.connection.connection import PostgreSQLPool
from locus_memory.backends.postgresql.items.items import item_of
from locus_memory.backends.postgresql.items.queries import Arguments
from locus_memory.backends.postgresql.items.ranges import Scope
from locus_memory.backends.postgresql.items.text_queries import TextQuery, rank_all, rank_groups
from locus_memory.backends.postgresql.search.words import any_of
from locus_memory.backends.selection import Page, at_most
from locus_memory.store.filters import Condition
from locus_memory.store.item import StoreItem

__all__ = ["TextSearch"]

_FEW: Final = 3_000
"""Up to so many matches, it is faster to score each of them."""

_REMEMBERED: Final = 1_024
"""The number of cached namespaces."""


class TextSearch:
    """The text search of one store, which caches how many matches a namespace had last.

    Args:
        pool: The database.
    """

    def __init__(self, pool: PostgreSQLPool) -> None:
        self._pool = pool
        self._matches: RecentlyUsed[int] = RecentlyUsed(_REMEMBERED)

    async def find(
        self, scope: Scope, words: list[str], condition: Condition, page: Page
    ) -> list[StoreItem]:
        """Return the items with any of the words that satisfy the condition, the best first.

        `ts_rank` of PostgreSQL does not weigh rare words more than common ones, so the statement
        computes BM25: each word of the query adds

            ln(1 + (N - n + 0.5) / (n + 0.5)) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * dl / avgdl))

        where `N` items in the scope have any text, `n` of them this word, the item has it `tf`
        times and `dl` words in all, `avgdl` on average; `k1` is 1.2 and `b` 0.75. S. Robertson, H.
        Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", Foundations and Trends
        in Information Retrieval 3(4), 2009.

        Args:
            scope: The namespaces.
            words: The words that `query_stems` returned.
            condition: A parsed filter.
            page: The wanted part of the hits.
        """
        if not words or not page.limit:
            return []
        name = f"{scope.recursive} {scope.path}"
        are_many = (self._matches.get(name) or 0) > _FEW
        arguments = Arguments()
        first = arguments.bind(at_most(page.limit + page.offset), "bigint") if are_many else ""
        limit, offset = arguments.bind(page.limit, "bigint"), arguments.bind(page.offset, "bigint")
        query = TextQuery(
            scope.condition("i", arguments),
            scope.live(arguments),
            arguments.compile(condition),
            words=arguments.bind_list([any_of([word]) for word in words]),
            count=len(words),
            any_word=arguments.bind(any_of(words), "text"),
            first=first,
            page=f"LIMIT {limit} OFFSET {offset}",
        )
        # Both return the same items.
        statement = rank_groups(query) if are_many else rank_all(query)
        rows = await self._pool.fetch(statement, *arguments.values)
        if rows:
            self._matches.put(name, rows[0]["matches"])
        return [item_of(row, row["score"]) for row in rows]
