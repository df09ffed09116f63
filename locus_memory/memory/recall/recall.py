"""Recall: the search for the memories of a run."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError, InvalidArgumentError
from locus_memory.events import emit
from locus_memory.memory.blend import Blend, TrustOf
from locus_memory.memory.layers.episodes import EPISODE_FIELDS
from locus_memory.memory.layers.vitals import VitalsBook
from locus_memory.memory.ledger.revision import read_memory
from locus_memory.memory.models import EXPIRES_AT, Memory, MemoryType, is_expired
from locus_memory.memory.recall.selection import Selection
from locus_memory.memory.scope import Scope, current_key
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.hybrid import Borrowed, HybridSearch, Mode
from locus_memory.retrieval.options import SearchOptions
from locus_memory.retrieval.ranking.fields import Fields, ReadOnce
from locus_memory.retrieval.ranking.ranking import Ranked
from locus_memory.store.base import BaseStore, has_semantic_search
from locus_memory.store.item import Namespace, check_limit, timestamp
from locus_memory.store.text import query_words, stem

__all__ = ["FLOOR", "Fact", "Recall"]

FLOOR: Final = 0.02
"""The relevance below which nothing is said to answer a query, in whatever it was looked for."""

_KEPT: Final = ReadOnce(read_memory)
"""Reads each item once that stays the same object, whichever manager asks for it."""

_NEAR: Final = SearchOptions(depth=20, word_weight=1.5)
"""The own words of a memory outweigh those of its key and of the memories that it superseded, which
only text search sees."""

_CANDIDATES: Final = 100
"""How many hits a relevance is computed from; a rank needs fewer."""

_DEEP: Final = replace(_NEAR, depth=_CANDIDATES)

_BROAD: Final = SearchOptions(depth=120)
"""A search of what was said, of which a run is shown many lines."""

_MOST: Final = 400
"""How many are looked at at least, where expired memories take the places of others."""

_SHARED_WORD: Final = 1e-9
"""The relevance of a memory that shares any word with the query is higher."""

_FIELDS: Final = Fields(
    text=("content",), title=("key",), speaker=(), role=(), date=(), session=(), position=()
)

_ALL: Final = Selection()


class Fact(NamedTuple):
    """A memory that was found; it is the store's own, so nobody may change it.

    Attributes:
        name: Its `current_key`.
        memory: The memory.
        relevance: From 0 to 1, the same in every search; see `Hit.relevance`.
    """

    name: str
    memory: Memory
    relevance: float = 0.0


class Recall:
    """A search for the memories of a scope that match a query.

    Args:
        store: The store of the memories.
        embedder: Adds vector search, if the store supports it.
        clock: Returns seconds since the epoch.

    Attributes:
        turns: The search for recorded turns.
        notes: The search for the notes of sessions.
    """

    def __init__(
        self,
        store: BaseStore,
        embedder: Embedder | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.store = store
        self.embedder = embedder
        self._clock = clock
        self._vitals = VitalsBook(store)
        self._near = HybridSearch(store, embedder, options=_NEAR, fields=_FIELDS)
        self._deep = HybridSearch(store, embedder, options=_DEEP, fields=_FIELDS)
        self.turns = HybridSearch(store, embedder, options=_BROAD)
        self.notes = HybridSearch(store, embedder, options=_BROAD, fields=EPISODE_FIELDS)

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
        """Return current memories that have not expired, the best first; copies.

        With a query, its hits come first, and the newest memories fill the rest; with a blend or a
        lowest score, nothing fills the rest. Without a query the newest come first, and also,
        without a blend or a lowest score, if the store cannot search. A failed search is reported
        as an event, and the other results are returned.

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
        if selection.min_score is not None and not query:
            raise InvalidArgumentError("min_score needs a query to compare memories with")
        if check_limit(limit) == 0:
            return []
        found: list[Fact] = []
        if query and (blend is not None or selection.min_score is not None):
            most = max(limit, _CANDIDATES)
            mode, hits = await self.matches(
                scope, most, query, selection, strict=strict, is_deep=True
            )
            found = await self._blended(scope, hits, mode, selection.min_score, blend)
        else:
            if query:
                _, found = await self.matches(scope, limit, query, selection, strict=strict)
            if len(found) < limit:
                known = {each.name for each in found}
                newest = await self.newest(scope, limit, selection)
                found += [each for each in newest if each.name not in known]
        return [_copy(each.memory) for each in found[:limit]]

    async def matching(
        self, scope: Scope, limit: int, query: str, selection: Selection = _ALL
    ) -> list[tuple[Memory, float]]:
        """Return the memories that match a query and have not expired, with their relevance.

        It is at least `FLOOR`. On a store without any search, the newest memories match that share
        a word with the query, and their relevance is the share of its words that they have.

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
        most = max(limit, _CANDIDATES)
        if await self.can_search():
            mode, found = await self.matches(scope, most, query, selection, is_deep=True)
            if mode == "text":
                # Each has a word of the query, perhaps in its key, or in what it superseded.
                found = [each._replace(relevance=max(FLOOR, each.relevance)) for each in found]
        else:
            words = _stems(query)
            newest = await self.newest(scope, most, selection)
            shared = [len(words & _stems(each.memory.content)) for each in newest]
            told = zip(newest, shared, strict=True)
            found = [each._replace(relevance=n / max(1, len(words))) for each, n in told]
        kept = [each for each in found if each.relevance >= FLOOR]
        return [(_copy(each.memory), each.relevance) for each in kept[:limit]]

    async def newest(self, scope: Scope, limit: int, selection: Selection = _ALL) -> list[Fact]:
        """Return the newest of the current memories that have not expired.

        Raises:
            BackendError: The store failed.
        """

        async def fetch(most: int) -> list[Fact]:
            condition = selection.condition
            items = await self.store.search(scope.current, None, most, filter=condition)
            read = ((item.key, read_memory(item)) for item in items)
            return [Fact(name, memory) for name, memory in read if memory is not None]

        return await self._unexpired(fetch, limit, selection)

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

        They are the store's own objects, so nobody may change them. A failed search is reported as
        an event; if all fail, there are no hits.

        Args:
            search: The search, over the store of the memories.
            namespace: The namespace to search.
            limit: At most this many.
            query: A message of any length.
            recursive: Whether to search the descendants of the namespace as well.
        """
        request = partial(search.borrow, namespace, limit=limit, recursive=recursive)
        found = await self._first_that_works(request, query)
        return () if found is None else found.ranked[:limit]

    async def matches(
        self,
        scope: Scope,
        limit: int,
        query: str,
        selection: Selection = _ALL,
        *,
        strict: bool = False,
        is_deep: bool = False,
    ) -> tuple[Mode | None, list[Fact]]:
        """Return the searches that ran, and the memories that count among the hits of a query.

        A failed search is reported as an event; if all fail, nothing is found.

        Args:
            scope: The scope of the memories.
            limit: At most this many.
            query: A message of any length.
            selection: The memories that count.
            strict: Whether to raise, rather than report, an error that only the owner can fix.
            is_deep: Whether many hits are compared, for a relevance that is the same everywhere.
        """
        search = self._deep if is_deep else self._near
        request = partial(search.borrow, scope.current, filter=selection.condition)
        mode: Mode | None = None

        async def fetch(most: int) -> list[Fact]:
            nonlocal mode
            wanted = partial(request, limit=most)
            found = await self._first_that_works(wanted, query, strict=strict)
            if found is None:
                return []
            mode, read = found.mode, _KEPT.read if found.kept else read_memory
            told = ((each, read(each.item)) for each in found.ranked)
            return [Fact(hit.item.key, it, hit.relevance) for hit, it in told if it is not None]

        facts = await self._unexpired(fetch, limit, selection)
        return mode, facts

    async def _unexpired(
        self,
        fetch: Callable[[int], Awaitable[list[Fact]]],
        limit: int,
        selection: Selection,
    ) -> list[Fact]:
        """Return the best of what is fetched that has not expired, and that counts.

        Until the next consolidation, expired memories take the places of others. So it is looked
        once more for those that are missing; if very many have expired, fewer are found.
        """
        kept = self._counting(found := await fetch(limit), selection)
        if len(kept) < limit <= len(found):
            kept = self._counting(await fetch(max(_MOST, 4 * limit)), selection)
        return kept[:limit]

    def _counting(self, facts: Iterable[Fact], selection: Selection) -> list[Fact]:
        now = timestamp(self._clock()).isoformat()
        kept: list[Fact] = []
        counts = Counter[MemoryType]()
        for fact in facts:
            memory = fact.memory
            if selection.has(memory) and not (
                EXPIRES_AT in memory.metadata and is_expired(memory, now)
            ):
                counts[memory.type] += 1
                if selection.of_type is None or counts[memory.type] <= selection.of_type:
                    kept.append(fact)
        return kept

    async def _blended(
        self,
        scope: Scope,
        found: list[Fact],
        mode: Mode | None,
        least: float | None,
        blend: Blend | None,
    ) -> list[Fact]:
        """Return the facts that are relevant enough, in the order of the blend."""
        if least is None and blend is not None:
            # Without vectors, few of a message's words are in any memory: one is enough.
            least = _SHARED_WORD if mode == "text" else blend.min_relevance
        found = [fact for fact in found if fact.relevance >= (least or 0.0)]
        if blend is None:
            return found
        now = timestamp(self._clock())
        trust_of: TrustOf | None = None
        if blend.name == "trust":
            known = await self._vitals.of(scope, [fact.memory for fact in found])
            trusts = {name: each.trust_at(now.isoformat()) for name, each in known.items()}
            trust_of = lambda memory: trusts[current_key(memory.type, memory.key)]  # noqa: E731
        relevant = [(fact.memory, fact.relevance) for fact in found]
        return [found[place] for place in blend.order(relevant, now, trust_of)]

    async def _first_that_works(
        self, request: Callable[..., Awaitable[Borrowed]], query: str, *, strict: bool = False
    ) -> Borrowed | None:
        """Return the result of a search by the first mode that works; `None`: none does."""
        readable = query.encode("utf-8", "replace").decode()
        for mode in await self._modes():
            try:
                return _relevant(await request(query=readable, mode=mode))
            except Exception as error:
                if strict and isinstance(error, ConfigurationError):
                    raise
                emit("memory.search_failed", error=error, search=mode or "hybrid")
        return None

    async def can_search(self) -> bool:
        """Return whether the store can search for a query at all."""
        return bool(await self._modes())

    async def _modes(self) -> list[Mode | None]:
        """Return the search modes, the best first."""
        words = self.store.capabilities.search
        if self.embedder is None:
            # Without an embedder, text search is all that was configured: nothing is degraded.
            return ["text"] if words else []
        near = await has_semantic_search(self.store)
        if near and words:
            return [None, "text"]
        return [None] if near or words else []


def _copy(memory: Memory) -> Memory:
    """Return a memory that its owner may change."""
    return replace(memory, metadata=deepcopy(memory.metadata))


def _stems(text: str) -> set[str]:
    return {stem(word) for word in query_words(text)}


def _relevant(found: Borrowed) -> Borrowed:
    """Return the hits of a message; of a long one, those that share more with it than by chance.

    The best of `n` sentences shares more words with any item than one does. What they share by
    chance falls off about exponentially, so the floor rises by the logarithm of `n`.
    """
    if found.sentences == 1:
        return found
    least = FLOOR * (1 + math.log(found.sentences))
    ranked = tuple(each for each in found.ranked if each.relevance >= least)
    return replace(found, ranked=ranked)
