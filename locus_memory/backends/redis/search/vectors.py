"""Vector search: over the vector sets of Redis 8, one per namespace and dimension, or exactly.

A server without vector sets keeps the vectors in hashes, whose vectors are all read and compared
here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from locus_memory.backends.redis.items.items import rows
from locus_memory.backends.redis.items.spaces import Space, Spaces
from locus_memory.backends.redis.search.hits import Candidate, collect
from locus_memory.backends.selection import Page, VectorQuery, by_distance, check_dimension
from locus_memory.store.item import SemanticSearchResult

__all__ = ["search_vectors"]

_EXACT: Final = 2000
"""The most vectors for an exact comparison, which takes no longer than the graph then."""

_TOGETHER: Final = 20
"""How many namespaces a script searches: it may compare many vectors in each."""

_EFFORT: Final = 500
"""The least size of the candidate list of the graph (`EF`)."""

_FIRST: Final = 128
_GROWTH: Final = 8
_READ: Final = 1000
"""How many vectors of a hash are read at once."""

_ALL: Final = 2**32


@dataclass(frozen=True, slots=True)
class _Nearest:
    """The nearest vectors of some namespaces, best first.

    Attributes:
        candidates: The candidates with their cosines.
        frontier: No missing vector has a higher cosine than this.
    """

    candidates: list[Candidate]
    frontier: float


async def search_vectors(
    spaces: Spaces, targets: Sequence[Space], query: VectorQuery, page: Page
) -> list[SemanticSearchResult]:
    """Return the items whose vectors are nearest to the query by cosine, the best first.

    Raises:
        InvalidEmbeddingError: All vectors of the targets have another dimension.
    """
    # The cosine up to which no vector is a hit.
    least, most = query.threshold if query.threshold and query.threshold > 0 else -2.0, _FIRST
    while most < page.end:
        most *= _GROWTH
    while True:
        found = await _nearest(spaces, targets, query, min(most, _ALL))
        hits = await collect(spaces, _near(found, query), query.condition, page)
        is_all = found.frontier <= least or most >= _ALL
        if len(hits) == page.limit or is_all:
            return [by_distance(item, 1.0 - candidate.score) for candidate, item in hits]
        most *= _GROWTH


def _near(found: _Nearest, query: VectorQuery) -> list[Candidate]:
    """Return the candidates that are near enough, and better than any missing vector."""
    near = (each for each in found.candidates if each.score >= found.frontier)
    least = query.threshold
    return [each for each in near if least is None or max(0.0, each.score) >= least]


async def _nearest(
    spaces: Spaces, targets: Sequence[Space], query: VectorQuery, most: int
) -> _Nearest:
    effort = max(_EFFORT, most)
    args = [query.dimension, query.vector, most, effort, _EXACT]
    found = await spaces.searched("similar", targets, _TOGETHER, 4, lambda _: args)
    _check_dimension(query, found)
    nearest = _merge(targets, found)
    in_hashes = [space for space, row in zip(targets, found, strict=True) if row[3] == b""]
    nearest.candidates.extend(await _compared(spaces, in_hashes, query))
    nearest.candidates.sort(key=lambda each: (-each.score, each.space.path, each.name))
    return nearest


async def _compared(
    spaces: Spaces, targets: Sequence[Space], query: VectorQuery
) -> list[Candidate]:
    """Return all vectors that are in hashes, with their cosines."""
    import numpy as np  # noqa: PLC0415 - the import of the package must not load numpy

    wanted, found = np.frombuffer(query.vector, "<f4"), dict[tuple[Space, bytes], float]()
    left: list[tuple[Space, Any]] = [(space, 0) for space in targets]
    while left:
        some, left = left[:_TOGETHER], left[_TOGETHER:]
        commands = [
            ("HSCAN", b"%b:v%d" % (space.base, query.dimension), cursor, "COUNT", _READ)
            for space, cursor in some
        ]
        answers = await spaces.connection.execute_many(commands, again=True)
        for (space, _), (cursor, flat) in zip(some, answers, strict=True):
            matrix = np.frombuffer(b"".join(flat[1::2]), "<f4").reshape(-1, wanted.size)
            names = [(space, key) for key in flat[::2]]
            found |= zip(names, (matrix @ wanted).tolist(), strict=True)
            if int(cursor):
                left.append((space, cursor))
    return [Candidate(space, key, score) for (space, key), score in found.items()]


def _check_dimension(query: VectorQuery, found: Sequence[Sequence[Any]]) -> None:
    """Refuse a query if all vectors have other dimensions."""
    others = [other for _, size, other, _ in found if other and not size]
    if others and not any(size for _, size, *_ in found):
        check_dimension(query.dimension, others[0])


def _merge(targets: Sequence[Space], found: Sequence[Sequence[Any]]) -> _Nearest:
    candidates: list[Candidate] = []
    frontier = -2.0
    for space, (_, size, _, flat) in zip(targets, found, strict=True):
        # The server's score is (1 + cosine) / 2.
        mine = [Candidate(space, key, 2.0 * float(score) - 1.0) for key, score in rows(flat, 2)]
        candidates += mine
        if flat != b"" and len(mine) < size:
            frontier = max(frontier, min((each.score for each in mine), default=1.0))
    return _Nearest(candidates, frontier)
