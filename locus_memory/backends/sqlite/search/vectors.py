"""Vector search: float32 rows in the file, and the vectors of a search or their codes in memory.

The module loads numpy, so the store imports it at the first search. A vector never changes, since
every put takes a new revision, and its id is that revision: a refresh reads only new vectors.
Vectors that are deleted stay in memory for a while. Each hit is looked up in the file before it
counts, so these are never found.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from locus_memory._internal.recent import RecentlyUsed
from locus_memory.backends.products import products
from locus_memory.backends.selection import Page, VectorQuery, check_dimension
from locus_memory.backends.sqlite import queries
from locus_memory.backends.sqlite.items import OutdatedError, Scope, items_of_vectors
from locus_memory.backends.sqlite.search.codes import CodedQuery, CodeRows, Steps, code_bytes
from locus_memory.backends.sqlite.search.filters import compile_filter
from locus_memory.errors import BackendCorruptError
from locus_memory.store.filters import All
from locus_memory.store.item import SemanticSearchResult

__all__ = ["VectorCache", "find_vectors", "search_vectors"]

Ids = NDArray[np.int64]
Singles = NDArray[np.float32]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_CHUNK: Final = 4_096
_DIGITS: Final = 12
_LENGTH_MARGIN: Final = 1e-3
# float32 arithmetic is more precise than this.
_MARGIN: Final = 1e-5
_SMALL: Final = 2**20
"""Vectors that take no more bytes than that are cached as they are, if there is room at all."""

_MOST_BY_CODES: Final = 2_000
"""Pages beyond that are read from the file, all vectors of it."""

_OVERHEAD: Final = 1_000
"""The bytes of a search in the cache beside its rows, about."""

_WORN, _SPARE = 8, 64
"""All is read again once one of so many rows is deleted, or so many and some more are new."""

_SAMPLE: Final = 1_024
"""A filter is evaluated for all rows if too few of so many of the best satisfy it."""

_FILTERED: Final = 10
"""So many times as many rows are estimated of a search with a filter, whose share is not known."""

_LOOKED_UP: Final = 65_536
"""For so many rows at a time a filter is evaluated."""

_MASKS: Final = 8
"""The number of filters whose result is cached, of each search."""


class _VectorRows:
    """Vectors of one dimension, with room for more; as `CodeRows`."""

    is_coded = False

    def __init__(self, room: int, dimension: int) -> None:
        self._rows: Singles = np.empty((room, dimension), np.float32)

    def set(self, place: slice, blobs: Sequence[Any]) -> None:
        self._rows[place] = _decoded(blobs, self._rows.shape[1])

    def query(self, vector: bytes, count: int) -> _Products:
        rows = self._rows[:count]
        return _Products(products(rows, np.frombuffer(vector, "<f4")), rows)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a search, in buffers with room for more, as transactions of a revision see them.

    Attributes:
        newest: The revision of the file.
        since: Its revision when all rows were read, or counted.
        count: How many rows there are.
        size: Their memory in bytes; no page of the room for more is used yet.
        buffer: Their ids, and others behind them.
        matrix: The vectors, or their codes.
        gone: Marks of rows that are found to be deleted.
        masks: For filters, which of the first rows satisfy them.
    """

    newest: int
    since: int
    count: int
    size: int
    buffer: Ids
    matrix: _VectorRows | CodeRows
    gone: Mask
    masks: OrderedDict[str, Mask]

    @property
    def ids(self) -> Ids:
        """The ids."""
        return self.buffer[: self.count]

    @property
    def is_worn(self) -> bool:
        """Whether so much was written since then that many of them may be deleted."""
        return self.newest - self.since > self.count // _WORN + _SPARE


def _size(count: int, row: int) -> int:
    """Return the memory of rows of so many bytes, each with an id and a mark."""
    return _OVERHEAD + count * (row + 8 + 1)


class VectorCache:
    """A cache of the vectors or codes of the last searches, shared by the reader threads.

    A search whose vectors take more than a quarter of its capacity uses codes, and one whose codes
    take more than three quarters reads the file.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._exact = max(capacity // 4, min(capacity, _SMALL))
        self._held: RecentlyUsed[_Rows] = RecentlyUsed(capacity, attrgetter("size"))
        self._lock = threading.Lock()

    def find(self, connection: sqlite3.Connection, scope: Scope, dimension: int) -> _Rows | None:
        """Return the rows of a search as this transaction sees them; `None`: too many to cache.

        Raises:
            OutdatedError: The cache is of a later transaction.
        """
        name = f"{dimension} {scope.recursive} {scope.path}"
        (newest,) = connection.execute(queries.NEWEST_REVISION).fetchone()
        with self._lock:
            rows = held = self._held.get(name)
            if held is not None:
                if held.newest > newest:
                    raise OutdatedError
                if held.newest < newest:
                    rows = _extended(connection, scope, dimension, held, newest)
                if rows is not None and rows.is_worn:
                    gone = rows.count - _count(connection, scope, dimension)
                    rows = None if gone * _WORN > rows.count else replace(rows, since=newest)
            if rows is None:
                rows = self._read(connection, scope, dimension, newest)
            if rows is None:
                self._held.discard(name)
            else:
                self._held.put(name, rows)
            return rows

    def _read(
        self, connection: sqlite3.Connection, scope: Scope, dimension: int, newest: int
    ) -> _Rows | None:
        count = _count(connection, scope, dimension)
        room = count + count // _WORN + _SPARE
        matrix: type[_VectorRows | CodeRows] = _VectorRows
        if _size(count, 4 * dimension) > self._exact:
            if _size(count, code_bytes(dimension)) > self._capacity * 3 // 4:
                return None
            matrix = CodeRows
        ids, gone = np.empty(room, np.int64), np.zeros(0, np.bool_)
        rows = _Rows(0, newest, 0, 0, ids, matrix(room, dimension), gone, OrderedDict())
        return _extended(connection, scope, dimension, rows, newest)


def _count(connection: sqlite3.Connection, scope: Scope, dimension: int) -> int:
    """Return the number of vectors of a scope."""
    statement = queries.count_vectors(recursive=scope.recursive)
    values = {**scope.bound_values, "dimension": dimension}
    return int(connection.execute(statement, values).fetchone()[0])


def _extended(
    connection: sqlite3.Connection, scope: Scope, dimension: int, rows: _Rows, newest: int
) -> _Rows | None:
    """Return the rows with those that were written later; `None`: there is no room."""
    start, is_coded = rows.count, rows.matrix.is_coded
    for ids, blobs in _chunks(connection, scope, dimension, rows.newest, is_coded=is_coded):
        place = slice(start, start := start + len(ids))
        if start > len(rows.buffer):
            return None
        # Other users of these buffers read their own rows only.
        rows.buffer[place] = ids
        rows.matrix.set(place, blobs)
    gone = np.zeros(start, np.bool_)
    gone[: rows.count] = rows.gone
    size = _size(start, code_bytes(dimension) if is_coded else 4 * dimension)
    masks = OrderedDict(rows.masks)
    return replace(rows, newest=newest, count=start, size=size, gone=gone, masks=masks)


def _chunks(
    connection: sqlite3.Connection, scope: Scope, dimension: int, after: int, *, is_coded: bool
) -> Iterator[tuple[Sequence[int], Sequence[Any]]]:
    """Yield ids, and vectors or codes, from the file."""
    statement = queries.rows_after(recursive=scope.recursive, is_coded=is_coded)
    values = {**scope.bound_values, "dimension": dimension, "after": after}
    cursor = connection.execute(statement, values)
    while found := cursor.fetchmany(_CHUNK):
        ids, blobs = zip(*found, strict=True)
        yield ids, blobs


def _decoded(blobs: Sequence[Any], dimension: int) -> Singles:
    """Return vectors; every written vector has the length 1.

    Raises:
        BackendCorruptError: A vector is damaged.
    """
    try:
        rows = np.frombuffer(b"".join(blobs), "<f4").reshape(len(blobs), dimension)
    except (TypeError, ValueError) as error:
        raise BackendCorruptError("sqlite: a stored vector is damaged") from error
    with np.errstate(all="ignore"):
        lengths = np.einsum("ij,ij->i", rows, rows)
        if not (np.abs(lengths - 1.0) < _LENGTH_MARGIN).all():
            raise BackendCorruptError("sqlite: a stored vector is damaged")
    return rows.astype(np.float32, copy=False)


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
        OutdatedError: The transaction is older than the cache.
    """
    found = find_vectors(connection, cache, scope, query, page)
    items = items_of_vectors(connection, {place: max(0.0, cosine) for place, cosine in found})
    return [
        SemanticSearchResult(items[place], max(0.0, cosine), 1.0 - cosine)
        for place, cosine in found
    ]


def find_vectors(
    connection: sqlite3.Connection,
    cache: VectorCache,
    scope: Scope,
    query: VectorQuery,
    page: Page,
) -> list[tuple[int, float]]:
    """Return the vectors that are nearest to the query by cosine, the best first.

    The result is exact unless codes select the candidates: float32 selects them otherwise, and
    float64 ranks them. Among equals, the newest write comes first.

    Raises:
        InvalidEmbeddingError: All vectors in the scope have another dimension.
        OutdatedError: The transaction is older than the cache.
    """
    wanted = page.offset + page.limit
    if not wanted:
        _refuse_dimension(connection, scope, query)
        return []
    near: _Products | CodedQuery
    rows = cache.find(connection, scope, query.dimension)
    if rows is None or (rows.matrix.is_coded and wanted > _MOST_BY_CODES):
        rows, near = _of_file(connection, scope, query)
    else:
        near = rows.matrix.query(query.vector, rows.count)
    ids, cosines = _Search(connection, query, scope.now, wanted, rows, near).best()
    if not len(ids):
        _refuse_dimension(connection, scope, query)
    order = np.lexsort((-ids, -cosines))[page.offset : wanted]
    return list(zip(ids[order].tolist(), cosines[order].tolist(), strict=True))


def _refuse_dimension(connection: sqlite3.Connection, scope: Scope, query: VectorQuery) -> None:
    statement = queries.other_dimension(recursive=scope.recursive)
    values = {**scope.bound_values, "dimension": query.dimension}
    (other,) = connection.execute(statement, values).fetchone() or (None,)
    check_dimension(query.dimension, other)


class _Products:
    """The products of rows with a query, in float32; as `CodedQuery`.

    Args:
        scores: The products.
        vectors: The rows; `None`: they are in the file.
    """

    def __init__(self, scores: Singles, vectors: Singles | None) -> None:
        self._scores = scores
        self.vectors = vectors
        self._growth = 4

    def nearest(self, hidden: Mask, wanted: int) -> tuple[Ids, Singles]:
        left = np.flatnonzero(~hidden)
        scores, most = self._scores[left], self._growth * (wanted + 16)
        self._growth *= 8
        if most < len(scores):
            chosen = np.flatnonzero(scores >= np.partition(scores, -most)[-most])
            left, scores = left[chosen], scores[chosen]
        order = np.argsort(-scores, kind="stable")
        return left[order], scores[order]

    def margin(self, cosine: float) -> float:
        del cosine
        return _MARGIN

    def steps(self, wanted: int) -> Steps:
        return Steps(wanted + 16, wanted + 64, wanted)


@dataclass(frozen=True, slots=True)
class _Search:
    """A search of the rows with the best estimates, until no other row can be better.

    Attributes:
        connection: The connection.
        query: The query.
        now: The moment.
        wanted: How many vectors are wanted.
        rows: The rows.
        near: The estimates of their cosines.
    """

    connection: sqlite3.Connection
    query: VectorQuery
    now: float
    wanted: int
    rows: _Rows
    near: _Products | CodedQuery

    def best(self) -> tuple[Ids, Floats]:
        """Return the ids and the cosines of the best, in no order, and of some more."""
        ids, found = np.empty(0, np.int64), np.empty(0, np.float64)
        hidden, last, examined, steps = self.rows.gone.copy(), -2.0, 0, self.near.steps(self.wanted)
        is_plain = self.query.condition == All(())
        if not is_plain and repr(self.query.condition) in self.rows.masks:
            hidden, is_plain = hidden | ~self._mask(), True
        while True:
            # Of a filter, nothing is known of the share of rows that satisfy it.
            of_all = self.wanted * (1 if is_plain else _FILTERED)
            places, estimates = self.near.nearest(hidden, of_all)
            if not len(places):
                return ids, found
            start, step = 0, steps.first if is_plain else steps.sample
            while start < len(places):
                if len(found) >= self.wanted and (
                    len(found) >= steps.most or estimates[start] < last - self.near.margin(last)
                ):
                    return ids, found
                part = places[start : start + step]
                start, examined, step = start + len(part), examined + len(part), 2 * step
                hidden[part] = True
                more = self._examined(part)
                ids, found = np.concatenate((ids, more[0])), np.concatenate((found, more[1]))
                if len(found) >= self.wanted:
                    last = float(np.partition(found, -self.wanted)[-self.wanted])
                if examined >= _SAMPLE and not is_plain and len(found) < steps.enough:
                    hidden, is_plain = hidden | ~self._mask(), True
                    break

    def _examined(self, places: Ids) -> tuple[Ids, Floats]:
        """Return the ids of the rows that are found, with their cosines."""
        ids, vectors = self.rows.ids[places], self.near.vectors
        where, values = self._filter(ids)
        statement = queries.vectors_of(where, "v.vector" if vectors is None else "1")
        found = dict(self.connection.execute(statement, values | {"now": self.now}).fetchall())
        self.rows.gone[places[[each not in found for each in ids.tolist()]]] = True
        hits = places[[found.get(each) is not None for each in ids.tolist()]]
        ids = self.rows.ids[hits]
        blobs = [found[each] for each in ids.tolist()]
        rows = _decoded(blobs, self.query.dimension) if vectors is None else vectors[hits]
        exact = rows.astype(np.float64)
        target = np.frombuffer(self.query.vector, "<f4").astype(np.float64)
        # Summed row by row, equal vectors get equal cosines at any position.
        lengths = np.sqrt((exact * exact).sum(axis=1) * (target * target).sum())
        return ids, np.round((exact * target).sum(axis=1) / lengths, _DIGITS)

    def _filter(self, ids: Ids) -> tuple[str, dict[str, Any]]:
        """Return the filter as SQL, and the values of a statement about these ids."""
        where, bound = compile_filter(self.query.condition, metadata="i.metadata", value="i.value")
        return where, bound | {"ids": json.dumps(ids.tolist())}

    def _mask(self) -> Mask:
        """Return which rows satisfy the filter, expired ones too; new rows are looked up."""
        name, masks = repr(self.query.condition), self.rows.masks
        mask = masks.get(name, np.zeros(0, np.bool_))
        for start in range(len(mask), self.rows.count, _LOOKED_UP):
            new = self.rows.ids[start : start + _LOOKED_UP]
            where, values = self._filter(new)
            found = self.connection.execute(queries.revisions_of(where), values).fetchall()
            mask = np.concatenate((mask, np.isin(new, np.array(found, np.int64))))
        masks[name] = mask
        while len(masks) > _MASKS:
            masks.popitem(last=False)
        return mask


def _of_file(
    connection: sqlite3.Connection, scope: Scope, query: VectorQuery
) -> tuple[_Rows, _Products]:
    """Return all rows of the file, none of which is cached, with their products."""
    target, every, scores = np.frombuffer(query.vector, "<f4"), list[int](), [np.empty(0, "<f4")]
    for ids, blobs in _chunks(connection, scope, query.dimension, 0, is_coded=False):
        every += ids
        scores.append(products(_decoded(blobs, query.dimension), target))
    count, none = len(every), _VectorRows(0, query.dimension)
    gone = np.zeros(count, np.bool_)
    rows = _Rows(0, 0, count, 0, np.array(every, np.int64), none, gone, OrderedDict())
    return rows, _Products(np.concatenate(scores), None)
