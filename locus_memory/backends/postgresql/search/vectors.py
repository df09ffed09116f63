"""Vector search: exact for few vectors, else by an HNSW index of pgvector; see `indexes`.

The index covers the whole table, without filters or namespaces: it returns one
vector after the other until there are enough hits. If hits are rare, this takes long and misses
some, so it stops early, and each vector in the scope is compared instead: no filter and no
neighbouring namespace ever costs a hit. A large namespace gets an index of its own then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from locus_memory._internal.recent import RecentlyUsed
from locus_memory.backends.postgresql.connection.connection import (
    Connection,
    PostgreSQLPool,
    Record,
)
from locus_memory.backends.postgresql.items.items import item_of
from locus_memory.backends.postgresql.items.naming import scope_of
from locus_memory.backends.postgresql.items.ranges import Scope
from locus_memory.backends.postgresql.search import vector_queries as queries
from locus_memory.backends.postgresql.search.filters import Arguments
from locus_memory.backends.postgresql.search.indexes import OwnIndex, VectorIndexes
from locus_memory.backends.selection import Page, VectorQuery, by_distance, check_dimension
from locus_memory.errors import InvalidEmbeddingError
from locus_memory.store.item import SemanticSearchResult

__all__ = ["VectorSearch", "vector_text"]

# https://github.com/pgvector/pgvector: the longest vector.
_MOST_DIMENSIONS: Final = 16_000

_BREADTH: Final = "200"
"""The size of the candidate list of the index, `hnsw.ef_search`."""

_FIRST: Final = 100
"""The number of hits requested from the index, for any page: so each page continues the last. With
40, filtered searches of 10,000 vectors among 100,000 had a recall@10 of 0.88: where hits are rare,
the index misses some, and fewer would have been enough to believe it."""

_MOST_SCANNED: Final = "2000"
"""The most vectors that the index may return for them, `hnsw.max_scan_tuples`. If fewer than one in
20 is a hit, it misses some, and takes longer than a comparison of all vectors in the scope."""

_COMPARED: Final = 3
"""Times `exact_below`: a comparison of fewer vectors takes about as long as the index does."""

_OWN: Final = 1.5
"""Times `exact_below`: from this number of vectors on, a namespace may need an index of its own."""

_USES: Final = 256
"""How many searches of a namespace reuse the result of a check of its size, or skip the index."""

_REMEMBERED: Final = 1_024
"""The number of cached namespaces."""


def vector_text(embedding: bytes) -> str:
    """Return the result of `check_embedding` as the text of a `vector`.

    Raises:
        InvalidEmbeddingError: It is longer than pgvector allows.
    """
    import numpy as np  # noqa: PLC0415 - the import of the store must not load numpy

    vector = np.frombuffer(embedding, "<f4").astype(np.float32)
    if len(vector) > _MOST_DIMENSIONS:
        raise InvalidEmbeddingError(
            f"the embedding has {len(vector)} dimensions, pgvector holds {_MOST_DIMENSIONS:,}"
        )
    return orjson.dumps(vector, option=orjson.OPT_SERIALIZE_NUMPY).decode()


@dataclass(frozen=True, slots=True)
class _Index:
    """An index to use.

    Attributes:
        kind: The type of the vectors in it.
        own: The namespace that it belongs to, or `None` for all.
    """

    kind: str
    own: OwnIndex | None


def _parts(
    scope: Scope, query: VectorQuery, own: OwnIndex | None = None
) -> tuple[Arguments, str, str, str]:
    """Return the common parts of both kinds of search.

    These are the parameters, the conditions on the vectors `v` and on their items `i`, and the
    parameter of the query.
    """
    arguments = Arguments()
    # The planner uses an index of one namespace only for a constant.
    here = f"v.scope = '{own.scope}'" if own else scope.condition("v", arguments)
    live = scope.live(arguments)
    vector = arguments.bind(vector_text(query.vector), "text")
    return arguments, here, f"{live} AND {arguments.compile(query.condition)}", vector


class VectorSearch:
    """A search of the vectors of one store, which also has their indexes built.

    Args:
        pool: The database.
        indexed: Whether there are indexes.
        exact_below: With fewer vectors than this in the scope, all are compared.
        most_own: How many namespaces may have an index of their own.
    """

    def __init__(
        self, pool: PostgreSQLPool, *, indexed: bool, exact_below: int, most_own: int
    ) -> None:
        self._pool = pool
        self._own_from = max(1, int(_OWN * exact_below))
        self._indexes = VectorIndexes(
            pool, wanted=indexed, most_own=most_own, least_own=self._own_from
        )
        self._exact_below = exact_below
        self._sizes: RecentlyUsed[tuple[int, int]] = RecentlyUsed(_REMEMBERED)
        self._skipped: RecentlyUsed[int] = RecentlyUsed(_REMEMBERED)

    async def make_indexes(self) -> None:
        """Build the indexes that the search of a single namespace would use, and wait for them."""
        rows = await self._pool.fetch(queries.LARGE_DIMENSIONS, max(1, self._exact_below))
        await self._indexes.build([row["dimension"] for row in rows])
        if rows:
            await self._indexes.build_own()

    async def close(self) -> None:
        """End the builds that are running."""
        await self._indexes.close()

    async def find(
        self, scope: Scope, query: VectorQuery, page: Page
    ) -> list[SemanticSearchResult]:
        """Return the items whose vectors are nearest to the query by cosine, the best first.

        Raises:
            InvalidEmbeddingError: All vectors in the scope have another dimension.
        """
        rows = await self._nearest(scope, query, page) if page.limit else []
        if not rows:
            await self._refuse_dimension(scope, query)
        # The first hits after the index's own may be nearer than its last ones.
        rows = sorted(rows, key=lambda row: row["distance"])
        return [by_distance(item_of(row), row["distance"]) for row in rows]

    async def _refuse_dimension(self, scope: Scope, query: VectorQuery) -> None:
        arguments = Arguments()
        here, live = scope.condition("v", arguments), scope.live(arguments)
        statement = queries.other_dimension(here, live, query.dimension)
        other = await self._pool.fetchval(statement, *arguments.values)
        check_dimension(query.dimension, other)

    async def _nearest(self, scope: Scope, query: VectorQuery, page: Page) -> list[Record]:
        index = await self._index(scope, query, page)
        if index is None or self._is_skipped(scope, query, index):
            return await self._compare_all(scope, query, page, ())
        first = await self._ask_index(scope, query, page, index)
        if len(first) < _FIRST:
            await self._skip(scope, query, index)
            return await self._compare_all(scope, query, page, ())
        if page.offset + page.limit <= _FIRST:
            return first[page.offset : page.offset + page.limit]
        return await self._compare_all(scope, query, page, first)

    async def _index(self, scope: Scope, query: VectorQuery, page: Page) -> _Index | None:
        """Return the index to use; `None`: all vectors are compared."""
        if page.limit > _FIRST or not self._indexes.may_exist(query.dimension):
            return None
        if await self._size(scope, query) < self._exact_below:
            return None
        kind = await self._indexes.kind(query.dimension)
        own = _own(scope, query)
        if own is not None and self._indexes.has_own(own):
            return _Index(queries.OWN_KIND, own)
        return None if kind is None else _Index(kind, None)

    async def _size(self, scope: Scope, query: VectorQuery) -> int:
        """Return the number of vectors in the scope, counted as far as it matters."""
        name = _name(scope, query)
        size, uses = self._sizes.get(name) or (0, 0)
        if uses == 0:
            arguments = Arguments()
            statement = queries.count_vectors(
                scope.condition("v", arguments),
                query.dimension,
                arguments.bind(_COMPARED * self._exact_below, "bigint"),
            )
            size, uses = await self._pool.fetchval(statement, *arguments.values), _USES
        self._sizes.put(name, (size, uses - 1))
        return size

    def _is_skipped(self, scope: Scope, query: VectorQuery, index: _Index) -> bool:
        """Return whether the index found too little for this scope and filter before."""
        name = _searched(scope, query, index)
        uses = self._skipped.get(name)
        if uses:
            self._skipped.put(name, uses - 1)
        return bool(uses)

    async def _skip(self, scope: Scope, query: VectorQuery, index: _Index) -> None:
        """Have an index of the namespace made after an index found too little.

        Unless the scope is too large, its next searches compare all vectors at once.
        """
        size, own = await self._size(scope, query), _own(scope, query)
        if size < _COMPARED * self._exact_below:
            self._skipped.put(_searched(scope, query, index), _USES)
        if index.own is None and own is not None and size >= self._own_from:
            await self._indexes.make_own(own)

    async def _compare_all(
        self, scope: Scope, query: VectorQuery, page: Page, first: Sequence[Record]
    ) -> list[Record]:
        """Return a page of the hits; those that the index found come first."""
        arguments, here, live, vector = _parts(scope, query)
        limit, offset = arguments.bind(page.limit, "bigint"), arguments.bind(page.offset, "bigint")
        names = arguments.bind(tuple(row["name"] for row in first), "text[]") if first else ""
        template = queries.nearest_exactly(
            here,
            live,
            query.dimension,
            query=vector,
            first=names,
            limit=limit,
            offset=offset,
        )
        return await self._pool.fetch(template, *arguments.values)

    async def _ask_index(
        self, scope: Scope, query: VectorQuery, page: Page, index: _Index
    ) -> list[Record]:
        """Return the first hits; those not on the page are without their items."""
        arguments, here, live, vector = _parts(scope, query, index.own)
        start = arguments.bind(page.offset, "bigint")
        end = arguments.bind(page.offset + page.limit, "bigint")
        template = queries.nearest_by_index(
            here,
            live,
            query.dimension,
            kind=index.kind,
            query=vector,
            most=_FIRST,
            page=f"hit.place > {start} AND hit.place <= {end}",
        )

        async def ask(connection: Connection) -> list[Record]:
            await connection.execute(queries.SETTINGS, _BREADTH, _MOST_SCANNED)
            rows: list[Record] = await connection.fetch(self._pool.sql(template), *arguments.values)
            return rows

        return await self._pool.transact(ask)


def _name(scope: Scope, query: VectorQuery) -> str:
    """Return the key of a cache."""
    return f"{query.dimension} {scope.recursive} {scope.path}"


def _own(scope: Scope, query: VectorQuery) -> OwnIndex | None:
    """Return the index that the namespace of a search may have; a tree of them has none."""
    return None if scope.recursive else OwnIndex(scope_of(scope.path), query.dimension)


def _searched(scope: Scope, query: VectorQuery, index: _Index) -> str:
    """Return the key of a cache for searches by an index."""
    return f"{_name(scope, query)} {index.own is None} {query.condition}"
