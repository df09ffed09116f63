"""Hybrid search: by words and by meaning at once, on any store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from typing_extensions import override

from locus_memory.errors import InvalidArgumentError, InvalidEmbeddingError, StoreCapabilityError
from locus_memory.events import emit
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.embedding import embed
from locus_memory.retrieval.explain import Explanation
from locus_memory.retrieval.fields import Fields
from locus_memory.retrieval.options import SearchOptions
from locus_memory.retrieval.pack import Packed, pack
from locus_memory.retrieval.query import Query, read_query
from locus_memory.retrieval.ranking import Name, Ranked, blend, rank
from locus_memory.store.base import BaseStore, has_semantic_search
from locus_memory.store.item import Namespace, StoreItem, check_limit, check_namespace

if TYPE_CHECKING:
    from locus_memory.retrieval.rerankers.base import Reranker

__all__ = ["Hit", "HybridSearch", "Mode", "SearchResult"]

Mode = Literal["hybrid", "text", "vector"]

_OPTIONS: Final = SearchOptions()
_FIELDS: Final = Fields()


@dataclass(frozen=True, slots=True)
class Hit:
    """An item that was found.

    Attributes:
        item: The item; its own `score` is this hit's.
        score: Higher is better; comparable within one result only.
        text: What the item says, its speaker in front if it has one.
        parts: Why it ranks where it does, if `explain` was asked for.
    """

    item: StoreItem
    score: float
    text: str
    parts: Explanation | None = None


@dataclass(frozen=True, slots=True)
class SearchResult(Sequence[Hit]):
    """A page of hits, the best first.

    Attributes:
        hits: The page.
        mode: How was searched: `hybrid`, or `text` or `vector` alone.
        reranked: Whether a reranker had its say.
    """

    hits: tuple[Hit, ...]
    mode: Mode
    reranked: bool = False

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Hit]: ...
    @override
    def __getitem__(self, index: int | slice) -> Hit | Sequence[Hit]:
        return self.hits[index]

    @override
    def __len__(self) -> int:
        return len(self.hits)

    @override
    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def pack(self, budget: int, counter: object | None = None) -> Packed[Hit]:
        """Return the best hits whose texts together are at most `budget` tokens.

        Raises:
            InvalidArgumentError: As for `locus_memory.retrieval.pack.pack`.
        """
        return pack(self.hits, budget, text_of=_text, counter=counter)


def _text(hit: Hit) -> str:
    return hit.text


class HybridSearch:
    """Searches a store by words and by meaning, and makes one ranking of both.

    Both searches run at once, one round trip each, and the union of what they find is ranked:
    an item that only one of them finds is never lost. Without an embedder, or where the store
    has no vectors, it goes by words alone; where the store has no text search, by vectors
    alone. `SearchResult.mode` tells, and so does the event `retrieval.degraded`.

    Args:
        store: Any store; it stays the caller's to close.
        embedder: What made the vectors that are in the store.
        reranker: Puts the best in order anew; its scores are blended with ours.
        options: What counts how much.
        fields: Where items tell their speaker, date and place in a conversation.
        today: Returns the day that "last week" in a query counts from; `None`: relative dates
            mean nothing.
    """

    def __init__(
        self,
        store: BaseStore,
        embedder: Embedder | None = None,
        *,
        reranker: Reranker | None = None,
        options: SearchOptions = _OPTIONS,
        fields: Fields = _FIELDS,
        today: Callable[[], date] | None = None,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._reranker = reranker
        self._options = options
        self._fields = fields
        self._today = today
        self._told = False

    async def search(
        self,
        namespace: Namespace,
        query: str,
        limit: int = 10,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the field's word
        offset: int = 0,
        recursive: bool = False,
        explain: bool = False,
    ) -> SearchResult:
        """Return a page of the items that answer a query best.

        Pages fit together: as long as nothing is written, they repeat and lose nothing. A
        failing embedder or reranker is reported as an event, and what else there is must do.

        Args:
            namespace: Where to look.
            query: A question, or any words.
            limit: At most this many.
            filter: See `locus_memory.store.filters`; what does not satisfy it is never found.
            offset: Skip this many of the best.
            recursive: Look in the descendants of `namespace` as well.
            explain: Whether each hit says why it ranks where it does.

        Raises:
            InvalidArgumentError: A bad namespace, query, limit or filter.
            InvalidEmbeddingError: The vectors in the store have another dimension.
            StoreCapabilityError: The store has neither text search nor, with an embedder,
                vectors.
            BackendError: The store failed.
        """
        check_namespace(namespace)
        if not isinstance(query, str):
            raise InvalidArgumentError(f"a query is a string, not {type(query).__name__}")
        end = check_limit(offset, "offset") + check_limit(limit)
        read = read_query(query, today=None if self._today is None else self._today())
        wanted = -(-end // self._options.depth) * self._options.depth
        request = _Request(self._store, namespace, query, wanted, filter, recursive)
        mode, by_text, by_vector = await self._candidates(request)
        ranked = self._rank(read, by_text, by_vector, end, explain=explain)
        ranked, reranked = await self._rerank(query, ranked, offset)
        hits = tuple(map(_hit, ranked[offset:end]))
        return SearchResult(hits, mode, reranked)

    async def _candidates(self, request: _Request) -> tuple[Mode, list[StoreItem], list[StoreItem]]:
        """Return how was searched, and what each search found.

        Raises:
            StoreCapabilityError: There is no way to search.
        """
        near = self._embedder is not None and await has_semantic_search(self._store)
        words = self._store.capabilities.search
        if near and words:
            # Both run to their end, so that none is left running when one fails.
            by_text, by_vector = await asyncio.gather(
                request.by_words(), self._by_meaning(request), return_exceptions=True
            )
            if isinstance(by_text, BaseException):
                raise by_text
            if isinstance(by_vector, BaseException):
                raise by_vector
            return ("text", by_text, []) if by_vector is None else ("hybrid", by_text, by_vector)
        if words:
            self._tell_once("text")
            return "text", await request.by_words(), []
        if near:
            self._tell_once("vector")
            return "vector", [], await self._by_meaning(request, alone=True) or []
        raise StoreCapabilityError(
            "search",
            type(self._store).__name__,
            "HybridSearch needs it, or an embedder and vectors",
        )

    async def _by_meaning(
        self, request: _Request, *, alone: bool = False
    ) -> list[StoreItem] | None:
        """Return the nearest items; `None`: the embedder failed, and words must do."""
        if self._embedder is None or not request.query.strip():
            return []
        try:
            (vector,) = await embed(self._embedder, [request.query], "query")
        except InvalidEmbeddingError:
            raise
        except Exception as error:
            if alone:
                raise
            emit("retrieval.degraded", error=error, mode="text", reason="the embedder failed")
            return None
        return await request.by_vector(vector)

    def _tell_once(self, mode: Mode) -> None:
        if not self._told:
            self._told = True
            reason = "no embedder" if self._embedder is None else "the store has no other search"
            emit("retrieval.degraded", mode=mode, reason=reason)

    def _rank(
        self,
        query: Query,
        by_text: list[StoreItem],
        by_vector: list[StoreItem],
        end: int,
        *,
        explain: bool,
    ) -> list[Ranked]:
        """Return a ranking of at least `end` items, if so many were found.

        One window of each search is ranked after another. So how far a caller pages never
        changes what came before.
        """
        depth = self._options.depth
        ranking: list[Ranked] = []
        seen: set[Name] = set()
        for start in range(0, max(len(by_text), len(by_vector)), depth):
            if len(ranking) >= end:
                break
            places = range(start, start + depth)
            text, vector = _unseen(by_text, places, seen), _unseen(by_vector, places, seen)
            window = rank(
                query,
                text,
                vector,
                options=self._options,
                fields=self._fields,
                explain=explain,
            )
            ranking += _capped(window, ranking[-1].score) if ranking else window
            seen.update((item.namespace, item.key) for item in (*text.values(), *vector.values()))
        return ranking

    async def _rerank(
        self, query: str, ranked: list[Ranked], offset: int
    ) -> tuple[list[Ranked], bool]:
        depth = self._options.rerank_depth
        # A page beyond what is reranked stays as it is.
        if self._reranker is None or not ranked or offset >= depth:
            return ranked, False
        best = ranked[:depth]
        try:
            scores = list(
                await self._reranker.rerank(query, [each.passage.spoken for each in best])
            )
            if len(scores) != len(best):
                raise InvalidArgumentError(  # noqa: TRY301 - reported like any other failure
                    f"{self._reranker.name} returned {len(scores)} scores for {len(best)} texts"
                )
        except Exception as error:  # noqa: BLE001 - reported; the ranking is good without
            emit("retrieval.rerank_failed", error=error, reranker=self._reranker.name)
            return ranked, False
        return blend(ranked, scores, self._options.rerank_weight), True


@dataclass(frozen=True, slots=True)
class _Request:
    """What both searches are asked for."""

    store: BaseStore
    namespace: Namespace
    query: str
    wanted: int
    condition: Mapping[str, Any] | None
    recursive: bool

    async def by_words(self) -> list[StoreItem]:
        return await self.store.search(
            self.namespace,
            self.query,
            self.wanted,
            filter=self.condition,
            recursive=self.recursive,
        )

    async def by_vector(self, vector: Sequence[float]) -> list[StoreItem]:
        hits = await self.store.search_by_embedding(
            self.namespace, vector, self.wanted, None, self.condition, recursive=self.recursive
        )
        return [hit.item for hit in hits]


def _unseen(
    found: Sequence[StoreItem], places: range, seen: AbstractSet[Name]
) -> dict[int, StoreItem]:
    """Return the items at the places that are not in `seen`, by their rank."""
    page = enumerate(found[places.start : places.stop], places.start + 1)
    return {place: item for place, item in page if (item.namespace, item.key) not in seen}


def _capped(window: Sequence[Ranked], ceiling: float) -> list[Ranked]:
    """Return a later window, no better than what comes before it."""
    return [each._replace(score=min(each.score, ceiling)) for each in window]


def _hit(ranked: Ranked) -> Hit:
    return Hit(
        item=replace(ranked.item, score=ranked.score),
        score=ranked.score,
        text=ranked.passage.spoken,
        parts=ranked.parts,
    )
