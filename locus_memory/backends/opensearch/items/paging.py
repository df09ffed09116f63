"""Pages of a search: any number of hits, from any offset, each checked by a filter if need be.

A search returns at most 10,000 hits. A longer page takes several, over the items of one moment (a
"point in time"), each from the last hit of the one before.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from locus_memory.backends.opensearch.connection.connection import OpenSearchConnection
from locus_memory.backends.opensearch.items.mapping import ITEMS
from locus_memory.backends.opensearch.items.scopes import Query
from locus_memory.backends.selection import Page, is_everything
from locus_memory.errors import BackendError, BackendUnavailableError
from locus_memory.store.filters import All, Condition, matches
from locus_memory.store.json_values import decode_json

__all__ = ["Hit", "Search", "count_each", "find", "search"]

_LONGEST: Final = 1_000
"""The most hits of one request whose items are returned."""

_WINDOW: Final = 10_000
"""The most hits of one request, `index.max_result_window`."""

_BYTES: Final = 8_000_000
"""About the most bytes of values that one request returns, once their size is known."""

_KEPT: Final = "5m"
"""How long the server keeps a point in time between two requests."""

Hit = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Search:
    """A search and the order of its hits.

    Attributes:
        query: The query.
        sort: The fields of the order; no two hits are equal in all of them.
        routing: The routing of its namespace, or `None`.
        condition: The filter that each hit must satisfy.
        prefix: The beginning of the key of each hit; the order is by key then.
        after: The values of `sort` before the first hit, or `None`.
        has_items: Whether the hits have their documents.
    """

    query: Query
    sort: Sequence[dict[str, str]]
    routing: str | None
    condition: Condition = field(default_factory=lambda: All(()))
    prefix: str = ""
    after: Sequence[Any] | None = None
    has_items: bool = True

    @property
    def is_exact(self) -> bool:
        """Whether the query finds nothing but hits."""
        return not self.prefix and is_everything(self.condition)

    def body(
        self, size: int, after: Sequence[Any] | None, *, has_items: bool = True
    ) -> dict[str, Any]:
        """Return the request for some hits, from a place in the order on."""
        return {
            "query": self.query,
            "sort": self.sort,
            "size": size,
            "track_total_hits": False,
            "_source": has_items and self.has_items,
            **({} if after is None else {"search_after": after}),
        }

    def accepts(self, hit: Hit) -> bool:
        """Whether a document that the query found is a hit."""
        if self.prefix and not hit["sort"][0].startswith(self.prefix):
            return False
        if is_everything(self.condition):
            return True
        source = hit["_source"]
        value, metadata = decode_json(source["value"]), decode_json(source["metadata"])
        return matches(self.condition, value, metadata)


async def search(
    connection: OpenSearchConnection,
    body: dict[str, Any],
    routing: str | None = None,
    pit: str | None = None,
) -> dict[str, Any]:
    """Return the answer to one search request, of all shards.

    Args:
        connection: The connection.
        body: The request.
        routing: The routing of its namespace, or `None`.
        pit: The point in time whose items are searched; `None`: those of now.

    Raises:
        BackendUnavailableError: A shard did not answer, or not in time.
    """
    if pit is None:
        answer = await connection.on(ITEMS, "_search", body, params=_target(routing))
    else:
        params = {"allow_partial_search_results": "false"}
        body = {**body, "pit": {"id": pit, "keep_alive": _KEPT}}
        answer = await connection.request("POST", "/_search", body, params=params, again=True)
    return _whole(connection, answer)


async def count_each(
    connection: OpenSearchConnection, queries: Iterable[Query], routing: str | None
) -> list[int]:
    """Return the number of hits of each query, in one request.

    Raises:
        BackendUnavailableError: As for `search`.
    """
    head = orjson.dumps(_target(routing))
    lines: list[bytes] = []
    for query in queries:
        body = {"query": query, "size": 0, "track_total_hits": True}
        lines += head, orjson.dumps(body)
    sent = b"".join(line + b"\n" for line in lines)
    answer = await connection.on(ITEMS, "_msearch", sent)
    counts: list[int] = []
    for each in answer["responses"]:
        if error := connection.refusal(each):
            raise error
        counts.append(_whole(connection, each)["hits"]["total"]["value"])
    return counts


def _target(routing: str | None) -> dict[str, str]:
    # All pages are read from the same copy of a shard: copies may differ in their ranking.
    target = {"allow_partial_search_results": "false", "preference": f"items{routing}"}
    return target if routing is None else {**target, "routing": routing}


def _whole(connection: OpenSearchConnection, answer: dict[str, Any]) -> dict[str, Any]:
    if answer["timed_out"] or answer["_shards"]["failed"]:
        raise BackendUnavailableError(f"opensearch {connection.place}: not every shard answered")
    return answer


async def find(connection: OpenSearchConnection, wanted: Search, page: Page) -> list[Hit]:
    """Return a page of the hits of a search.

    Raises:
        BackendError: See `search`.
    """
    if not page.limit:
        return []
    if page.end > _LONGEST:
        async with _moment(connection, wanted.routing) as pit:
            return await _read(connection, wanted, page, pit)
    if not wanted.is_exact:
        return await _read(connection, wanted, page)
    # One request does it all.
    body = {**wanted.body(page.limit, wanted.after), "from": page.offset}
    hits: list[Hit] = (await search(connection, body, wanted.routing))["hits"]["hits"]
    return hits


async def _read(
    connection: OpenSearchConnection, wanted: Search, page: Page, pit: str | None = None
) -> list[Hit]:
    """Read from the last hit on, until the page is full or nothing is left."""
    found: list[Hit] = []
    skipped, size, after = 0, _LONGEST, wanted.after
    while (missing := page.offset - skipped + page.limit - len(found)) > 0:
        is_skipping = wanted.is_exact and skipped < page.offset
        count = min(_WINDOW, page.offset - skipped) if is_skipping else min(size, missing)
        body = wanted.body(count, after, has_items=not is_skipping)
        hits = (await search(connection, body, wanted.routing, pit))["hits"]["hits"]
        for hit in filter(wanted.accepts, hits):
            if skipped < page.offset:
                skipped += 1
            else:
                found.append(hit)
        if len(hits) < count:
            break
        after = hits[-1]["sort"]
        if wanted.has_items and not is_skipping:
            length = sum(len(hit["_source"]["value"]) for hit in hits)
            size = min(_WINDOW, max(10, _BYTES * len(hits) // (length + 1)))
    return found


@asynccontextmanager
async def _moment(connection: OpenSearchConnection, routing: str | None) -> AsyncGenerator[str]:
    params = {"keep_alive": _KEPT} | ({} if routing is None else {"routing": routing})
    pit: str = (await connection.on(ITEMS, "_search/point_in_time", params=params))["pit_id"]
    try:
        yield pit
    finally:
        # Or it ends by itself.
        with suppress(BackendError):
            body = {"pit_id": [pit]}
            await connection.request("DELETE", "/_search/point_in_time", body)
