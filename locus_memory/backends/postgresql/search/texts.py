"""Text search by BM25, within one namespace or a tree of them."""

from __future__ import annotations

from locus_memory.backends.postgresql.connection.connection import PostgreSQLPool
from locus_memory.backends.postgresql.items.items import item_of
from locus_memory.backends.postgresql.items.queries import Arguments, search_items
from locus_memory.backends.postgresql.items.ranges import Scope
from locus_memory.backends.postgresql.search.words import any_of
from locus_memory.backends.selection import Page
from locus_memory.store.filters import Condition
from locus_memory.store.item import StoreItem

__all__ = ["search_text"]


async def search_text(
    pool: PostgreSQLPool, scope: Scope, words: list[str], condition: Condition, page: Page
) -> list[StoreItem]:
    """Return the items with any of the words that satisfy the condition, the best first.

    `ts_rank` of PostgreSQL does not weigh rare words more than common ones, so the statement
    computes BM25: each word of the query adds

        ln(1 + (N - n + 0.5) / (n + 0.5)) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * dl / avgdl))

    where `N` items in the scope have any text, `n` of them this word, the item has it `tf` times
    and `dl` words in all, `avgdl` on average; `k1` is 1.2 and `b` 0.75. S. Robertson, H. Zaragoza,
    "The Probabilistic Relevance Framework: BM25 and Beyond", Foundations and Trends in Information
    Retrieval 3(4), 2009.

    Args:
        pool: The database.
        scope: The namespaces.
        words: The words that `query_stems` returned.
        condition: A parsed filter.
        page: The wanted part of the hits.
    """
    if not words or not page.limit:
        return []
    arguments = Arguments()
    limit, offset = arguments.bind(page.limit, "bigint"), arguments.bind(page.offset, "bigint")
    statement = search_items(
        scope.condition("i", arguments),
        scope.live(arguments),
        arguments.compile(condition),
        words=arguments.bind_list([any_of([word]) for word in words]),
        count=len(words),
        query=arguments.bind(any_of(words), "text"),
        page=f"LIMIT {limit} OFFSET {offset}",
    )
    rows = await pool.fetch(statement, *arguments.values)
    return [item_of(row, row["score"]) for row in rows]
