"""LangGraph's searches through the store contract, with exact pages, and its lists of namespaces.

The hidden namespaces of further vectors are never listed.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import Final

from langgraph.store.base import ListNamespacesOp, MatchCondition

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError, InvalidEmbeddingError
from locus_memory.integrations.langgraph.items.filter_translation import Filter
from locus_memory.integrations.langgraph.items.index import Vector
from locus_memory.integrations.langgraph.items.notes import (
    Name,
    Owned,
    is_current,
    owner_of,
    updated_at,
)
from locus_memory.store.base import BaseStore, side_by_side
from locus_memory.store.hidden_namespaces import FURTHER_VECTORS, further_vectors
from locus_memory.store.item import (
    Namespace,
    SemanticSearchResult,
    StoreItem,
    check_limit,
)

__all__ = ["Wanted", "find", "list_namespaces", "roots"]

_FIRST_PAGE: Final = 50
_LARGEST_PAGE: Final = 1000
_SETTLED: Final = timedelta(minutes=10)
"""A further vector younger than this may lack its item, because the item is being put."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The request of a search.

    Attributes:
        prefix: The namespace; `()`: all namespaces.
        filter: The filter.
        query: The query of a text search, or `None`.
        vector: The vector of a vector search instead, or `None`.
    """

    prefix: Namespace
    filter: Filter
    query: str | None = None
    vector: Vector | None = None


async def find(store: BaseStore, wanted: Wanted, limit: int, offset: int) -> list[StoreItem]:
    """Return a page of items, best or newest first, with their `score` if there was a query.

    Raises:
        InvalidArgumentError: An invalid limit or offset.
    """
    check_limit(limit)
    check_limit(offset, "offset")
    if wanted.vector is None or limit == 0:
        return await _matching(store, wanted, limit, offset)
    return await _similar(store, wanted, wanted.vector, limit, offset)


async def _matching(store: BaseStore, wanted: Wanted, limit: int, offset: int) -> list[StoreItem]:
    """Return a page of items, by the own vector of each item."""
    if wanted.filter.exact:
        return await _page(store, wanted, limit, offset)
    found: list[StoreItem] = []
    read, size = 0, _FIRST_PAGE
    while len(found) < offset + limit:
        page = await _page(store, wanted, size, read)
        found += filter(wanted.filter.matches, page)
        if len(page) < size:
            break
        read, size = read + size, min(2 * size, _LARGEST_PAGE)
    return found[offset : offset + limit]


async def _page(store: BaseStore, wanted: Wanted, limit: int, offset: int) -> list[StoreItem]:
    """Return a page of the items that match the filter for the database."""
    if wanted.prefix:
        return await _below(store, wanted, limit, offset)
    end = offset + limit

    async def best_of(root: Namespace) -> list[StoreItem]:
        # Other programs may keep vectors of another dimension there.
        with suppress(InvalidEmbeddingError):
            return await _below(store, replace(wanted, prefix=root), end, 0)
        return []

    lists = await side_by_side(best_of, await roots(store))
    merged = heapq.merge(*lists, key=_rank, reverse=True)
    return list(islice(merged, offset, end))


def _rank(item: StoreItem) -> float:
    return updated_at(item).timestamp() if item.score is None else item.score


async def _below(store: BaseStore, wanted: Wanted, limit: int, offset: int) -> list[StoreItem]:
    condition = wanted.filter.pushed or None
    if wanted.vector is None:
        return await store.search(
            wanted.prefix,
            wanted.query,
            limit,
            filter=condition,
            offset=offset,
            recursive=True,
        )
    hits = await store.search_by_embedding(
        wanted.prefix,
        wanted.vector,
        limit,
        metadata_filter=condition,
        offset=offset,
        recursive=True,
    )
    return [replace(hit.item, score=1 - hit.distance) for hit in hits]


async def _similar(
    store: BaseStore, wanted: Wanted, vector: Vector, limit: int, offset: int
) -> list[StoreItem]:
    """Return a page of items, by the best of all their vectors."""
    needed = offset + limit
    size = max(2 * needed, _FIRST_PAGE)
    nearest = partial(_nearest, store, further_vectors(wanted.prefix), vector)
    own, page = await asyncio.gather(_matching(store, wanted, needed, 0), nearest(size, 0))
    ranking = _Ranking(own, is_closed=len(own) < needed and not wanted.filter.is_empty)
    async for further in _pages(nearest, page, size):
        if not await _offer_all(store, further, ranking, wanted.filter, needed):
            break
    if ranking.stale:
        # Not earlier, since the pages are counted from the nearest.
        await store.delete_batch(dict.fromkeys(ranking.stale))
    return ranking.result()[offset:needed]


async def _offer_all(
    store: BaseStore,
    hits: list[SemanticSearchResult],
    ranking: _Ranking,
    condition: Filter,
    step: int,
) -> bool:
    """Offer a page of further vectors, a few at a time; return whether the next may matter."""
    for start in range(0, len(hits), step):
        await _offer(store, hits[start : start + step], ranking, condition)
        if ranking.is_final(hits[: start + step][-1]):
            return False
    return True


async def _pages(
    nearest: Callable[[int, int], Awaitable[list[SemanticSearchResult]]],
    page: list[SemanticSearchResult],
    size: int,
) -> AsyncIterator[list[SemanticSearchResult]]:
    """Yield a first page of a size, and the larger ones after it."""
    read = 0
    while page:
        yield page
        read += len(page)
        is_last, size = len(page) < size, max(size, min(2 * size, _LARGEST_PAGE))
        page = [] if is_last else await nearest(size, read)


async def _nearest(
    store: BaseStore, prefix: Namespace, vector: Vector, limit: int, offset: int
) -> list[SemanticSearchResult]:
    # There is no vector of this dimension, so no vector is similar.
    with suppress(InvalidEmbeddingError):
        return await store.search_by_embedding(prefix, vector, limit, offset=offset, recursive=True)
    return []


async def _offer(
    store: BaseStore, hits: list[SemanticSearchResult], ranking: _Ranking, condition: Filter
) -> None:
    """Rank the items of further vectors, the nearest first."""
    unknown = ranking.unknown(owner_of(hit.item) for hit in hits)
    owners = await side_by_side(lambda name: store.get_item(*name), unknown)
    ranking.known.update(zip(unknown, owners, strict=True))
    for hit in hits:
        name = owner_of(hit.item)
        if name not in ranking.known:
            continue
        owner = ranking.known[name]
        if owner is None or not is_current(hit.item, owner):
            ranking.stale += _remains(hit.item, owner)
        elif condition.matches(owner):
            ranking.offer(owner, 1 - hit.distance)


def _remains(vector: StoreItem, owner: StoreItem | None) -> list[Name]:
    """Return the leftovers of a former item; none if the item may be in the middle of a put."""
    if vector.updated_at > datetime.now(UTC) - _SETTLED:
        return []
    left = [_name(vector)]
    if owner is None:
        left.append(Owned(*owner_of(vector), "", 0).record)
    return left


class _Ranking:
    """The best items, by their own vectors and by their further ones.

    Args:
        items: The best by their own vectors, in order.
        is_closed: Whether these are all that match. An item with further vectors also has its own
            vector, so the others need not be read.

    Attributes:
        known: Items by their names; `None`: there is no such item.
        stale: The leftovers of deleted items.
    """

    def __init__(self, items: list[StoreItem], *, is_closed: bool) -> None:
        self.known: dict[Name, StoreItem | None] = {_name(item): item for item in items}
        self.stale: list[Name] = []
        # Of two that are as good, the one by its own vector comes first: on any page.
        self._ranked = {
            _name(item): ((-_rank(item), 0, place), item) for place, item in enumerate(items)
        }
        self._count, self._offers = len(items), 0
        self._is_closed = is_closed

    def is_final(self, hit: SemanticSearchResult) -> bool:
        """Whether no vector after this one can change the result."""
        best = heapq.nsmallest(self._count, (key[0] for key, _ in self._ranked.values()))
        return not best or -best[-1] >= 1 - hit.distance

    def offer(self, item: StoreItem, score: float) -> None:
        """Add an item for one of its further vectors; scores arrive in descending order."""
        self._offers += 1
        found = self._ranked.get(_name(item))
        key = -score, 1, self._offers
        if found is None or key < found[0]:
            self._ranked[_name(item)] = key, replace(item, score=score)

    def result(self) -> list[StoreItem]:
        """Return the items, the best first."""
        return [item for _, item in sorted(self._ranked.values(), key=itemgetter(0))]

    def unknown(self, names: Iterable[Name]) -> list[Name]:
        """Return the names of the items that have to be read next."""
        if self._is_closed:
            return []
        return [name for name in dict.fromkeys(names) if name not in self.known]


def _name(item: StoreItem) -> Name:
    return item.namespace, item.key


_PAGE: Final = 500
_AFTER_HIDDEN: Final = (FURTHER_VECTORS + "\x00",)


async def roots(store: BaseStore) -> list[Namespace]:
    """Return the first labels of all namespaces, each as a namespace."""
    return [root async for root in _walk(store, max_depth=1)]


async def list_namespaces(store: BaseStore, op: ListNamespacesOp) -> list[Namespace]:
    """Return the namespaces that LangGraph requests, in ascending order.

    Raises:
        InvalidArgumentError: A match type that is neither prefix nor suffix, or an invalid number.
    """
    check_limit(op.offset, "offset")
    end = op.offset + check_limit(op.limit)
    depth = None if op.max_depth is None else check_limit(op.max_depth, "max_depth")
    conditions = [each for each in op.match_conditions or () if each.path]
    prefixes, suffixes = _paths(conditions, "prefix"), _paths(conditions, "suffix")
    # The contract accepts one of each; further conditions are tested here.
    is_simple = len(prefixes) <= 1 and len(suffixes) <= 1
    fits = _matcher(prefixes[1:], suffixes[1:])
    walk = _walk(
        store,
        prefix=prefixes[0] if prefixes else None,
        suffix=suffixes[0] if suffixes else None,
        max_depth=(depth or None) if is_simple else None,
        page=min(_PAGE, max(1, end)) if is_simple else _PAGE,
    )
    listed: dict[Namespace, None] = {}
    async for namespace in walk:
        if len(listed) >= end:
            break
        if fits(namespace):
            listed.setdefault(namespace[:depth])
    return list(listed)[op.offset : end]


async def _walk(
    store: BaseStore,
    *,
    prefix: Namespace | None = None,
    suffix: Namespace | None = None,
    max_depth: int | None = None,
    page: int = _PAGE,
) -> AsyncIterator[Namespace]:
    after: Namespace | None = None
    while found := await store.list_namespaces(
        prefix, page, suffix=suffix, max_depth=max_depth, after=after
    ):
        for namespace in found:
            if namespace[0] != FURTHER_VECTORS:
                yield namespace
        # All hidden namespaces are skipped in one step.
        after = _AFTER_HIDDEN if found[-1][0] == FURTHER_VECTORS else found[-1]


def _paths(conditions: list[MatchCondition], kind: str) -> list[Namespace]:
    for condition in conditions:
        if condition.match_type not in ("prefix", "suffix"):
            raise InvalidArgumentError(
                f"a match type is 'prefix' or 'suffix', not {quote(condition.match_type)}"
            )
    return [tuple(each.path) for each in conditions if each.match_type == kind]


def _matcher(prefixes: list[Namespace], suffixes: list[Namespace]) -> Callable[[Namespace], bool]:
    def fits(namespace: Namespace) -> bool:
        backwards = namespace[::-1]
        return all(_begins(namespace, each) for each in prefixes) and all(
            _begins(backwards, each[::-1]) for each in suffixes
        )

    return fits


def _begins(namespace: Namespace, path: Namespace) -> bool:
    return len(path) <= len(namespace) and all(
        wanted in ("*", label) for wanted, label in zip(path, namespace, strict=False)
    )
