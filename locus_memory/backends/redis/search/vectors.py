"""Vector search: over the vector sets of Redis 8, one per namespace and dimension, or exactly.

A server without vector sets keeps the vectors in hashes, whose vectors are all read and compared
here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from locus_memory.backends.redis.items.items import rows
from locus_memory.backends.redis.items.spaces import Space, Spaces
from locus_memory.backends.redis.lua import script
from locus_memory.backends.redis.search.hits import Candidate, Page, collect
from locus_memory.backends.selection import check_dimension
from locus_memory.store.item import SemanticSearchResult, StoreItem

__all__ = ["VectorQuery", "search_vectors"]

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
class VectorQuery:
    """The query of a vector search: a unit vector as float32 bytes, and a threshold."""

    vector: bytes
    threshold: float | None

    @property
    def dimension(self) -> int:
        """The length of the vector."""
        return len(self.vector) // 4

    @property
    def least(self) -> float:
        """The cosine above which a vector is a hit."""
        return -2.0 if self.threshold is None or self.threshold <= 0 else self.threshold

    def is_met(self, cosine: float) -> bool:
        """Return whether a vector with this cosine is near enough."""
        return self.threshold is None or max(0.0, cosine) >= self.threshold


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
    most = _FIRST
    while most < page.end:
        most *= _GROWTH
    while True:
        found = await _nearest(spaces, targets, query, min(most, _ALL))
        hits = await collect(spaces, _near(found, query), page)
        is_all = found.frontier <= query.least or most >= _ALL
        if len(hits) == page.limit or is_all:
            return [_result_of(candidate, item) for candidate, item in hits]
        most *= _GROWTH


def _near(found: _Nearest, query: VectorQuery) -> list[Candidate]:
    """Return the candidates that are near enough, and better than any missing vector."""
    return [
        each
        for each in found.candidates
        if each.score >= found.frontier and query.is_met(each.score)
    ]


async def _nearest(
    spaces: Spaces, targets: Sequence[Space], query: VectorQuery, most: int
) -> _Nearest:
    groups = spaces.groups(targets, _TOGETHER)
    while True:
        effort = max(_EFFORT, most)
        args = [spaces.now(), query.dimension, query.vector, most, effort, _EXACT]
        calls = [script("similar").call([s.base for s in group], args) for group in groups]
        answers = await spaces.run_each(calls, targets)
        found: list[Sequence[Any]] = [row for answer in answers for row in rows(answer, 4)]
        expired = [space for space, row in zip(targets, found, strict=True) if row[0]]
        if not expired or not await spaces.tidy(expired):
            _check_dimension(query, found)
            nearest = _merge(targets, found)
            in_hashes = [s for s, row in zip(targets, found, strict=True) if row[3] == b""]
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


def _result_of(candidate: Candidate, item: StoreItem) -> SemanticSearchResult:
    """Return a hit whose candidate's score is its cosine."""
    distance = min(max(1.0 - candidate.score, 0.0), 2.0)
    score = max(0.0, 1.0 - distance)
    return SemanticSearchResult(replace(item, score=score), score, distance)
