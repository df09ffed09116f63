"""Recall: the search for the memories of a run."""

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
from locus_memory.store.item import Namespace, StoreItem, check_limit

__all__ = ["Recall"]

_LONGEST_MESSAGE: Final = 600
_END: Final = 1_000
_WORDS_OF_AN_END: Final = 32
"""How many characters, and then words, are used of each end of a long text."""

_MESSAGES: Final = SearchOptions(depth=20, query_words=6, word_weight=1.5)
"""A search costs more with every word, and six words of a message find as much as all of them. The
own words of a memory outweigh those of its key and of the memories that it superseded, which only
text search sees."""

_TEXTS: Final = replace(_MESSAGES, query_words=2 * _WORDS_OF_AN_END)

_FIELDS: Final = Fields(text=("content",), speaker=(), role=(), date=(), session=(), position=())


class Recall:
    """A search for the memories of a scope that match a query.

    Args:
        store: The store of the memories.
        embedder: Adds vector search, if the store supports it.
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

        With a query, the hits of `HybridSearch` come first, and the newest memories fill the
        rest. Without a query, or if the store cannot search, the newest come first. A failed
        search is reported as an event, and the other results are returned.

        Args:
            scope: The scope of the memories.
            limit: At most this many.
            query: The subject of the memories.
            strict: Whether to raise, rather than report, an error that only the owner can fix.

        Raises:
            InvalidArgumentError: The limit is not an integer of at least 0.
            ConfigurationError: If `strict`: the stored vectors are of another model.
            BackendError: The store failed.
        """
        check_limit(limit)
        if limit == 0:
            return []
        found = await self.about(scope, limit, query, strict=strict) if query else []
        if len(found) < limit:
            known = {item.key for item in found}
            newest = await self._store.search(scope.current, None, limit)
            found += [item for item in newest if item.key not in known]
        memories = [memory for memory in map(read_memory, _successors_first(found)) if memory]
        return memories[:limit]

    async def about(
        self, scope: Scope, limit: int, query: str, *, strict: bool = False
    ) -> list[StoreItem]:
        """Return the hits of a query among the current memories."""
        search = self._messages if len(query) <= _LONGEST_MESSAGE else self._texts
        return await self.hits(search, scope.current, limit, query, strict=strict)

    async def hits(
        self,
        search: HybridSearch,
        namespace: Namespace,
        limit: int,
        query: str,
        *,
        recursive: bool = False,
        strict: bool = False,
    ) -> list[StoreItem]:
        """Return the hits of a query, by the first search mode that works, each with its score.

        A failed search is reported as an event; if all fail, there are no hits.

        Args:
            search: The search, over the store of the memories.
            namespace: The namespace to search.
            limit: At most this many.
            query: A message of any length.
            recursive: Whether to search the descendants of the namespace as well.
            strict: As for `find`.
        """
        readable = _ends(query).encode("utf-8", "replace").decode()
        for mode in await self._modes():
            try:
                hits = await search.search(
                    namespace, readable, limit, mode=mode, recursive=recursive
                )
                return [hit.item for hit in hits]
            except ConfigurationError as error:
                if strict:
                    raise
                emit("memory.search_failed", error=error, search=mode or "hybrid")
            except Exception as error:  # noqa: BLE001 - reported; what else there is must do
                emit("memory.search_failed", error=error, search=mode or "hybrid")
        return []

    async def can_search(self) -> bool:
        """Return whether the store can search for a query at all."""
        return bool(await self._modes())

    async def _modes(self) -> list[Mode | None]:
        """Return the search modes, the best first."""
        words = self._store.capabilities.search
        if self._embedder is None:
            # Without an embedder, text search is all that was configured: nothing is degraded.
            return ["text"] if words else []
        near = await has_semantic_search(self._store)
        if near and words:
            return [None, "text"]
        return [None] if near or words else []


def _successors_first(items: list[StoreItem]) -> list[StoreItem]:
    """Return the items, with no superseded item above the newer one."""
    if not any(map(_links_elsewhere, items)):
        return items
    return [items[each.place] for each in prefer_successors(items, fields=_FIELDS)]


def _links_elsewhere(item: StoreItem) -> bool:
    """Return whether a memory links to anything but the history of its own key.

    The manager writes no other links, but another program may have written the memory.
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
    """Return a short message as it is, and the two ends of a long text.

    A question is usually before or after a pasted text.
    """
    if len(query) <= _LONGEST_MESSAGE:
        return query
    first = query[:_END].split()[:_WORDS_OF_AN_END]
    last = query[-_END:].split()[-_WORDS_OF_AN_END:]
    return f"{' '.join(first)}\n{' '.join(last)}"
