"""Search of the texts and vectors that RediSearch holds.

It requests a few more rows than wanted, and then more until there are enough: rows may be deleted,
or not satisfy the condition. The server may leave out rows that equal the last one it returns, so
all of these equal rows are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from locus_memory.backends.redis.items.spaces import Space, Spaces
from locus_memory.backends.redis.search.commands import Terms, Vector
from locus_memory.backends.redis.search.hits import Candidate, Documents, Page, collect, is_open
from locus_memory.backends.redis.search.layout import Layouts
from locus_memory.backends.redis.search.replies import Row
from locus_memory.backends.redis.search.stems import label, name_of
from locus_memory.backends.redis.search.vectors import VectorQuery, check_dimension, result_of
from locus_memory.store.item import Namespace, SemanticSearchResult, StoreItem
from locus_memory.store.text import stem

__all__ = ["Target", "search_indexed_text", "search_indexed_vectors"]

_FEW: Final = 16
_GROWTH: Final = 8
_ALL: Final = 2**31
_LAST_STEP: Final = 8192
"""After so many requests, all rows are requested."""

_DIGITS: Final = 12
"""The decimals of a score that are equal in all replies of the server."""

_KEY: Final = b":i:"


class Target:
    """The target of a search.

    Args:
        namespace: The namespace.
        recursive: Whether to search its descendants as well.
        spaces: All namespaces of the target.
    """

    def __init__(self, namespace: Namespace, spaces: Sequence[Space], *, recursive: bool) -> None:
        self.label = label(namespace, recursive=recursive)
        self._spaces = {space.base: space for space in spaces}
        self._start = len(spaces[0].base) if spaces else 0

    def candidates(self, rows: Sequence[Row]) -> list[Candidate]:
        """Return the candidates of rows, without those of other namespaces with the same label."""
        found: list[Candidate] = []
        for key, number in rows:
            base, name = key[: self._start], key[self._start + len(_KEY) :]
            if space := self._spaces.get(base):
                found.append(Candidate(space, name.replace(b"\xff", b"\0"), number))
        return found


async def search_indexed_text(
    layouts: Layouts, spaces: Spaces, target: Target, words: Sequence[str], page: Page
) -> list[StoreItem]:
    """Return the items with any of the words that satisfy the condition, the best first.

    Among equals, the one indexed last comes first.
    """
    names = list({name_of(stem(word)): None for word in words})
    if not names:
        return []
    most = _first(page)
    while True:
        rows = await layouts.search.find(Terms(target.label, names), most)
        documents = Documents(names, {}, are_named=True)
        candidates = target.candidates(_ranked(rows, is_all=len(rows) < most))
        hits = await collect(spaces, candidates, page, documents)
        if len(hits) == page.limit or len(rows) < most:
            return [item for _, item in hits]
        most = _next(most)


def _ranked(rows: Sequence[Row], *, is_all: bool) -> list[Row]:
    rounded = [Row(key, float(f"{score:.{_DIGITS}g}")) for key, score in reversed(rows)]
    rounded.sort(key=lambda row: -row.number)
    return rounded if is_all else [row for row in rounded if row.number > rounded[-1].number]


def _first(page: Page) -> int:
    """Return how many rows to request, so that each page continues the last."""
    most = _FEW if is_open(page.condition) else _FEW * _GROWTH
    while most <= page.end and most < _ALL:
        most = _next(most)
    return most


def _next(most: int) -> int:
    return most * _GROWTH if most < _LAST_STEP else _ALL


async def search_indexed_vectors(
    layouts: Layouts, spaces: Spaces, target: Target, query: VectorQuery, page: Page
) -> list[SemanticSearchResult]:
    """Return the items whose vectors are nearest to the query by cosine, the best first.

    Raises:
        InvalidEmbeddingError: All vectors of the target have another dimension.
    """
    if query.dimension not in await layouts.dimensions(query.dimension):
        await _check_others(layouts, target, query)
        return []
    most, is_exact = _first(page), False
    while True:
        question = Vector(target.label, query.vector, is_exact)
        rows = await layouts.search.find(question, most)
        is_all = len(rows) < most
        if is_all and not is_exact:
            # The graph may have missed some vectors.
            is_exact = True
            continue
        if not rows:
            await _check_others(layouts, target, query)
        frontier = -2.0 if is_all else 1.0 - rows[-1].number
        candidates = _near(target, rows, query, frontier)
        hits = await collect(spaces, candidates, page)
        if len(hits) == page.limit or frontier <= query.least:
            return [result_of(candidate, item) for candidate, item in hits]
        most, is_exact = _next(most), True


def _near(
    target: Target, rows: Sequence[Row], query: VectorQuery, frontier: float
) -> list[Candidate]:
    cosines = [Row(key, 1.0 - distance) for key, distance in rows]
    found = target.candidates(
        [row for row in cosines if row.number > frontier and query.is_met(row.number)]
    )
    return sorted(found, key=lambda each: (-each.score, each.space.path, each.name))


async def _check_others(layouts: Layouts, target: Target, query: VectorQuery) -> None:
    """Refuse a query if all vectors have other dimensions."""
    known = await layouts.dimensions(query.dimension)
    for dimension in sorted(known - {query.dimension}):
        if await layouts.search.find(Vector.any_of(target.label, dimension), 1):
            check_dimension(query.dimension, [dimension])
