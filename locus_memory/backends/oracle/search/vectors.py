"""Vector search by cosine: exact, or by the index of all vectors."""

from __future__ import annotations

from array import array
from typing import Any, Final

from locus_memory.backends.oracle.connection.connection import OraclePool
from locus_memory.backends.oracle.connection.driver import Row
from locus_memory.backends.oracle.items import queries
from locus_memory.backends.oracle.items.queries import Arguments
from locus_memory.backends.oracle.items.ranges import Scope
from locus_memory.backends.oracle.search.hits import hits_of, selected
from locus_memory.backends.selection import Page, VectorQuery, by_distance, check_dimension
from locus_memory.store.item import SemanticSearchResult, StoreItem

__all__ = ["search_vectors"]

"""Decimals: the precision of a sum of float32 products."""

_BY_INDEX: Final = 100
"""Hits that are asked of an index; a longer page compares all vectors."""


async def search_vectors(
    pool: OraclePool, scope: Scope, query: VectorQuery, page: Page
) -> list[SemanticSearchResult]:
    """Return the items whose vectors are nearest to the query, the best first.

    Raises:
        InvalidEmbeddingError: No vector of the scope has the dimension of the query.
    """
    hits: list[tuple[StoreItem, Any]] = []
    if pool.features.has_vector_index and page.offset + page.limit <= _BY_INDEX:
        hits = await _hits(pool, scope, query, page, approximate=True)
    if len(hits) < page.limit:
        # However few the index returns, no hit is missing.
        hits = await _hits(pool, scope, query, page, approximate=False)
    if not hits:
        await _refuse_dimension(pool, scope, query.dimension)
    return [by_distance(*each) for each in hits]


async def _hits(
    pool: OraclePool, scope: Scope, query: VectorQuery, page: Page, *, approximate: bool
) -> list[tuple[StoreItem, Any]]:
    async def fetch(offset: int, size: int) -> list[Row]:
        if approximate and offset:
            return []
        arguments = Arguments()
        statement = queries.nearest(
            selected(pool, scope, query.condition, arguments),
            dimension=arguments.bind(query.dimension),
            query=arguments.bind_new(array("f", query.vector)),
            offset="" if approximate else arguments.bind_new(offset),
            most=str(_BY_INDEX) if approximate else arguments.bind_new(size),
            approximate=approximate,
        )
        rows = await pool.fetch(statement, arguments.binds)
        return rows[:size] if approximate else rows

    if not approximate:
        return await hits_of(scope, query.condition, fetch, page)
    first = await hits_of(scope, query.condition, fetch, Page(page.offset + page.limit))
    return first[page.offset :]


async def _refuse_dimension(pool: OraclePool, scope: Scope, dimension: int) -> None:
    arguments = Arguments()
    conditions = f"{scope.condition(arguments)} AND {scope.live(arguments)}"
    statement = queries.other_dimension(conditions, arguments.bind(dimension))
    rows = await pool.fetch(statement, arguments.binds)
    check_dimension(dimension, rows[0][0] if rows else None)
