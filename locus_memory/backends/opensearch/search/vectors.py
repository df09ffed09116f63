"""Vector search: exact for few vectors, else by the k-NN index of Lucene.

Vectors of each length have a field of their own, which is added to the index at the first such
vector. The k-NN index looks for hits among the items in the scope only, so that neither a filter
nor a neighbouring namespace costs a hit. Where it returns too few, all vectors are compared.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from locus_memory._internal.recent import RecentlyUsed
from locus_memory.backends.opensearch.connection.connection import OpenSearchConnection
from locus_memory.backends.opensearch.items.documents import item_of
from locus_memory.backends.opensearch.items.mapping import ITEMS, vector_field, vector_mapping
from locus_memory.backends.opensearch.items.paging import Hit, Search, find, search
from locus_memory.backends.opensearch.items.scopes import Query, Scope
from locus_memory.backends.opensearch.search.texts import BEST
from locus_memory.backends.selection import Page, VectorQuery, by_distance, check_dimension
from locus_memory.store.item import SemanticSearchResult, embedding_numbers

__all__ = ["VectorSearch"]

_FIRST: Final = 100
"""The number of hits requested from the index, for any page: so each page continues the last."""

_USES: Final = 256
"""How many searches of a namespace reuse the result of a check of its size."""

_REMEMBERED: Final = 1_024
"""The number of cached namespaces."""


class VectorSearch:
    """A search of the vectors of one store, which also adds their fields to the index.

    Args:
        connection: The connection.
        exact_below: With fewer vectors than this in the scope, all are compared.
    """

    def __init__(self, connection: OpenSearchConnection, *, exact_below: int) -> None:
        self._connection = connection
        self._exact_below = exact_below
        self._large: RecentlyUsed[tuple[bool, int]] = RecentlyUsed(_REMEMBERED)

    async def make_fields(self, dimensions: Collection[int]) -> None:
        """Add the fields of vectors of these lengths to the index, unless they are there."""
        for dimension in sorted(dimensions):
            if not await self._is_known(dimension):
                mapping = vector_mapping(dimension)
                await self._connection.on(ITEMS, "_mapping", mapping, method="PUT")
                self._connection.dimensions(ITEMS).add(dimension)

    async def _is_known(self, dimension: int) -> bool:
        """Return whether the index has the field of vectors of this length."""
        if dimension not in self._connection.dimensions(ITEMS):
            path = f"_mapping/field/{vector_field(dimension)}"
            answer = await self._connection.on(ITEMS, path, method="GET")
            if all(index["mappings"] for index in answer.values()):
                self._connection.dimensions(ITEMS).add(dimension)
        return dimension in self._connection.dimensions(ITEMS)

    async def find(
        self, scope: Scope, query: VectorQuery, page: Page
    ) -> list[SemanticSearchResult]:
        """Return the items whose vectors are nearest to the query by cosine, the best first.

        Raises:
            InvalidEmbeddingError: All vectors in the scope have another dimension.
        """
        hits: list[SemanticSearchResult] = []
        if page.limit and await self._is_known(query.dimension):
            hits = await self._nearest(scope, query, page)
        if not hits:
            await self._refuse_dimension(scope, query)
        # Scores of both kinds of search may differ in the last digit.
        hits.sort(key=lambda hit: hit.distance)
        return hits

    async def _refuse_dimension(self, scope: Scope, query: VectorQuery) -> None:
        having: Query = scope.where({"exists": {"field": "dimension"}})
        # One of this length comes first, if there is one.
        having["bool"]["should"] = [_of_length(query.dimension)]
        body = {"query": having, "size": 1, "track_total_hits": False, "_source": ["dimension"]}
        found = (await search(self._connection, body, scope.routing))["hits"]["hits"]
        other = found[0]["_source"]["dimension"] if found else query.dimension
        check_dimension(query.dimension, other)

    async def _nearest(
        self, scope: Scope, query: VectorQuery, page: Page
    ) -> list[SemanticSearchResult]:
        if page.limit > _FIRST or not await self._is_large(scope, query):
            return await self._compare_all(scope, query, page, ())
        first = await self._ask_index(scope, query)
        if len(first) < _FIRST:
            return await self._compare_all(scope, query, page, ())
        end = page.offset + page.limit
        hits = [_hit(hit) for hit in first[page.offset : end]]
        if end > _FIRST:
            rest = Page(page.limit - len(hits), max(0, page.offset - _FIRST))
            hits += await self._compare_all(scope, query, rest, first)
        return hits

    async def _is_large(self, scope: Scope, query: VectorQuery) -> bool:
        name = f"{query.dimension} {scope.recursive} {scope.path}"
        large, uses = self._large.get(name) or (False, 0)
        if uses == 0:
            body = {
                "query": {"bool": {"filter": [scope.place, _of_length(query.dimension)]}},
                "size": 0,
                "track_total_hits": max(1, self._exact_below),
            }
            answer = await search(self._connection, body, scope.routing)
            large = answer["hits"]["total"]["value"] >= self._exact_below
            uses = _USES
        self._large.put(name, (large, uses - 1))
        return large

    async def _compare_all(
        self, scope: Scope, query: VectorQuery, page: Page, known: Sequence[Hit]
    ) -> list[SemanticSearchResult]:
        """Return a page of the hits of an exact search, without those that are known."""
        selected = scope.having(query.condition, _of_length(query.dimension))
        if known:
            selected["bool"]["must_not"].append({"ids": {"values": [hit["_id"] for hit in known]}})
        params = {
            "field": vector_field(query.dimension),
            "query_value": embedding_numbers(query.vector),
            "space_type": "cosinesimil",
        }
        script = {"lang": "knn", "source": "knn_score", "params": params}
        compared = {"script_score": {"query": selected, "script": script}}
        wanted = Search(compared, scope.order(BEST), scope.routing, query.condition)
        hits = await find(self._connection, wanted, page)
        return [_hit(hit) for hit in hits]

    async def _ask_index(self, scope: Scope, query: VectorQuery) -> list[Hit]:
        """Return the first hits; fewer than `_FIRST`: ask no index."""
        selected = scope.having(query.condition)
        near = {"vector": embedding_numbers(query.vector), "k": _FIRST, "filter": selected}
        nearest = {"knn": {vector_field(query.dimension): near}}
        wanted = Search(nearest, scope.order(BEST), scope.routing, query.condition)
        return await find(self._connection, wanted, Page(_FIRST))


def _of_length(dimension: int) -> Query:
    return {"term": {"dimension": dimension}}


def _hit(hit: Hit) -> SemanticSearchResult:
    # Both searches return (1 + cosine) / 2, as no score of the server is negative.
    return by_distance(item_of(hit["_source"]), 2 - 2 * hit["sort"][0])
