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
from locus_memory.backends.opensearch.search.filters import is_everything
from locus_memory.backends.selection import Page
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
    connection: OpenSearchConnection, body: dict[str, Any], routing: str | None = None
) -> dict[str, Any]:
    """Return the answer to one search request, of all shards.

    Raises:
        BackendUnavailableError: A shard did not answer, or not in time.
    """
    params, path = {"allow_partial_search_results": "false"}, "/_search"
    if "pit" not in body:
        params, path = _target(routing), f"/{connection.index(ITEMS)}/_search"
    return _whole(
        connection, await connection.request("POST", path, body, params=params, again=True)
    )


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
    path = f"/{connection.index(ITEMS)}/_msearch"
    sent = b"".join(line + b"\n" for line in lines)
    answer = await connection.request("POST", path, sent, again=True)
    counts: list[int] = []
    for each in answer["responses"]:
        if "error" in each:
            raise connection.refusal(each)
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
    reading = _Reading(connection, wanted, page)
    if page.offset + page.limit <= _LONGEST:
        return await reading.run()
    async with _moment(connection, wanted.routing) as pit:
        return await reading.run(pit)


@asynccontextmanager
async def _moment(connection: OpenSearchConnection, routing: str | None) -> AsyncGenerator[str]:
    params = {"keep_alive": _KEPT} | ({} if routing is None else {"routing": routing})
    path = f"/{connection.index(ITEMS)}/_search/point_in_time"
    answer = await connection.request("POST", path, params=params, again=True)
    pit: str = answer["pit_id"]
    try:
        yield pit
    finally:
        # Or it ends by itself.
        with suppress(BackendError):
            body = {"pit_id": [pit]}
            await connection.request("DELETE", "/_search/point_in_time", body)


@dataclass(slots=True)
class _Reading:
    """The reading of one page.

    Attributes:
        connection: The connection.
        wanted: The search.
        page: The page.
        found: The hits of the page so far.
        skipped: The number of hits before the page so far.
        last: The last hit that was read, if there is one.
        size: The number of hits to ask for next.
    """

    connection: OpenSearchConnection
    wanted: Search
    page: Page
    found: list[Hit] = field(default_factory=list[Hit])
    skipped: int = 0
    last: Hit | None = None
    size: int = _LONGEST

    async def run(self, pit: str | None = None) -> list[Hit]:
        """Read until the page is full or nothing is left."""
        is_exact = self.wanted.is_exact
        if is_exact and pit is None:
            # One request does it all.
            return await self._ask(None, self.page.limit, start=self.page.offset)
        while is_exact and self.skipped < self.page.offset:
            count = min(_WINDOW, self.page.offset - self.skipped)
            hits = await self._ask(pit, count, has_items=False)
            self.skipped += len(hits)
            if len(hits) < count:
                return []
        while (missing := self._missing()) > 0:
            count = min(self.size, missing)
            hits = await self._ask(pit, count)
            self._take(hits)
            if len(hits) < count:
                break
        return self.found

    def _missing(self) -> int:
        return self.page.offset - self.skipped + self.page.limit - len(self.found)

    async def _ask(
        self, pit: str | None, count: int, *, start: int = 0, has_items: bool = True
    ) -> list[Hit]:
        body: dict[str, Any] = {
            "query": self.wanted.query,
            "sort": self.wanted.sort,
            "size": count,
            "track_total_hits": False,
            "_source": has_items and self.wanted.has_items,
        }
        if start:
            body["from"] = start
        after = self.wanted.after if self.last is None else self.last["sort"]
        if after is not None:
            body["search_after"] = after
        if pit is not None:
            body["pit"] = {"id": pit, "keep_alive": _KEPT}
        routing = self.wanted.routing if pit is None else None
        hits: list[Hit] = (await search(self.connection, body, routing))["hits"]["hits"]
        if hits:
            self.last = hits[-1]
        return hits

    def _take(self, hits: Sequence[Hit]) -> None:
        """Keep those hits that are on the page, and learn how large they are."""
        for hit in hits:
            if not self.wanted.accepts(hit):
                continue
            if self.skipped < self.page.offset:
                self.skipped += 1
            else:
                self.found.append(hit)
        if self.wanted.has_items and hits:
            size = sum(len(hit["_source"]["value"]) for hit in hits)
            self.size = min(_WINDOW, max(10, _BYTES * len(hits) // (size + 1)))
