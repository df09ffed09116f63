"""Recall: which memories matter now."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from locus_memory.errors import ConfigurationError
from locus_memory.events import emit
from locus_memory.memory.ledger.revision import read_memory
from locus_memory.memory.models import Memory
from locus_memory.memory.scope import Scope
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.hybrid import HybridSearch, Mode
from locus_memory.retrieval.options import SearchOptions
from locus_memory.retrieval.ranking.fields import Fields
from locus_memory.retrieval.ranking.supersession import prefer_successors
from locus_memory.store.base import BaseStore, has_semantic_search
from locus_memory.store.item import StoreItem, check_limit

__all__ = ["Recall"]

_LONGEST_MESSAGE: Final = 600
_END: Final = 1_000
_WORDS_OF_AN_END: Final = 32
"""How many characters, and then words, of each end of a text are looked at."""

_MESSAGES: Final = SearchOptions(depth=20, query_words=6, word_weight=1.5)
"""A search costs what its words cost; six of a message find as much as all of them do. A memory's
own words outweigh those of its key and of what it superseded, which only text search sees."""

_TEXTS: Final = replace(_MESSAGES, query_words=2 * _WORDS_OF_AN_END)

_FIELDS: Final = Fields(text=("content",), speaker=(), role=(), date=(), session=(), position=())


class Recall:
    """Finds the memories of a scope that a query is about.

    Args:
        store: Where the memories are.
        embedder: Searches by meaning as well, if the store can.
    """

    def __init__(self, store: BaseStore, embedder: Embedder | None = None) -> None:
        self._store = store
        self._embedder = embedder
        self._messages = HybridSearch(store, embedder, options=_MESSAGES, fields=_FIELDS)
        self._texts = HybridSearch(store, embedder, options=_TEXTS, fields=_FIELDS)

    async def find(
        self, scope: Scope, limit: int, query: str | None = None, *, strict: bool = False
    ) -> list[Memory]:
        """Return current memories, the best first.

        With a query that is what `HybridSearch` finds, filled up with the newest. Without one,
        or where the store cannot search, it is the newest first. A search that fails is
        reported, and what else there is must do.

        Args:
            scope: Whose memories.
            limit: At most this many.
            query: What they are to be about.
            strict: Whether to raise, rather than report, what only the owner can put right.

        Raises:
            InvalidArgumentError: A limit that is no integer of at least 0.
            ConfigurationError: If `strict`: the vectors there are of another model.
            BackendError: The store failed.
        """
        check_limit(limit)
        if limit == 0:
            return []
        found = await self._about(scope, limit, query, strict=strict) if query else []
        if len(found) < limit:
            known = {item.key for item in found}
            newest = await self._store.search(scope.current, None, limit)
            found += [item for item in newest if item.key not in known]
        memories = [memory for memory in map(read_memory, _successors_first(found)) if memory]
        return memories[:limit]

    async def _about(
        self, scope: Scope, limit: int, query: str, *, strict: bool
    ) -> list[StoreItem]:
        """Return what a query finds, by the first way of searching that works."""
        search = self._messages if len(query) <= _LONGEST_MESSAGE else self._texts
        readable = _ends(query).encode("utf-8", "replace").decode()
        for mode in await self._modes():
            try:
                hits = await search.search(scope.current, readable, limit, mode=mode)
                return [hit.item for hit in hits]
            except ConfigurationError as error:
                if strict:
                    raise
                emit("memory.search_failed", error=error, search=mode or "hybrid")
            except Exception as error:  # noqa: BLE001 - reported; what else there is must do
                emit("memory.search_failed", error=error, search=mode or "hybrid")
        return []

    async def _modes(self) -> list[Mode | None]:
        """Return the ways to search, the best first."""
        words = self._store.capabilities.search
        if self._embedder is None:
            # Words are all that was asked for: nothing is degraded.
            return ["text"] if words else []
        near = await has_semantic_search(self._store)
        if near and words:
            return [None, "text"]
        return [None] if near or words else []


def _successors_first(items: list[StoreItem]) -> list[StoreItem]:
    """Return the items, none of them above one that supersedes it."""
    if not any(map(_links_elsewhere, items)):
        return items
    return [items[each.place] for each in prefer_successors(items, fields=_FIELDS)]


def _links_elsewhere(item: StoreItem) -> bool:
    """Whether a memory has a link to anything but the history of its own key.

    The manager writes no others, but memories may come from elsewhere.
    """
    told = item.value.get("metadata") if isinstance(item.value, dict) else None
    if not isinstance(told, dict):
        return False
    if "superseded_by" in told:
        return True
    link = told.get("supersedes")
    own = isinstance(link, dict) and f"{link.get('type')}:{link.get('key')}" == item.key
    return link is not None and not own


def _ends(query: str) -> str:
    """Return a message as it is, and of a text its two ends.

    A question stands before or after what was pasted.
    """
    if len(query) <= _LONGEST_MESSAGE:
        return query
    first = query[:_END].split()[:_WORDS_OF_AN_END]
    last = query[-_END:].split()[-_WORDS_OF_AN_END:]
    return f"{' '.join(first)}\n{' '.join(last)}"
