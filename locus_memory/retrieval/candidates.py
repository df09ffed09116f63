"""The searches of a store that fetch the candidates of a ranking."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError, InvalidEmbeddingError, StoreCapabilityError
from locus_memory.events import emit
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.embedders.marks import check_marks, check_newest_mark
from locus_memory.retrieval.embedding import embed
from locus_memory.retrieval.ranking.query import Query
from locus_memory.store.base import BaseStore, has_semantic_search
from locus_memory.store.candidates import (
    Candidate,
    Candidates,
    as_candidate_store,
)
from locus_memory.store.item import Namespace

__all__ = ["Finder", "Found", "Mode", "Request", "check_mode"]

Mode = Literal["hybrid", "text", "vector"]
"""The mode of a search: text and vector search together, or one of them alone."""

_T = TypeVar("_T")

_MODES: tuple[Mode, ...] = get_args(Mode)


def check_mode(mode: object) -> Mode | None:
    """Return `mode` if it is a mode or `None`.

    Raises:
        InvalidArgumentError: It is neither.
    """
    if mode is None or mode in _MODES:
        return mode
    raise InvalidArgumentError(f"mode is one of {', '.join(_MODES)}, or None, not {quote(mode)}")


class Found(NamedTuple):
    """The candidates found, and the mode of the search."""

    mode: Mode
    candidates: Candidates

    @property
    def fetched(self) -> int:
        """The number of hits of the search that found more."""
        return max(len(self.candidates.by_text), len(self.candidates.by_vector))


@dataclass(frozen=True, slots=True)
class Request:
    """The request to each search.

    Attributes:
        namespaces: The namespaces to search, each once.
        query: The query.
        wanted: How many hits each search has to return.
        condition: A filter, or `None`.
        recursive: Whether to search the descendants of the namespaces as well.
    """

    namespaces: Sequence[Namespace]
    query: Query
    wanted: int
    condition: Mapping[str, Any] | None
    recursive: bool


class Finder:
    """Runs text search and vector search on a store concurrently.

    Args:
        store: Any store.
        embedder: The embedder of the vectors in the store.
    """

    def __init__(self, store: BaseStore, embedder: Embedder | None) -> None:
        self._store = store
        self._embedder = embedder
        self._told = False

    async def find(self, request: Request, mode: Mode | None) -> Found:
        """Return the hits of each search.

        Args:
            request: The request.
            mode: The mode; `None`: all available searches, and a failing embedder is only reported.

        Raises:
            InvalidArgumentError: The mode needs an embedder, and there is none.
            ConfigurationError: The search found vectors of another model.
            InvalidEmbeddingError: The vectors have another dimension.
            StoreCapabilityError: The store does not support this mode, or no search at all.
            BackendError: The store failed.
        """
        chosen = await self._choose(mode)
        survive = (mode, chosen) == (None, "hybrid")
        vector: Sequence[float] | None = None
        if chosen != "text" and request.query.text.strip():
            vector = await self._embedded(request, survive=survive)
            chosen = "text" if vector is None else chosen
        try:
            found = await self._searched(request, chosen, vector)
        except StoreCapabilityError as error:
            if chosen == "text" or not survive:
                raise
            emit("retrieval.degraded", error=error, mode="vector", reason="too many items")
            chosen = "vector"
            found = await self._searched(request, chosen, vector)
        by_text = _merged([each.by_text for each in found], request.wanted)
        by_vector = _merged([each.by_vector for each in found], request.wanted)
        kept = all(each.kept for each in found)
        return Found(chosen, Candidates(by_text, by_vector, kept=kept))

    async def find_each(self, requests: Sequence[Request], mode: Mode | None) -> list[Found]:
        """Return the hits of each of several requests, see `find`."""
        return await _together([self.find(each, mode) for each in requests])

    async def _searched(
        self, request: Request, mode: Mode, vector: Sequence[float] | None
    ) -> list[Candidates]:
        """Return the hits in each namespace."""
        words = None if mode == "vector" else request.query.terms
        return await _together(
            [
                self._checked(each, request, self._both(each, request, words, vector))
                for each in request.namespaces
            ]
        )

    async def _choose(self, mode: Mode | None) -> Mode:
        """Return the mode of the search.

        Raises:
            InvalidArgumentError: As for `find`.
            StoreCapabilityError: As for `find`.
        """
        if mode in ("hybrid", "vector"):
            await self._need_vectors(mode)
        words = self._store.capabilities.search
        if mode == "vector" or (mode is not None and words):
            return mode
        if mode is not None:
            raise self._incapable("search", "choose mode='vector', or another backend")
        near = self._embedder is not None and await has_semantic_search(self._store)
        if near and words:
            return "hybrid"
        if not near and not words:
            raise self._incapable("search", "HybridSearch needs it, or an embedder and vectors")
        return self._tell_once("text" if words else "vector")

    async def _need_vectors(self, mode: Mode) -> None:
        if self._embedder is None:
            raise InvalidArgumentError(
                f"mode={quote(mode)} needs an embedder: HybridSearch(store, embedder); "
                "or choose mode='text'"
            )
        if not await has_semantic_search(self._store):
            raise self._incapable("semantic_search", "choose mode='text', or another backend")

    def _incapable(self, capability: str, remedy: str) -> StoreCapabilityError:
        return StoreCapabilityError(capability, type(self._store).__name__, remedy)

    def _tell_once(self, mode: Mode) -> Mode:
        if not self._told:
            self._told = True
            reason = "no embedder" if self._embedder is None else "the store has no other search"
            emit("retrieval.degraded", mode=mode, reason=reason)
        return mode

    async def _both(
        self,
        namespace: Namespace,
        request: Request,
        words: str | None,
        vector: Sequence[float] | None,
    ) -> Candidates:
        """Return the hits of both searches in a namespace; one without a query finds nothing."""
        asked: dict[str, Any] = {"filter": request.condition, "recursive": request.recursive}
        at_once, most = as_candidate_store(self._store), request.wanted
        if at_once is not None:
            return await at_once.candidates(namespace, most, words=words, embedding=vector, **asked)
        by_vector, by_text = await _together(
            [self._near(namespace, vector, most, asked), self._with(namespace, words, most, asked)]
        )
        return Candidates(by_text, by_vector)

    async def _near(
        self,
        namespace: Namespace,
        vector: Sequence[float] | None,
        most: int,
        asked: Mapping[str, Any],
    ) -> list[Candidate]:
        if vector is None:
            return []
        asked = {"metadata_filter": asked["filter"], "recursive": asked["recursive"]}
        hits = await self._store.search_by_embedding(namespace, vector, most, **asked)
        return [Candidate(hit.item, hit.score) for hit in hits]

    async def _with(
        self, namespace: Namespace, words: str | None, most: int, asked: Mapping[str, Any]
    ) -> list[Candidate]:
        if words is None:
            return []
        found = await self._store.search(namespace, words, most, **asked)
        return [Candidate(item, item.score or 0.0) for item in found]

    async def _embedded(self, request: Request, *, survive: bool) -> Sequence[float] | None:
        """Return the vector of the query; `None`: the embedder failed."""
        if self._embedder is None:
            return None
        try:
            (vector,) = await embed(self._embedder, [request.query.text], "query")
        except InvalidEmbeddingError:
            raise
        except Exception as error:
            if not survive:
                raise
            emit("retrieval.degraded", error=error, mode="text", reason="the embedder failed")
            return None
        return vector

    async def _checked(
        self, namespace: Namespace, request: Request, search: Awaitable[Candidates]
    ) -> Candidates:
        """Return the hits of a search in one namespace.

        Raises:
            ConfigurationError: One of the items has the vector of another model.
            InvalidEmbeddingError: The vectors have another dimension, and no mark.
        """
        embedder = self._embedder
        try:
            found = await search
        except InvalidEmbeddingError:
            # The mark of an item explains more than two dimensions do.
            if embedder is not None:
                recursive = request.recursive
                await check_newest_mark(self._store, embedder, namespace, recursive=recursive)
            raise
        if embedder is not None:
            check_marks((item for item, _ in found.by_vector), embedder, namespace)
        return found


async def _together(calls: Sequence[Coroutine[Any, Any, _T]]) -> list[_T]:
    """Return the results of calls that run concurrently.

    All calls run to their end, so that none is left running when one fails.
    """
    if len(calls) == 1:
        return [await calls[0]]
    results = await asyncio.gather(*calls, return_exceptions=True)
    done: list[_T] = []
    for result in results:
        if isinstance(result, BaseException):
            raise result
        done.append(result)
    return done


def _merged(found: Sequence[Sequence[Candidate]], wanted: int) -> list[Candidate]:
    """Return the best hits of several searches as of one; of equals, the first searched.

    The first items are the same for any number wanted, so that pages are consistent.
    """
    if len(found) == 1:
        return list(found[0])
    best = sorted(chain.from_iterable(found), key=_score, reverse=True)
    # Namespaces may overlap.
    unique: dict[tuple[Namespace, str], Candidate] = {}
    for each in best:
        unique.setdefault((each.item.namespace, each.item.key), each)
    return list(unique.values())[:wanted]


_score = attrgetter("score")
