"""The cost of the verbs of the OpenSearch store against the bare requests of opensearch-py.

A bare request does the same work: it writes the same fields to an index with the same mapping, or
sends the same search. Both run in turn on one server. `python opensearch_store.py [hosts]` uses a
server that runs; without an address it starts one.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import median
from typing import Any

import orjson
from opensearchpy import AsyncOpenSearch

from locus_memory.backends.opensearch import OpenSearchConnection, OpenSearchStore
from locus_memory.backends.opensearch.items.documents import Document
from locus_memory.backends.opensearch.items.mapping import ITEMS, vector_mapping
from locus_memory.store.item import Put, check_embedding
from locus_memory.testing.servers import OpenSearchServer

NS = ("users", "ada")
ROUNDS, WARM = 60, 10
ITEMS_OF_NAMESPACE = 2_000
DIMENSION = 384
TOGETHER = 50
_WORDS = [f"w{int(random.Random(n).paretovariate(0.6)) % 5_000}" for n in range(20_000)]

Call = Callable[[int], Awaitable[Any]]


@dataclass(slots=True)
class Recorder:
    """The bodies of the searches that the store sends."""

    bodies: list[tuple[str, Any, Any]] = field(default_factory=list)

    def of(self, connection: OpenSearchConnection) -> None:
        original = connection.request

        async def request(method: str, path: str, body: Any = None, **options: Any) -> Any:
            if path.endswith(("_search", "_msearch")):
                self.bodies.append((path, body, options.get("params")))
            return await original(method, path, body, **options)

        connection.request = request  # type: ignore[method-assign]


def text(dice: random.Random, words: int = 40) -> str:
    return " ".join(dice.choices(_WORDS, k=words))


def words_of(number: int, count: int) -> str:
    return text(random.Random(number), count)


def put(key: str, *, vector: bool = False) -> Put:
    dice = random.Random(key)
    value = {"text": text(dice), "number": dice.randrange(1_000), "tags": ["a", "b"]}
    numbers = [dice.gauss(0, 1) for _ in range(DIMENSION)] if vector else None
    return Put(namespace=NS, key=key, value=value, embedding=numbers)


def fields(each: Put) -> tuple[Document, dict[str, Any]]:
    vector = None if each.embedding is None else check_embedding(each.embedding)
    document = Document.of(each, vector)
    now = datetime.now(UTC)
    return document, {**document.written(now), "version": 1, "created": 0}


async def compare(what: str, ours: Call, bare: Call) -> None:
    taken: tuple[list[float], list[float]] = ([], [])
    for number in range(-WARM, ROUNDS):
        for call, times in zip((ours, bare), taken, strict=True):
            start = time.perf_counter()
            await call(number)
            if number >= 0:
                times.append(time.perf_counter() - start)
    first, second = (median(times) * 1_000 for times in taken)
    print(f"{what:28} {first:8.2f} ms  bare {second:8.2f} ms  ratio {first / second:5.2f}")


class Bench:
    """The verbs and their bare requests."""

    def __init__(self, store: OpenSearchStore, client: AsyncOpenSearch, sent: Recorder) -> None:
        self.store, self.client, self.sent = store, client, sent

    async def bare_put(self, number: int) -> None:
        document, body = fields(put(f"bare{number}"))
        place = {"routing": document.address.routing}
        await self.client.index(index="bare", id=document.address.id, body=body, params=place)

    async def bare_batch(self, number: int, *, vector: bool = False) -> None:
        lines: list[bytes] = []
        for n in range(100):
            document, body = fields(put(f"bare{number}-{n}", vector=vector))
            place = {"_id": document.address.id, "routing": document.address.routing}
            lines += orjson.dumps({"index": place}), orjson.dumps(body)
        await self.client.bulk(index="bare", body=b"\n".join(lines).decode() + "\n")

    async def our_batch(self, number: int, *, vector: bool = False) -> None:
        await self.store.put_batch(put(f"ours{number}-{n}", vector=vector) for n in range(100))

    async def writes(self) -> None:
        await compare(
            "put", lambda n: self.store.put(NS, f"o{n}", put(f"o{n}").value), self.bare_put
        )
        await compare("put_batch of 100", self.our_batch, self.bare_batch)
        vectors = f"put_batch of 100, {DIMENSION} numbers"
        await compare(
            vectors,
            lambda n: self.our_batch(n, vector=True),
            lambda n: self.bare_batch(n, vector=True),
        )

    async def reads(self) -> None:
        document, _ = fields(put("bare0"))
        name, place = document.address.id, {"routing": document.address.routing}
        await compare(
            "get",
            lambda _: self.store.get(NS, "o0"),
            lambda _: self.client.get(index="bare", id=name, params=place),
        )

    async def searches(self) -> None:
        await self.store.put_batch(put(f"{n:05}", vector=True) for n in range(ITEMS_OF_NAMESPACE))
        await self.search("search, newest", lambda _: self.store.search(NS))
        filters = {"number": {"$lt": 500}, "tags": {"$contains": "a"}}
        await self.search("search, a filter", lambda _: self.store.search(NS, filter=filters))
        await self.search("search, words: 1", lambda n: self.store.search(NS, words_of(n, 1)))
        await self.search("search, words: 5", lambda n: self.store.search(NS, words_of(n, 5)))
        dice = random.Random(1)
        query = [dice.gauss(0, 1) for _ in range(DIMENSION)]
        await self.search(
            "search_by_embedding", lambda _: self.store.search_by_embedding(NS, query)
        )

    async def search(self, what: str, ours: Call) -> None:
        async def recorded(number: int) -> None:
            self.sent.bodies.clear()
            await ours(number)

        async def bare(_: int) -> None:
            for path, body, params in list(self.sent.bodies):
                sent = body.decode() if isinstance(body, bytes) else body
                await self.client.transport.perform_request("POST", path, params=params, body=sent)

        await compare(what, recorded, bare)

    async def refreshes(self) -> None:
        async def ours(number: int) -> None:
            await self.store.put(NS, f"r{number}", "fox")
            await self.store.list_keys(NS, 1)

        await compare("put, list_keys", ours, lambda n: self.store.put(NS, f"p{n}", "fox"))

    async def crowd(self) -> None:
        async def many(call: Call, count: int = 1_000) -> float:
            numbers = iter(range(count))

            async def worker() -> None:
                for number in numbers:
                    await call(number)

            start = time.perf_counter()
            await asyncio.gather(*(worker() for _ in range(TOGETHER)))
            return count / (time.perf_counter() - start)

        value = put("x").value
        ours = await many(lambda n: self.store.put((*NS, str(n % 50)), f"k{n}", value))
        bare = await many(self.bare_put)
        print(
            f"puts a second by {TOGETHER} tasks    {ours:8.0f}     bare {bare:8.0f}     "
            f"ratio {ours / bare:5.2f}"
        )


async def run(hosts: str) -> None:
    sent = Recorder()
    async with (
        OpenSearchConnection(hosts, index_prefix="bench-") as connection,
        AsyncOpenSearch(hosts) as client,
    ):
        await connection.request("DELETE", "/bench-*,bare", params={"ignore_unavailable": "true"})
        store = OpenSearchStore(client=connection)
        await store.open()
        body = ITEMS.body("bare", connection.features, shards=1, replicas=0)
        del body["aliases"]
        await client.indices.create(index="bare", body=body)
        await client.indices.put_mapping(index="bare", body=vector_mapping(DIMENSION))
        sent.of(connection)
        bench = Bench(store, client, sent)
        for part in (bench.writes, bench.reads, bench.searches, bench.refreshes, bench.crowd):
            await part()
        await connection.request("DELETE", "/bench-*,bare")


def main() -> None:
    server = nullcontext() if sys.argv[1:] else OpenSearchServer()
    with server as started:
        asyncio.run(run(sys.argv[1] if started is None else started.address))


if __name__ == "__main__":
    main()
