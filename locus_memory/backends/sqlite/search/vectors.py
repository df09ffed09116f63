"""Vector search: float32 rows in the file, one matrix per namespace or codes in memory.

The module loads numpy, so the store imports it at the first search. A vector never changes, since
every put takes a new revision: the newest id and the number of deletions tell whether a matrix is
up to date, and a refresh reads only new vectors.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from locus_memory.backends.products import products
from locus_memory.backends.selection import Page
from locus_memory.backends.sqlite import queries
from locus_memory.backends.sqlite.items import Scope, items_of_vectors
from locus_memory.backends.sqlite.search.code_cache import CodeCache, Codes, Name, Shelf
from locus_memory.backends.sqlite.search.coded import CodedSearch
from locus_memory.backends.sqlite.search.filters import compile_filter
from locus_memory.errors import BackendCorruptError, InvalidEmbeddingError
from locus_memory.store.filters import All, Condition
from locus_memory.store.item import SemanticSearchResult

__all__ = ["NearVector", "VectorCache", "VectorQuery", "find_vectors", "search_vectors"]

Ids = NDArray[np.int64]
Rows = NDArray[np.float32]
Floats = NDArray[np.float64]

_CHUNK: Final = 4096
# float32 arithmetic is more precise than this; hits this near to the last one are recomputed.
_MARGIN: Final = 1e-5
_DIGITS: Final = 12
_LENGTH_MARGIN: Final = 1e-3
_SMALL: Final = 2**20
"""Vectors that take no more bytes than that are cached as they are, if there is room at all."""

_MOST_BY_CODES: Final = 2_000
"""Pages beyond that are read from the file, all vectors of it."""

_COUNTS: Final = 4_096
"""The number of searches whose number of vectors is remembered."""


@dataclass(frozen=True, slots=True)
class VectorQuery:
    """The query of a vector search: a unit vector as float32 bytes, and the conditions."""

    vector: bytes
    threshold: float | None
    condition: Condition

    @property
    def dimension(self) -> int:
        """The length of the vector."""
        return len(self.vector) // 4


@dataclass(frozen=True, slots=True)
class _Matrix:
    """The ids of a shelf in ascending order, and their vectors, in buffers with room for more."""

    count: int
    id_buffer: Ids
    row_buffer: Rows

    @property
    def ids(self) -> Ids:
        return self.id_buffer[: self.count]

    @property
    def rows(self) -> Rows:
        return self.row_buffer[: self.count]

    @property
    def size(self) -> int:
        return self.id_buffer.nbytes + self.row_buffer.nbytes

    @classmethod
    def of(cls, ids: Ids, rows: Rows) -> _Matrix:
        return cls(len(ids), ids, rows)

    def extended(self, ids: Ids, rows: Rows) -> _Matrix:
        """Return a matrix with more rows, in the same buffers if they have room."""
        count = self.count + len(ids)
        id_buffer, row_buffer = self.id_buffer, self.row_buffer
        if count > len(id_buffer):
            room = count + self.count // 4
            id_buffer = np.empty(room, np.int64)
            row_buffer = np.empty((room, rows.shape[1]), np.float32)
            id_buffer[: self.count], row_buffer[: self.count] = self.ids, self.rows
        # Other users of this matrix read its own rows only.
        id_buffer[self.count : count], row_buffer[self.count : count] = ids, rows
        return _Matrix(count, id_buffer, row_buffer)


class NearVector(NamedTuple):
    """A vector that was found, by the revision of its item, and its cosine."""

    id: int
    cosine: float

    @property
    def score(self) -> float:
        """Its similarity, from 0 to 1."""
        return max(0.0, self.cosine)


class VectorCache:
    """A cache of the last matrices and codes, shared by the reader threads.

    Codes take at most three quarters of its capacity, and matrices what codes leave. A search whose
    vectors take more than a quarter uses codes.
    """

    def __init__(self, capacity: int) -> None:
        self._total = capacity
        self._exact = max(capacity // 4, min(capacity, _SMALL))
        self.codes = CodeCache(capacity * 3 // 4)
        """The codes."""
        self._counts: dict[Name, tuple[int, int]] = {}
        self._held: OrderedDict[tuple[int, int], tuple[Shelf, _Matrix]] = OrderedDict()
        self._lock = threading.Lock()
        self.size = 0
        """The size of the cache in bytes."""

    @property
    def _capacity(self) -> int:
        return max(self._exact, self._total - self.codes.size)

    def is_coded(
        self, connection: sqlite3.Connection, scope: Scope, shelves: Sequence[Shelf]
    ) -> bool:
        """Return whether a search has too many vectors for matrices, and not too many for codes."""
        dimension = shelves[0].dimension
        limit = self._exact // (4 * dimension + 8)
        name = scope.path, scope.recursive, dimension
        count, newest = self._counts.get(name, (0, 0))
        latest = max(shelf.newest for shelf in shelves)
        # Each vector since then has an id of its own.
        if count + max(0, latest - newest) <= limit:
            return False
        held = self.codes.holds(name)
        if held is None or held <= limit:
            # Cached codes may be older than the last writes.
            statement = queries.count_vectors(recursive=scope.recursive)
            values = {**scope.bound_values, "dimension": dimension}
            held = int(connection.execute(statement, values).fetchone()[0])
        if len(self._counts) >= _COUNTS:
            self._counts.clear()
        self._counts[name] = held, latest
        is_coded = limit < held and self.codes.fits(held, dimension)
        if not is_coded:
            self.codes.drop(name)
        return is_coded

    def find(self, connection: sqlite3.Connection, shelf: Shelf) -> _Matrix | None:
        """Return the vectors as this transaction sees them; `None`: too many to cache."""
        name = shelf.namespace, shelf.dimension
        with self._lock:
            known, matrix = self._held.get(name, (None, None))
            if known == shelf and matrix is not None:
                self._held.move_to_end(name)
                return matrix
            self._drop(name)
            return self._load(connection, shelf, known, matrix)

    def _load(
        self,
        connection: sqlite3.Connection,
        shelf: Shelf,
        known: Shelf | None,
        matrix: _Matrix | None,
    ) -> _Matrix | None:
        (count,) = connection.execute(
            queries.VECTOR_COUNT, (shelf.namespace, shelf.dimension)
        ).fetchone()
        if count * (shelf.dimension * 4 + 8) > self._capacity:
            return None
        if known is not None and matrix is not None:
            matrix = _refreshed(connection, shelf, known, matrix)
        if matrix is None or matrix.count != count:
            # Not cached, or this transaction still sees a vector that was deleted since.
            matrix = _read(connection, shelf)
        self._hold(shelf, matrix)
        return matrix

    def _hold(self, shelf: Shelf, matrix: _Matrix) -> None:
        if matrix.size > self._capacity:
            matrix = _Matrix.of(matrix.ids.copy(), matrix.rows.copy())
        self._held[shelf.namespace, shelf.dimension] = shelf, matrix
        self.size += matrix.size
        while self.size > self._capacity:
            self._drop(next(iter(self._held)))

    def _drop(self, name: tuple[int, int]) -> None:
        if name in self._held:
            self.size -= self._held.pop(name)[1].size


def _refreshed(
    connection: sqlite3.Connection, shelf: Shelf, known: Shelf, matrix: _Matrix
) -> _Matrix:
    """Return a matrix without the deleted vectors and with the new ones."""
    if shelf.deletes != known.deletes or shelf.newest < known.newest:
        found = connection.execute(queries.VECTOR_IDS, (shelf.namespace, shelf.dimension))
        kept = np.isin(matrix.ids, _ids(found), assume_unique=True)
        matrix = _Matrix.of(matrix.ids[kept], matrix.rows[kept])
    newest = int(matrix.ids[-1]) if matrix.count else 0
    for ids, rows in _chunks(connection, shelf, after=newest):
        matrix = matrix.extended(ids, rows)
    return matrix


def _read(connection: sqlite3.Connection, shelf: Shelf) -> _Matrix:
    chunks = list(_chunks(connection, shelf))
    return _Matrix.of(
        np.concatenate([ids for ids, _ in chunks]), np.concatenate([rows for _, rows in chunks])
    )


def _chunks(
    connection: sqlite3.Connection, shelf: Shelf, after: int = 0
) -> Iterator[tuple[Ids, Rows]]:
    """Yield ids and vectors from the file, in order of the ids."""
    cursor = connection.execute(queries.VECTORS_AFTER, (shelf.namespace, shelf.dimension, after))
    while found := cursor.fetchmany(_CHUNK):
        yield _decoded(found, shelf.dimension)


def _check_lengths(rows: Rows) -> None:
    """Raise unless all vectors have the length 1, as every written vector has.

    Raises:
        BackendCorruptError: A vector has another length.
    """
    with np.errstate(all="ignore"):
        lengths = np.einsum("ij,ij->i", rows, rows)
        is_whole = bool((np.abs(lengths - 1.0) < _LENGTH_MARGIN).all())
    if not is_whole:
        raise BackendCorruptError("sqlite: a stored vector is damaged")


def _ids(found: sqlite3.Cursor) -> Ids:
    return np.fromiter((row[0] for row in found), np.int64)


def search_vectors(
    connection: sqlite3.Connection,
    cache: VectorCache,
    scope: Scope,
    query: VectorQuery,
    page: Page,
) -> list[SemanticSearchResult]:
    """Return the items whose vectors are nearest to the query by cosine, the best first.

    Raises:
        InvalidEmbeddingError: All vectors in the scope have another dimension.
    """
    found = find_vectors(connection, cache, scope, query, page)
    items = items_of_vectors(connection, {vector.id: vector.score for vector in found})
    return [
        SemanticSearchResult(items[vector.id], vector.score, 1.0 - vector.cosine)
        for vector in found
    ]


def find_vectors(
    connection: sqlite3.Connection,
    cache: VectorCache,
    scope: Scope,
    query: VectorQuery,
    page: Page,
) -> list[NearVector]:
    """Return the vectors that are nearest to the query by cosine, the best first.

    The result is exact where the cache has room for the vectors themselves: float32 selects the
    candidates and float64 ranks them. Otherwise codes select them. Among equals, the newest write
    comes first.

    Raises:
        InvalidEmbeddingError: All vectors in the scope have another dimension.
    """
    shelves = _shelves(connection, scope, query)
    if not shelves:
        _refuse_dimension(connection, scope, query)
    wanted = page.offset + page.limit
    if not shelves or not wanted:
        return []
    if wanted <= _MOST_BY_CODES and cache.is_coded(connection, scope, shelves):
        name = scope.path, scope.recursive, query.dimension
        codes = cache.codes.find(connection, name, shelves)
        found = [_by_codes(connection, codes, scope, query, wanted)]
    else:
        candidate = _Candidates.of(connection, scope, query)
        found = [
            _best(*candidate.among(ids, rows), query.vector, wanted)
            for shelf in shelves
            for ids, rows in _blocks(connection, cache, shelf)
        ]
    ids = np.concatenate([each for each, _ in found])
    cosines = np.concatenate([each for _, each in found])
    if query.threshold is not None:
        near = np.maximum(cosines, 0.0) >= query.threshold
        ids, cosines = ids[near], cosines[near]
    order = np.lexsort((-ids, -cosines))[page.offset : wanted]
    return list(map(NearVector, ids[order].tolist(), cosines[order].tolist()))


def _by_codes(
    connection: sqlite3.Connection, codes: Codes, scope: Scope, query: VectorQuery, wanted: int
) -> tuple[Ids, Floats]:
    """Return the ids of the vectors whose codes are nearest to the query, and their cosines."""
    expired = _ids(
        connection.execute(queries.vector_expired(recursive=scope.recursive), _values(scope, query))
    )

    def exact(wanted_ids: list[int], most: int) -> tuple[Ids, Floats]:
        return _best(*_vectors(connection, wanted_ids, query.dimension), query.vector, most)

    search = CodedSearch(connection, codes, query.vector, query.condition, expired, wanted)
    return search.best(exact)


def _vectors(connection: sqlite3.Connection, ids: list[int], dimension: int) -> tuple[Ids, Rows]:
    """Return those of the vectors that the transaction sees."""
    # In the order of the file.
    found = connection.execute(queries.VECTORS, (json.dumps(sorted(ids)),)).fetchall()
    return _decoded(found, dimension)


def _decoded(found: Sequence[tuple[int, Any]], dimension: int) -> tuple[Ids, Rows]:
    """Return the ids and vectors of rows.

    Raises:
        BackendCorruptError: A vector is damaged.
    """
    try:
        joined = b"".join(blob for _, blob in found)
        rows = np.frombuffer(joined, "<f4").reshape(len(found), dimension)
    except (TypeError, ValueError) as error:
        raise BackendCorruptError("sqlite: a stored vector is damaged") from error
    _check_lengths(rows)
    return np.array([each for each, _ in found], np.int64), rows.astype(np.float32, copy=False)


def _refuse_dimension(connection: sqlite3.Connection, scope: Scope, query: VectorQuery) -> None:
    statement = queries.vector_dimension(recursive=scope.recursive)
    other = connection.execute(statement, scope.bound_values).fetchone()
    if other is not None:
        raise InvalidEmbeddingError(
            f"the query has {query.dimension} dimensions, the stored embeddings have {other[0]}"
        )


def _values(scope: Scope, query: VectorQuery) -> dict[str, object]:
    return {**scope.bound_values, "dimension": query.dimension}


def _shelves(connection: sqlite3.Connection, scope: Scope, query: VectorQuery) -> list[Shelf]:
    statement = queries.vector_namespaces(recursive=scope.recursive)
    return [
        Shelf(namespace, query.dimension, deletes, newest)
        for namespace, deletes, newest in connection.execute(statement, _values(scope, query))
        if newest is not None
    ]


def _blocks(
    connection: sqlite3.Connection, cache: VectorCache, shelf: Shelf
) -> Iterator[tuple[Ids, Rows]]:
    matrix = cache.find(connection, shelf)
    if matrix is None:
        yield from _chunks(connection, shelf)
    else:
        yield matrix.ids, matrix.rows


@dataclass(frozen=True, slots=True)
class _Candidates:
    """The ids that may be hits: those listed, or all but those listed."""

    listed: Ids
    allowed: bool

    @classmethod
    def of(cls, connection: sqlite3.Connection, scope: Scope, query: VectorQuery) -> _Candidates:
        """Select the ids that satisfy the filter or, without one, the expired ones."""
        values = _values(scope, query)
        if query.condition == All(()):
            statement = queries.vector_expired(recursive=scope.recursive)
        else:
            where, bound = compile_filter(query.condition, metadata="i.metadata", value="i.value")
            statement = queries.vector_candidates(where, recursive=scope.recursive)
            values |= bound
        listed = _ids(connection.execute(statement, values))
        return cls(listed, allowed=query.condition != All(()))

    def among(self, ids: Ids, rows: Rows) -> tuple[Ids, Rows]:
        """Return the ids and vectors that may be hits."""
        if not self.allowed and not len(self.listed):
            return ids, rows
        kept = np.isin(ids, self.listed, assume_unique=True, invert=not self.allowed)
        return ids[kept], rows[kept]


def _best(ids: Ids, rows: Rows, vector: bytes, wanted: int) -> tuple[Ids, Floats]:
    """Return the ids that can be among the `wanted` best, and their cosines."""
    query = np.frombuffer(vector, "<f4")
    if 0 < wanted < len(ids):
        scores = products(rows, query)
        last = np.partition(scores, len(ids) - wanted)[len(ids) - wanted]
        near = np.flatnonzero(scores >= last - _MARGIN)
        ids, rows = ids[near], rows[near]
    exact, target = rows.astype(np.float64), query.astype(np.float64)
    # Summed row by row, equal vectors get equal cosines at any position.
    lengths = np.sqrt((exact * exact).sum(axis=1) * (target * target).sum())
    return ids, np.round((exact * target).sum(axis=1) / lengths, _DIGITS)
