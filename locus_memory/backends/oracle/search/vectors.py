"""Vector search by cosine: exact, or by the index of all vectors."""

from __future__ import annotations

from array import array
from dataclasses import replace
from typing import Any, Final

from locus_memory.backends.oracle.connection.connection import OraclePool
from locus_memory.backends.oracle.connection.driver import Row
from locus_memory.backends.oracle.items import queries
from locus_memory.backends.oracle.items.queries import Arguments
from locus_memory.backends.oracle.items.ranges import Scope
from locus_memory.backends.oracle.search.filters import compile_filter
from locus_memory.backends.oracle.search.hits import Hits
from locus_memory.backends.selection import Page
from locus_memory.errors import InvalidEmbeddingError
from locus_memory.store.filters import Condition
from locus_memory.store.item import SemanticSearchResult, StoreItem

__all__ = ["search_vectors"]

_DIGITS: Final = 6
"""Decimals: the precision of a sum of float32 products."""

_BY_INDEX: Final = 100
"""Hits that are asked of an index; a longer page compares all vectors."""


async def search_vectors(  # noqa: PLR0917 - a search, with all that it depends on
    pool: OraclePool,
    scope: Scope,
    vector: bytes,
    condition: Condition,
    page: Page,
    threshold: float | None,
) -> list[SemanticSearchResult]:
    """Return the items whose vectors are nearest by cosine, the best first.

    Args:
        pool: The database.
        scope: The namespaces.
        vector: The vector to compare with, as `check_embedding` returns it.
        condition: A parsed filter.
        page: The wanted part of the hits.
        threshold: Only hits with at least this score.

    Raises:
        InvalidEmbeddingError: All vectors in the scope have another dimension.
    """
    hits: list[tuple[StoreItem, Any]] = []
    if pool.features.has_vector_index and page.offset + page.limit <= _BY_INDEX:
        hits = await _hits(pool, scope, vector, condition, page, approximate=True)
    if len(hits) < page.limit:
        # However few the index returns, no hit is missing.
        hits = await _hits(pool, scope, vector, condition, page, approximate=False)
    if not hits:
        await _refuse_dimension(pool, scope, len(vector) // 4)
    found = [_result(item, distance) for item, distance in hits]
    return [each for each in found if threshold is None or each.score >= threshold]


async def _hits(
    pool: OraclePool,
    scope: Scope,
    vector: bytes,
    condition: Condition,
    page: Page,
    *,
    approximate: bool,
) -> list[tuple[StoreItem, Any]]:
    async def query(offset: int, size: int) -> list[Row]:
        if approximate and offset:
            return []
        arguments = Arguments()
        conditions = (
            scope.condition(arguments),
            scope.live(arguments),
            f"({compile_filter(condition, arguments, native_json=pool.features.native_json)})",
        )
        statement = queries.nearest(
            " AND ".join(conditions),
            dimension=arguments.bind(len(vector) // 4),
            query=arguments.bind_new(array("f", vector)),
            offset="" if approximate else arguments.bind_new(offset),
            most=str(_BY_INDEX) if approximate else arguments.bind_new(size),
            approximate=approximate,
        )
        rows = await pool.fetch(statement, arguments.binds)
        return rows[:size] if approximate else rows

    if not approximate:
        return await Hits(scope, condition, query).page(page)
    first = await Hits(scope, condition, query).page(Page(page.offset + page.limit))
    return first[page.offset :]


async def _refuse_dimension(pool: OraclePool, scope: Scope, dimension: int) -> None:
    arguments = Arguments()
    conditions = f"{scope.condition(arguments)} AND {scope.live(arguments)}"
    statement = queries.other_dimension(conditions, arguments.bind(dimension))
    rows = await pool.fetch(statement, arguments.binds)
    if rows and rows[0][0] is not None:
        raise InvalidEmbeddingError(
            f"the query has {dimension} dimensions, the stored embeddings have {rows[0][0]}"
        )


def _result(item: StoreItem, distance: float) -> SemanticSearchResult:
    distance = min(2.0, max(0.0, round(float(distance), _DIGITS)))
    score = max(0.0, 1.0 - distance)
    return SemanticSearchResult(item=replace(item, score=score), score=score, distance=distance)
