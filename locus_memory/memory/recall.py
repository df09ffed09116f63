"""Recall: which memories matter now."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import chain, islice
from typing import Final

from locus_memory.events import emit
from locus_memory.memory.models import Memory
from locus_memory.memory.revision import read_memory
from locus_memory.memory.scope import Scope
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.fusion import reciprocal_rank_fusion
from locus_memory.store.base import BaseStore, has_semantic_search
from locus_memory.store.item import StoreItem, check_limit
from locus_memory.store.text import query_words

__all__ = ["Recall", "bounded_query"]

_ENDS: Final = 1000
"""How many characters of each end of a long query are looked at."""

_LONGEST_MESSAGE: Final = 600
_MOST_WORDS: Final = 6
_MOST_WORDS_OF_A_TEXT: Final = 32

_LEAST_DEPTH: Final = 10
"""How many of each ranking are fused at least: what is second in both may be the best."""

_RELEVANCE: Final = 1.0
_RECENCY: Final = 0.2
"""With 10 for k, the newest of all still comes after the 40 most relevant."""


class Recall:
    """Finds memories of a scope by relevance, blended with recency.

    Args:
        store: Where the memories are.
        embedder: Searches by meaning as well, if the store can.
    """

    def __init__(self, store: BaseStore, embedder: Embedder | None = None) -> None:
        self._store = store
        self._embedder = embedder

    async def find(self, scope: Scope, limit: int, query: str | None = None) -> list[Memory]:
        """Return current memories, the best first.

        Without a query, or where the store cannot search, that is the newest first. With one,
        text search and vector search are fused with recency, and what is missing to the limit
        is filled up with the newest. A search that fails is reported, and the others must do.

        Raises:
            InvalidArgumentError: A limit that is no integer of at least 0.
            BackendError: The store failed.
        """
        check_limit(limit)
        if limit == 0:
            return []
        depth = max(limit, _LEAST_DEPTH)
        rankings = await self._searches(scope, depth, query) if query else []
        found = {item.key: item for item in chain(*rankings)}
        if len(found) < limit:
            newest = await self._store.search(scope.current, None, limit)
            found |= {item.key: item for item in newest}
        else:
            newest = sorted(found.values(), key=_moment, reverse=True)
        names = [[item.key for item in ranking] for ranking in (*rankings, newest)]
        weights = [_RELEVANCE] * len(rankings) + [_RECENCY]
        fused = reciprocal_rank_fusion(names, weights=weights)
        memories = (read_memory(found[name]) for name, _ in fused)
        return list(islice((memory for memory in memories if memory is not None), limit))

    async def _searches(self, scope: Scope, limit: int, query: str) -> list[list[StoreItem]]:
        """Return one ranking for each way of searching that works."""
        short = bounded_query(query)
        searches: list[Awaitable[list[StoreItem]]] = []
        if self._store.capabilities.search and short:
            by_text = partial(self._store.search, scope.current, short, limit)
            searches.append(self._survived("text", by_text))
        if self._embedder is not None and await has_semantic_search(self._store):
            ends = _both_ends(query)
            by_meaning = partial(self._by_meaning, self._embedder, scope, limit, ends)
            searches.append(self._survived("vectors", by_meaning))
        # A single one needs no task of its own.
        return [await searches[0]] if len(searches) == 1 else await asyncio.gather(*searches)

    async def _by_meaning(
        self, embedder: Embedder, scope: Scope, limit: int, query: str
    ) -> list[StoreItem]:
        (vector,) = await embedder.embed([query], kind="query")
        hits = await self._store.search_by_embedding(scope.current, vector, limit)
        return [hit.item for hit in hits]

    @staticmethod
    async def _survived(
        way: str, search: Callable[[], Awaitable[list[StoreItem]]]
    ) -> list[StoreItem]:
        try:
            return await search()
        except Exception as error:  # noqa: BLE001 - reported; what else there is must do
            emit("memory.search_failed", error=error, search=way)
            return []


def bounded_query(query: str) -> str:
    """Return the words of a query that are searched for, few enough however long it is.

    A search costs what its words cost. Of a message the longest words are taken, which are the
    rarest; six find as much as all of them do. Of a long text more are taken, from both ends.
    """
    words = query_words(_both_ends(query.encode("utf-8", "replace").decode()))
    if len(query) <= _LONGEST_MESSAGE:
        longest = set(sorted(words, key=len, reverse=True)[:_MOST_WORDS])
        return " ".join(word for word in words if word in longest)
    half = _MOST_WORDS_OF_A_TEXT // 2
    return " ".join(dict.fromkeys([*words[:half], *words[-half:]]))


def _both_ends(text: str) -> str:
    # A question stands before or after what was pasted.
    return text if len(text) <= 2 * _ENDS else f"{text[:_ENDS]} {text[-_ENDS:]}"


def _moment(item: StoreItem) -> float:
    return item.updated_at.timestamp()
