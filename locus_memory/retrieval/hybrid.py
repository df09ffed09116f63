"""Hybrid search: text search and vector search together, on any store."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import starmap, zip_longest
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, overload

from typing_extensions import override

from locus_memory._internal.notebook import table
from locus_memory._internal.offload import in_thread
from locus_memory.errors import InvalidArgumentError
from locus_memory.events import emit
from locus_memory.retrieval.candidates import Finder, Found, Mode, Request, check_mode
from locus_memory.retrieval.chance import by_chance
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.embedders.marks import MARK, unmarked
from locus_memory.retrieval.embedders.scale import Scale, known_scale, scale_of
from locus_memory.retrieval.options import SearchOptions
from locus_memory.retrieval.pack import Packed, pack
from locus_memory.retrieval.passages import Passages, joined, passages_of
from locus_memory.retrieval.ranking.absolute import Nearness, check_min_score, contrast, level
from locus_memory.retrieval.ranking.explain import Explanation
from locus_memory.retrieval.ranking.fields import Fields, ReadOnce
from locus_memory.retrieval.ranking.query import Query, read_query
from locus_memory.retrieval.ranking.ranking import (
    Name,
    Ranked,
    blend,
    prefer_current,
    rank,
)
from locus_memory.store.base import BaseStore
from locus_memory.store.candidates import Candidate
from locus_memory.store.item import Namespace, StoreItem, check_limit, check_namespace
from locus_memory.store.json_values import round_trip
from locus_memory.store.opening import StoreUser, store_of

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend
    from locus_memory.retrieval.rerankers.base import Reranker

__all__ = ["Borrowed", "Hit", "HybridSearch", "Mode", "SearchResult"]

_OPTIONS: Final = SearchOptions()
_FIELDS: Final = Fields()

_ENOUGH: Final = 0.1
"""The share of relevant items in a window below which the next one is not looked at."""


@dataclass(frozen=True, slots=True)
class Hit:
    """An item that was found.

    Attributes:
        item: The item; its own `score` is this hit's.
        score: Higher is better; comparable within one result only.
        text: The text of the item, after its speaker if it has one.
        parts: The explanation of its rank, if `explain` was set.
        relevance: From 0 to 1; comparable between queries, collections and backends. See
            `locus_memory.retrieval.ranking.absolute`.
        by_chance: Whether nothing speaks for the item but one or two words that it may have by
            chance, see `locus_memory.retrieval.chance`. `False` without vectors, and after
            a reranker, which has read the item.
    """

    item: StoreItem
    score: float
    text: str
    parts: Explanation | None = None
    relevance: float = 0.0
    by_chance: bool = False


@dataclass(frozen=True, slots=True)
class SearchResult(Sequence[Hit]):
    """A page of hits, the best first.

    Attributes:
        hits: The page.
        mode: The searches that ran: `hybrid`, or `text` or `vector` alone.
        reranked: Whether a reranker changed the order.
        contrast: How far the nearest item stands out by its vector, from 0 to 1, see
            `locus_memory.retrieval.ranking.absolute.contrast`; `None`: there are no vectors.
    """

    hits: tuple[Hit, ...]
    mode: Mode
    reranked: bool = False
    contrast: float | None = None

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

    def _repr_html_(self) -> str:
        return table((f"{hit.relevance:.2f} {hit.item.key}", hit.text) for hit in self.hits)

    def pack(self, budget: int, counter: object | None = None) -> Packed[Hit]:
        """Return the best hits whose texts together have at most `budget` tokens.

        Raises:
            InvalidArgumentError: As for `locus_memory.retrieval.pack.pack`.
        """
        return pack(self.hits, budget, text_of=attrgetter("text"), counter=counter)


@dataclass(frozen=True, slots=True)
class Borrowed:
    """The hits of a search as the store holds them; nobody may change them.

    Attributes:
        ranked: The hits, the best first; the `score` of an item itself has no meaning.
        mode: The searches that ran.
        kept: Whether the store returns the same objects again.
        sentences: How many sentences of a long message each hit was compared with.
    """

    ranked: tuple[Ranked, ...]
    mode: Mode
    kept: bool = False
    sentences: int = 1


class HybridSearch(StoreUser):
    """Text search and vector search of a store, merged into one ranking.

    Both searches run concurrently, one round trip each, and the union of their hits is ranked: an
    item that only one of them finds is never lost. Without an embedder, or if the store has no
    vectors, only text search is used. If the store has no text search, only vector search is used.
    `SearchResult.mode` and the event `retrieval.degraded` report it.

    An item ranks above the items it supersedes, if links in the items say so; see
    `locus_memory.retrieval.ranking.supersession`.

    Args:
        store: Any store, a backend that has one, or a provider string. The search closes the store
            of a string, by `close` or `async with`; the caller closes any other store.
        embedder: The embedder of the vectors in the store.
        reranker: Reorders the best hits; its scores are blended with those of the search.
        options: The weights of the ranking.
        fields: The fields of items that hold their speaker, date and place in a conversation.
    """

    def __init__(
        self,
        store: str | BaseStore | Backend,
        embedder: Embedder | None = None,
        *,
        reranker: Reranker | None = None,
        options: SearchOptions = _OPTIONS,
        fields: Fields = _FIELDS,
    ) -> None:
        self.store, self._owned = store_of(store)
        self._embedder = embedder
        self._finder = Finder(self.store, embedder)
        self._reranker = reranker
        self._options = options
        self._fields = fields
        self._passages = ReadOnce(fields.read)

    async def search(
        self,
        namespace: Namespace | list[Namespace],
        query: str,
        limit: int = 10,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the field's word
        offset: int = 0,
        recursive: bool = False,
        mode: Mode | None = None,
        explain: bool = False,
        min_score: float | None = None,
    ) -> SearchResult:
        """Return a page of the items that match a query best.

        Pages are consistent: as long as nothing is written, no item is repeated or lost. If an
        embedder or a reranker fails, an event reports it, and the search continues without it.

        A query of more than 600 characters, such as a message with a pasted document, is searched
        by its passages, of which 2,400 characters of each end count. An item is then as relevant as
        it is to the sentence that it fits best, and that is its score.

        Args:
            namespace: The namespace to search; a list of namespaces is searched as one.
            query: A question, or any words.
            limit: At most this many.
            filter: See `locus_memory.store.filters`; only matching items are found.
            offset: Skip this many of the best.
            recursive: Search the descendants of `namespace` as well.
            mode: `text` or `vector`: only this search; `hybrid`: both, and an error if one is
                missing or fails; `None`: all available searches.
            explain: Whether each hit explains its rank.
            min_score: Leave out hits with a lower `relevance`; from 0 to 1. Candidates are fetched
                until less than a tenth of `SearchOptions.depth` of them are relevant enough.

        Raises:
            InvalidArgumentError: An invalid namespace, query, limit, filter, mode or `min_score`,
                an empty list of namespaces, or a mode that needs an embedder without one.
            ConfigurationError: The vectors in the store are of another model. The message names
                both.
            InvalidEmbeddingError: The vectors in the store have another dimension, and no mark
                names their model.
            StoreCapabilityError: The store does not support `mode`; without a mode, it has neither
                text search nor, with an embedder, vectors.
            BackendError: The store failed.
        """
        end = check_limit(offset, "offset") + check_limit(limit)
        least = check_min_score(min_score)
        request = self._request(namespace, query, end, filter, recursive=recursive)
        passages = passages_of(query)
        found, ranked = await self._found(
            request, passages, check_mode(mode), end, least, explain=explain
        )
        # Whatever the page, a lowest score filters the same ranking, so that pages are consistent.
        ranked, reranked = await self._rerank(request.query, ranked, offset if least is None else 0)
        if least is not None:
            ranked = [each for each in ranked if each.relevance >= least]
        kept, mode_that_ran = found[0].candidates.kept, found[0].mode
        near = [nearest for each in found if (nearest := self._nearest(each))]
        mean = None if reranked or not near else max(level(*each) or 0.0 for each in near)
        hits = tuple(_hit(each, request.query, mean, kept=kept) for each in ranked[offset:end])
        apart = [each for each in starmap(contrast, near) if each is not None]
        return SearchResult(hits, mode_that_ran, reranked, max(apart, default=None))

    async def borrow(
        self,
        namespace: Namespace,
        query: str,
        limit: int = 10,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - as for `search`
        recursive: bool = False,
        mode: Mode | None = None,
    ) -> Borrowed:
        """Return the first page of `search` without copies, for a reader that changes nothing.

        Args:
            namespace: As for `search`.
            query: As for `search`.
            limit: At most this many.
            filter: As for `search`.
            recursive: As for `search`.
            mode: As for `search`.

        Raises:
            Exception: As for `search`.
        """
        end = check_limit(limit)
        request = self._request(namespace, query, end, filter, recursive=recursive)
        passages = passages_of(query)
        found, ranked = await self._found(
            request, passages, check_mode(mode), end, None, explain=False
        )
        ranked, _ = await self._rerank(request.query, ranked, 0)
        kept = found[0].candidates.kept
        return Borrowed(tuple(ranked[:end]), found[0].mode, kept, sum(map(len, passages)))

    def _request(
        self,
        namespace: Namespace | list[Namespace],
        query: str,
        end: int,
        condition: Mapping[str, Any] | None,
        *,
        recursive: bool,
    ) -> Request:
        """Return the request for the candidates of the first `end` hits."""
        namespaces = _namespaces(namespace)
        if not isinstance(query, str):
            raise InvalidArgumentError(f"a query is a string, not {type(query).__name__}")
        read = read_query(query)
        wanted = -(-end // self._options.depth) * self._options.depth
        return Request(namespaces, read, wanted, condition, recursive)

    async def _found(
        self,
        request: Request,
        passages: Passages,
        mode: Mode | None,
        end: int,
        least: float | None,
        *,
        explain: bool,
    ) -> tuple[list[Found], list[Ranked]]:
        """Return the candidates, and a ranking of at least `end` items, if that many were found.

        With a lowest relevance, `end` items have it. More candidates are fetched for that, until a
        window has hardly any such item. Each passage of a long query is searched for itself.
        """
        queries = [read_query("".join(each)) for each in passages]
        while True:
            requests = [replace(request, query=each) for each in queries]
            found = await self._finder.find_each(requests, mode)
            ranked: list[Ranked] = []
            is_last = False
            rankings = (
                self._windows(query, each, explain=explain)
                for query, each in zip(queries, found, strict=True)
            )
            for windows in zip_longest(*rankings, fillvalue=()):
                window = await _as_one(windows, passages, ranked, self._fields)
                ranked += window
                if least is None:
                    is_last = len(ranked) >= end
                else:
                    relevant = sum(each.relevance >= least for each in window)
                    is_last = relevant < _ENOUGH * len(window)
                if is_last:
                    break
            is_all = max(each.fetched for each in found) < request.wanted
            if least is None or is_last or is_all:
                return found, ranked
            if sum(each.relevance >= least for each in ranked) >= end:
                return found, ranked
            request = replace(request, wanted=2 * request.wanted)

    def _windows(self, query: Query, found: Found, *, explain: bool) -> Iterator[list[Ranked]]:
        """Yield the windows of the searches, each ranked for itself.

        So a later page never changes the earlier ones.
        """
        depth = self._options.depth
        by_text, by_vector = found.candidates.by_text, found.candidates.by_vector
        seen: set[Name] = set()
        lowest: float | None = None
        for start in range(0, found.fetched, depth):
            places = range(start, start + depth)
            window = rank(
                query,
                _unseen(by_text, places, seen),
                _unseen(by_vector, places, seen),
                options=self._options,
                fields=self._fields,
                nearness=self._nearness(found, places.stop),
                read=self._passages.read if found.candidates.kept else None,
                explain=explain,
            )
            if lowest is not None:
                window = _capped(window, lowest)
            lowest = window[-1].score if window else lowest
            seen.update((each.item.namespace, each.item.key) for each in window)
            yield window

    def _nearness(self, found: Found, end: int) -> Nearness | None:
        """Return the cosines of the windows until `end`, the same for every later page."""
        if self._embedder is None or found.mode == "text":
            return None
        by_vector = found.candidates.by_vector
        known = by_vector[:end]
        return Nearness(
            scale_of(self._embedder.name),
            {(item.namespace, item.key): cosine for item, cosine in known},
            known[-1].score if len(known) == end else None,
        )

    def _nearest(self, found: Found) -> tuple[list[float], Scale] | None:
        """Return the cosines of the nearest items, and their scale; `None`: there are no vectors.

        They are the same for every page, however many were fetched.
        """
        if self._embedder is None or found.mode == "text":
            return None
        nearest = found.candidates.by_vector[: self._options.depth]
        return [each.score for each in nearest], scale_of(self._embedder.name)

    async def _rerank(
        self, query: Query, ranked: list[Ranked], offset: int
    ) -> tuple[list[Ranked], bool]:
        depth = self._options.rerank_depth
        # A page after the reranked items is not changed.
        if self._reranker is None or not ranked or offset >= depth:
            return ranked, False
        best = ranked[:depth]
        try:
            found = await self._reranker.rerank(query.text, [each.passage.spoken for each in best])
            scores = _scores(self._reranker.name, found, len(best))
        except Exception as error:  # noqa: BLE001 - reported; the ranking is good without
            emit("retrieval.rerank_failed", error=error, reranker=self._reranker.name)
            return ranked, False
        scale = known_scale(self._reranker.name)
        blended = blend(best, scores, self._options.rerank_weight, scale)
        return [*prefer_current(blended, self._fields), *ranked[depth:]], True


async def _as_one(
    windows: Sequence[Sequence[Ranked]],
    passages: Passages,
    before: Sequence[Ranked],
    fields: Fields,
) -> Sequence[Ranked]:
    """Return the windows of the passages of a query as one, without what was found before."""
    if len(windows) == 1:
        return windows[0]
    seen = {(each.item.namespace, each.item.key) for each in before}
    window = await in_thread(joined, windows, passages, seen, fields)
    return _capped(window, before[-1].score) if before else window


def _scores(name: str, found: Sequence[float], count: int) -> list[float]:
    """Return the scores of a reranker.

    Raises:
        InvalidArgumentError: They are not one finite number for each text.
    """
    scores = list(map(float, found))
    if len(scores) != count:
        raise InvalidArgumentError(f"{name} returned {len(scores)} scores for {count} texts")
    if not all(map(math.isfinite, scores)):
        raise InvalidArgumentError(f"{name} returned a score that is no finite number")
    return scores


def _namespaces(namespace: object) -> tuple[Namespace, ...]:
    """Return the namespaces to search, each once.

    Raises:
        InvalidArgumentError: There is none, or one of them is not a namespace.
    """
    if not isinstance(namespace, list):
        return (check_namespace(namespace),)
    if not namespace:
        raise InvalidArgumentError("a list of namespaces to search holds at least one")
    return tuple(dict.fromkeys(map(check_namespace, namespace)))


def _unseen(
    found: Sequence[Candidate], places: range, seen: AbstractSet[Name]
) -> dict[int, Candidate]:
    """Return the candidates that are not in `seen`, by their rank."""
    page = enumerate(found[places.start : places.stop], places.start + 1)
    if not seen:
        return dict(page)
    return {place: each for place, each in page if (each.item.namespace, each.item.key) not in seen}


def _capped(window: Sequence[Ranked], ceiling: float) -> list[Ranked]:
    """Return a later window, with scores capped at those before it."""
    return [each if each.score <= ceiling else _lowered(each, ceiling) for each in window]


def _lowered(ranked: Ranked, score: float) -> Ranked:
    parts = ranked.parts and replace(ranked.parts, capped=ranked.score - score)
    return ranked._replace(score=score, parts=parts)


def _hit(ranked: Ranked, query: Query, mean: float | None, *, kept: bool) -> Hit:
    """Return a hit; `mean` is how near the nearest items are, `None` if that is not to count."""
    near = ranked.nearness
    is_by_chance = (
        mean is not None and near is not None and by_chance(query, ranked.passage, near, mean)
    )
    return Hit(
        item=_shown(ranked.item, ranked.score, kept=kept),
        score=ranked.score,
        text=ranked.passage.spoken,
        parts=ranked.parts,
        relevance=ranked.relevance,
        by_chance=is_by_chance,
    )


def _shown(item: StoreItem, score: float, *, kept: bool) -> StoreItem:
    """Return the item with the score of its hit and without a mark; a copy if it is kept."""
    value, metadata = item.value, item.metadata
    if MARK in metadata:
        metadata = unmarked(metadata)
    if kept:
        value, metadata = round_trip(value)[1], round_trip(metadata)[1]
    # Not with `replace`, which takes three times as long.
    return StoreItem(
        item.namespace,
        item.key,
        value,
        metadata,
        item.created_at,
        item.updated_at,
        item.version,
        score,
        item.expires_at,
    )
