"""Text search by BM25, within one namespace or a tree of them.

The server knows how often a word is in an item, and how rare it is in all namespaces together.
A ranking within the scope needs the rarity there, so it is counted first, in a request without
hits. A query of one word needs no count: its rarity is the same for all hits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from locus_memory.backends.opensearch.connection.connection import OpenSearchConnection
from locus_memory.backends.opensearch.items.documents import item_of
from locus_memory.backends.opensearch.items.paging import Search, count_each, find
from locus_memory.backends.opensearch.items.scopes import Query, Scope
from locus_memory.backends.selection import Page
from locus_memory.store.filters import Condition
from locus_memory.store.item import StoreItem
from locus_memory.store.text import stem

__all__ = ["BEST", "search_text"]

BEST: Final = {"_score": "desc"}
"""The order of hits: the best first."""

_RANKED: Final = 400
"""The most words that rank; the server takes 1,024 clauses by default. The others only match."""

_LITTLE: Final = 1e-9
"""The score of a hit that has none of the words that rank."""

_K1: Final = 1.2


async def search_text(
    connection: OpenSearchConnection,
    scope: Scope,
    words: Sequence[str],
    condition: Condition,
    page: Page,
) -> list[StoreItem]:
    """Return the items with any of the words that satisfy the condition, the best first.

    Each word of the query adds

        ln(1 + (N - n + 0.5) / (n + 0.5)) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * dl / avgdl))

    where `N` items in the scope have any text, `n` of them this word, the item has it `tf` times
    and `dl` words in all, `avgdl` on average in the shard; `k1` is 1.2 and `b` 0.75. S. Robertson,
    H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", Foundations and Trends
    in Information Retrieval 3(4), 2009.

    Args:
        connection: The connection.
        scope: The namespaces.
        words: The words of the query, folded.
        condition: A parsed filter.
        page: The wanted part of the hits.
    """
    if not page.limit:
        return []
    # Words of one stem are one word.
    distinct = list({stem(word): word for word in reversed(words)}.values())[::-1]
    weights = await _weights(connection, scope, distinct[:_RANKED])
    having = [_having(word, weight) for word, weight in zip(distinct, weights, strict=False)]
    if len(distinct) > _RANKED:
        having.append(_having_any(distinct[_RANKED:]))
    any_word = {"bool": {"should": having, "minimum_should_match": 1}}
    query = scope.having(condition, must=[any_word])
    hits = await find(connection, Search(query, scope.order(BEST), scope.routing, condition), page)
    return [item_of(hit["_source"], hit["sort"][0]) for hit in hits]


async def _weights(
    connection: OpenSearchConnection, scope: Scope, words: Sequence[str]
) -> list[float]:
    """Return the part of the score that depends on the rarity of each word in the scope."""
    if len(words) == 1:
        return [1.0]
    # Each reads the items with that word only; one aggregation would read all of the namespace.
    queries = [{"exists": {"field": "text"}}, *map(_having, words)]
    count, *counts = await count_each(connection, map(scope.where, queries), scope.routing)
    return [_weight(count, each) for each in counts]


def _weight(count: int, having: int) -> float:
    return (_K1 + 1) * math.log1p((count - having + 0.5) / (having + 0.5))


def _having(word: str, weight: float = 1.0) -> Query:
    # The server cuts a very long word into several.
    return {"match": {"text": {"query": word, "operator": "and", "boost": weight}}}


def _having_any(words: Iterable[str]) -> Query:
    terms = {"terms": {"text": list(map(stem, words))}}
    return {"constant_score": {"filter": terms, "boost": _LITTLE}}
