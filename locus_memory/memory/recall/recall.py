"""Recall: the search for the memories of a run."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar

from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError, InvalidArgumentError
from locus_memory.events import emit
from locus_memory.memory.blend import Blend, Relevant, TrustOf, default_trust
from locus_memory.memory.layers.vitals import VitalsBook
from locus_memory.memory.ledger.revision import read_memory
from locus_memory.memory.models import EXPIRES_AT, Memory, is_expired
from locus_memory.memory.recall.found import Fact
from locus_memory.memory.recall.selection import Selection
from locus_memory.memory.scope import Scope, current_key
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.hybrid import Hit, HybridSearch, Mode, SearchResult
from locus_memory.retrieval.options import SearchOptions
from locus_memory.retrieval.ranking.fields import Fields, ReadOnce
from locus_memory.retrieval.ranking.ranking import Ranked
from locus_memory.retrieval.ranking.supersession import prefer_successors
from locus_memory.store.base import BaseStore, has_semantic_search
from locus_memory.store.item import Namespace, StoreItem, check_limit, timestamp
from locus_memory.store.text import query_words, stem

__all__ = ["Recall"]

_Result = TypeVar("_Result")

_KEPT: Final = ReadOnce(read_memory)
"""Reads each item once that stays the same object, whichever manager asks for it."""

_LONGEST_MESSAGE: Final = 600
_END: Final = 1_000
_WORDS_OF_AN_END: Final = 32
"""How many characters, and then words, are used of each end of a long text."""

_MESSAGES: Final = SearchOptions(depth=20, query_words=64, word_weight=1.5)
"""A search costs more with every word, and six words of a message find as much as all of them. The
own words of a memory outweigh those of its key and of the memories that it superseded, which only
text search sees."""

_TEXTS: Final = replace(_MESSAGES, query_words=2 * _WORDS_OF_AN_END)

_CANDIDATES: Final = 100
"""How many hits a relevance is computed from; a rank needs fewer."""

_SHARED_WORD: Final = 1e-9
"""The relevance of a memory that shares any word with the query is higher."""

_DEEP: Final = {each: replace(each, depth=_CANDIDATES) for each in (_MESSAGES, _TEXTS)}

_FIELDS: Final = Fields(
    text=("content",), title=("key",), speaker=(), role=(), date=(), session=(), position=()
)


_ALL: Final = Selection()


@dataclass(frozen=True, slots=True)
class _Search:
    """One search.

    Attributes:
        scope: The scope of the memories.
        query: Their subject; empty: there is none.
        limit: At most this many.
        condition: A filter, or `None`.
        strict: Whether to raise an error that only the owner can fix.
        deep: Whether the hits are compared by their relevance.
    """

    scope: Scope
    query: str
    limit: int
    condition: Mapping[str, Any] | None
    strict: bool
    deep: bool = False

    @property
    def options(self) -> SearchOptions:
        """The options of the search."""
        near = _MESSAGES if len(self.query) <= _LONGEST_MESSAGE else _TEXTS
        return _DEEP[near] if self.deep else near


@dataclass(frozen=True, slots=True)
class _Order:
    """The memories that count, and their order.

    Attributes:
        selection: The memories that count.
        blend: The order of the hits of a query; `None`: that of the search.
    """

    selection: Selection
    blend: Blend | None


class Recall:
    """A search for the memories of a scope that match a query.

    Args:
        store: The store of the memories.
        embedder: Adds vector search, if the store supports it.
        clock: Returns seconds since the epoch.
    """

    def __init__(
        self,
        store: BaseStore,
        embedder: Embedder | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._clock = clock
        self._vitals = VitalsBook(store)
        self._searches = {
            options: HybridSearch(store, embedder, options=options, fields=_FIELDS)
            for options in (*_DEEP, *_DEEP.values())
        }

    @property
    def embedder(self) -> Embedder | None:
        """The embedder; `None`: there is no vector search."""
        return self._embedder

    async def find(
        self,
        scope: Scope,
        limit: int,
        query: str | None = None,
        *,
        strict: bool = False,
        selection: Selection = _ALL,
        blend: Blend | None = None,
    ) -> list[Memory]:
        """Return current memories, the best first.

        With a query, the hits of `HybridSearch` come first, and the newest memories fill the
        rest; with a blend or a lowest score, nothing fills the rest. Without a query the newest
        come first, and also, without a blend or a lowest score, if the store cannot search. A
        failed search is reported as an event, and the other results are returned.

        Args:
            scope: The scope of the memories.
            limit: At most this many.
            query: The subject of the memories.
            strict: Whether to raise, rather than report, an error that only the owner can fix.
            selection: The memories that count.
            blend: The order of the hits of a query; `None`: that of the search.

        Raises:
            InvalidArgumentError: The limit is not an integer of at least 0, or there is a lowest
                score and no query.
            ConfigurationError: If `strict`: the stored vectors are of another model.
            BackendError: The store failed.
        """
        check_limit(limit)
        if selection.min_score is not None and not query:
            raise InvalidArgumentError("min_score needs a query to compare memories with")
        if limit == 0:
            return []
        order = _Order(selection, blend)
        wanted = selection.condition
        search = _Search(scope, query or "", limit, wanted, strict)
        found = await self._found(search, order)
        kept = self._unexpired(found)
        if len(kept) < min(limit, len(found)):
            # Expired memories took the places of others, until the next consolidation.
            more = replace(search, limit=max(_CANDIDATES, limit + len(found)))
            kept = self._unexpired(await self._found(more, order))
        return kept[:limit]

    async def matching(
        self, scope: Scope, limit: int, query: str, selection: Selection = _ALL
    ) -> list[tuple[Memory, float]]:
        """Return the memories that match a query and have not expired, with their relevance.

        On a store without any search, the newest memories that share a word with the query match,
        and their relevance is 0.

        Args:
            scope: The scope of the memories.
            limit: At most this many.
            query: The subject of the memories.
            selection: The memories that count.

        Raises:
            InvalidArgumentError: The limit is not an integer of at least 0, or the query no text.
            BackendError: The store failed.
        """
        given: object = query
        if not isinstance(given, str):
            raise InvalidArgumentError(f"a query is a text, not {quote(given)}")
        if check_limit(limit) == 0 or not query.strip():
            return []
        search = _Search(
            scope, query, max(limit, _CANDIDATES), selection.condition, strict=False, deep=True
        )
        if await self._modes():
            hits = _hits(await self._about(search))
            found = {hit.item.key: (hit.item, hit.relevance) for hit in hits}
        else:
            words = {stem(word) for word in query_words(query)}
            newest = await self._newest(search, ())
            found = {each.key: (each, 0.0) for each in newest if not words.isdisjoint(_words(each))}
        items = _successors_first([item for item, _ in found.values()])
        facts = [fact for fact in self._facts(items) if selection.has(fact.memory)]
        return [(fact.memory, found[fact.name][1]) for fact in facts][:limit]

    def _unexpired(self, memories: list[Memory]) -> list[Memory]:
        if not any(EXPIRES_AT in each.metadata for each in memories):
            return memories
        now = self._now()
        return [each for each in memories if not is_expired(each, now)]

    def _now(self) -> str:
        return timestamp(self._clock()).isoformat()

    async def _found(self, search: _Search, order: _Order) -> list[Memory]:
        """Return the memories that match, and then the newest, expired ones included."""
        limit = search.limit
        if search.query and (order.blend is not None or order.selection.min_score is not None):
            deep = replace(search, limit=max(limit, _CANDIDATES), deep=True)
            found = await self._relevant(search.scope, await self._about(deep), order)
        else:
            found = [hit.item for hit in _hits(await self._about(search))]
            found += await self._newest(search, found)
        return order.selection.read(_successors_first(found))[:limit]

    async def _relevant(
        self, scope: Scope, result: SearchResult | None, order: _Order
    ) -> list[StoreItem]:
        """Return the hits that are relevant enough, in the order of the blend."""
        blend, least = order.blend, order.selection.min_score
        if least is None and blend is not None and result is not None:
            least = _least(result.mode, blend)
        hits = [hit for hit in _hits(result) if hit.relevance >= (least or 0.0)]
        if blend is None:
            return [hit.item for hit in hits]
        told = [(hit, read_memory(hit.item)) for hit in hits]
        known = [(hit.item, Relevant(memory, hit.relevance)) for hit, memory in told if memory]
        trust_of: TrustOf = default_trust
        if blend.name == "trust":
            trust_of = await self._trusts([each.memory for _, each in known], scope)
        now = timestamp(self._clock())
        places = blend.order([each for _, each in known], now, trust_of)
        return [known[place][0] for place in places]

    async def _trusts(self, memories: Sequence[Memory], scope: Scope) -> TrustOf:
        """Return a function from a memory to its trust."""
        vitals, now = await self._vitals.of(scope, memories), self._now()
        return lambda memory: vitals[current_key(memory.type, memory.key)].trust_at(now)

    async def _newest(self, search: _Search, found: Sequence[StoreItem]) -> list[StoreItem]:
        """Return the newest memories that were not found, if fewer than wanted were."""
        if len(found) >= search.limit:
            return []
        known = {item.key for item in found}
        newest = await self._store.search(
            search.scope.current, None, search.limit, filter=search.condition
        )
        return [item for item in newest if item.key not in known]

    async def about(self, scope: Scope, limit: int, query: str) -> list[Fact]:
        """Return what a query finds among the current memories that have not expired.

        A failed search is reported as an event; if all fail, nothing is found.

        Args:
            scope: The scope of the memories.
            limit: At most this many.
            query: A message of any length.
        """
        search = _Search(scope, query, limit, None, strict=False)
        facts, found = await self._borrowed(search)
        if len(facts) < found:
            more = replace(search, limit=max(_CANDIDATES, limit + found))
            facts, _ = await self._borrowed(more)
        return facts[:limit]

    async def newest(self, scope: Scope, limit: int) -> list[Fact]:
        """Return the newest of the current memories that have not expired.

        Raises:
            BackendError: The store failed.
        """
        return self._facts(await self._store.search(scope.current, None, limit))

    async def _borrowed(self, wanted: _Search) -> tuple[list[Fact], int]:
        """Return the memories that a search finds, and how many hits it had."""
        search, scope = self._searches[wanted.options], wanted.scope
        request = partial(search.borrow, scope.current, limit=wanted.limit)
        found = await self._first_that_works(request, wanted.query, strict=wanted.strict)
        if found is None:
            return [], 0
        relevances = {each.item.key: each.relevance for each in found.ranked}
        items = (each.item for each in found.ranked)
        facts = self._facts(items, _KEPT.read if found.kept else read_memory)
        told = [fact._replace(relevance=relevances[fact.name]) for fact in facts]
        return told, len(found.ranked)

    def _facts(
        self,
        items: Iterable[StoreItem],
        read: Callable[[StoreItem], Memory | None] = read_memory,
    ) -> list[Fact]:
        """Return the memories in the items that have not expired."""
        told = ((item.key, read(item)) for item in items)
        facts = [Fact(name, memory) for name, memory in told if memory is not None]
        if any(EXPIRES_AT in fact.memory.metadata for fact in facts):
            now = self._now()
            facts = [fact for fact in facts if not is_expired(fact.memory, now)]
        return facts

    async def hits(
        self,
        search: HybridSearch,
        namespace: Namespace,
        limit: int,
        query: str,
        *,
        recursive: bool = False,
    ) -> tuple[Ranked, ...]:
        """Return the hits of a query, by the first search mode that works.

        They are the store's own objects, so nobody may change them.

        A failed search is reported as an event; if all fail, there are no hits.

        Args:
            search: The search, over the store of the memories.
            namespace: The namespace to search.
            limit: At most this many.
            query: A message of any length.
            recursive: Whether to search the descendants of the namespace as well.
        """
        request = partial(search.borrow, namespace, limit=limit, recursive=recursive)
        found = await self._first_that_works(request, query, strict=False)
        return () if found is None else found.ranked

    async def _about(self, wanted: _Search) -> SearchResult | None:
        """Return the hits of a query; `None` if there is no query, or no search works."""
        if not wanted.query:
            return None
        search = self._searches[wanted.options]
        place, limit, condition = wanted.scope.current, wanted.limit, wanted.condition
        request = partial(search.search, place, limit=limit, filter=condition)
        return await self._first_that_works(request, wanted.query, strict=wanted.strict)

    async def _first_that_works(
        self, request: Callable[..., Awaitable[_Result]], query: str, *, strict: bool
    ) -> _Result | None:
        """Return the result of a search by the first mode that works."""
        readable = _ends(query).encode("utf-8", "replace").decode()
        for mode in await self._modes():
            try:
                return await request(query=readable, mode=mode)
            except ConfigurationError as error:
                if strict:
                    raise
                emit("memory.search_failed", error=error, search=mode or "hybrid")
            except Exception as error:  # noqa: BLE001 - reported; what else there is must do
                emit("memory.search_failed", error=error, search=mode or "hybrid")
        return None

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


def _hits(result: SearchResult | None) -> Sequence[Hit]:
    """Return the hits of a search; none of one that did not work."""
    if result is None:
        return ()
    return result.hits


def _least(mode: Mode, blend: Blend) -> float:
    """Return the lowest relevance of a memory that a blend shows.

    Without vectors, few of a message's words are in any memory: one is enough.
    """
    return _SHARED_WORD if mode == "text" else blend.min_relevance


def _words(item: StoreItem) -> set[str]:
    memory = read_memory(item)
    return set() if memory is None else {stem(word) for word in query_words(memory.content)}


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
