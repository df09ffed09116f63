"""The figures of the growth curve for one store that holds the items."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any

import scale_data as data
from scale_spaces import Spaces

from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.retrieval.hybrid import HybridSearch
from locus_memory.store.item import Put

QUERIES = 40
EVERY = ("all",)
FILTER = {"kind": "kind 3"}

Seconds = Callable[[], float]
Call = Callable[[int], Awaitable[Any]]


class Known:
    """An embedder of queries whose vectors are known."""

    name, dimension = "known", data.DIMENSION

    def __init__(self) -> None:
        self.vectors = dict[str, list[float]]()

    async def embed(self, texts: Any, *, kind: str) -> Any:
        return [self.vectors[text] for text in texts]


def puts_of(chunk: data.Chunk, name: Callable[[int], tuple[str, ...]]) -> list[Put]:
    return [
        Put(
            namespace=name(number),
            key=f"{number:07}",
            value={"text": text, "kind": f"kind {number % data.KINDS}"},
            metadata={"number": number},
            embedding=vector,
        )
        for number, (text, vector) in enumerate(
            zip(chunk.texts, chunk.vectors, strict=True), start=chunk.start
        )
    ]


def share(found: list[Any], expected: list[int]) -> float:
    return len({int(each.item.key) for each in found} & set(expected)) / len(expected)


def resident() -> float:
    """Return the memory of this process in MB, where the system tells it."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return float("nan")
    return int(status.split("VmRSS:")[1].split()[0]) / 1e3


class Verbs:
    """The measurement of a store that holds the items.

    Args:
        store: The store.
        seconds: The clock: processor time.
        count: The number of items.
        spaces: Their namespaces.
        nearest: The true nearest items of each search.
    """

    def __init__(
        self, store: Any, seconds: Seconds, count: int, spaces: Spaces, nearest: Any
    ) -> None:
        self.store, self.seconds, self.count, self.spaces = store, seconds, count, spaces
        self.nearest = nearest
        self.everywhere = {"recursive": spaces.is_tree}
        self.name = spaces.namer(count)
        self.here = self.name(5)
        self.targets = [row.tolist() for row in data.queries(QUERIES)]

    async def figures(self) -> dict[str, float]:
        """Return all figures."""
        found = {"cold open and get, ms": await self.first(self.store.get(self.here, f"{5:07}"))}
        found |= await self.vectors()
        found["RSS after vector searches, MB"] = resident()
        if self.spaces.is_uneven:
            found |= await self.sizes()
        found |= await self.words()
        found |= await self.hybrid()
        found |= await self.listings()
        found["RSS, MB"] = resident()
        return found | await self.writes()

    async def first(self, call: Awaitable[Any]) -> float:
        """Return the milliseconds of processor time of a call."""
        start = self.seconds()
        await call
        return (self.seconds() - start) * 1e3

    async def usual(self, call: Call) -> float:
        """Return the median time of a call; the first two do not count."""
        taken = [await self.first(call(abs(number))) for number in range(-2, QUERIES)]
        return median(taken[2:])

    def near(self, namespace: Any = EVERY, **where: Any) -> Call:
        """Return the search for the nearest of a query."""
        return lambda n: self.store.search_by_embedding(namespace, self.targets[n], 10, **where)

    async def recall(self, call: Call, nearest: list[list[int]]) -> float:
        """Return the mean recall@10."""
        shares = [share(await call(n), nearest[n]) for n in range(QUERIES)]
        return sum(shares) / len(shares)

    async def vectors(self) -> dict[str, float]:
        found: dict[str, float] = {}
        everywhere = self.everywhere
        calls = {
            "vector search": self.near(**everywhere),
            "filtered vector search": self.near(**everywhere, metadata_filter=FILTER),
        }
        for name, call in calls.items():
            found[f"first {name}, ms"] = await self.first(call(0))
            found[f"{name}, ms"] = await self.usual(call)
        found["vector search, ms of a clock"] = await self._clocked(calls["vector search"])
        if self.spaces.is_tree:
            found["vector search of one namespace, ms"] = await self.usual(self.near(self.here))
        for name, call in zip(("vector", "filtered"), calls.values(), strict=True):
            found[f"recall@10, {name}"] = await self.recall(call, self.nearest[name])
        return found

    async def _clocked(self, call: Call) -> float:
        taken: list[float] = []
        for number in range(QUERIES):
            start = time.perf_counter()
            await call(number)
            taken.append((time.perf_counter() - start) * 1e3)
        return median(taken)

    async def sizes(self) -> dict[str, float]:
        """Return the recall and the time of a search of one namespace, by its size."""
        found: dict[str, float] = {}
        for size in self.spaces.sizes(self.count):
            space = ("all", f"size {size}")
            for name, where in (("vector", {}), ("filtered", {"metadata_filter": FILTER})):
                call = self.near(space, **where)
                found[f"{name} of {size:,}, ms"] = await self.usual(call)
                found[f"{name} of {size:,}, ms of a clock"] = await self._clocked(call)
                nearest = self.nearest[f"{size} {name}"]
                found[f"recall@10, {name} of {size:,}"] = await self.recall(call, nearest)
        return found

    async def words(self) -> dict[str, float]:
        found: dict[str, float] = {}
        queries = {
            "text search of common words": data.common_words,
            "text search": data.usual_words,
        }
        for name, words in queries.items():
            taken = [await self.first(self._words(words)(n)) for n in range(QUERIES + 2)]
            found[f"{name}, ms"] = median(taken[2:])
            found[f"{name}, the slowest, ms"] = max(taken)
        # SQLite caches the items of words; the first searches read them.
        for name, words in queries.items():
            found[f"{name}, each searched before, ms"] = await self.usual(self._words(words))
        if self.spaces.is_tree:
            found["text search of one namespace, ms"] = await self.usual(
                lambda n: self.store.search(self.here, data.common_words(n), 10)
            )
        if isinstance(self.store, SQLiteStore):
            found["the ten hits of FTS5, common words"] = await self._agreement()
        return found

    def _words(self, words: Callable[[int], str]) -> Call:
        return lambda n: self._text(EVERY, words(n), 10)

    def _text(self, namespace: Any, words: str, limit: int) -> Awaitable[Any]:
        return self.store.search(namespace, words, limit, **self.everywhere)

    async def _agreement(self) -> float:
        """Return the share of queries that find the hits which FTS5 ranks first."""
        same = 0
        for number in range(QUERIES):
            words = data.common_words(number)
            found = await self._text(EVERY, words, 10)
            # So many hits are ranked by FTS5 alone, in one statement.
            ranked = await self._text(EVERY, words, 201)
            same += [hit.key for hit in found] == [hit.key for hit in ranked[:10]]
        return same / QUERIES

    async def hybrid(self) -> dict[str, float]:
        embedder = Known()
        embedder.vectors = {data.usual_words(n): self.targets[n] for n in range(QUERIES)}
        search, texts = HybridSearch(self.store, embedder), list(embedder.vectors)
        return {
            "hybrid query, ms": await self.usual(
                lambda n: search.search(EVERY, texts[n], 10, **self.everywhere)
            )
        }

    async def listings(self) -> dict[str, float]:
        store, here = self.store, self.here
        newest = {"limit": 10, **self.everywhere}
        calls: dict[str, Call] = {
            "get, ms": lambda n: store.get(here, f"{5 + 1000 * (n % 2):07}"),
            "newest, ms": lambda _: store.search(EVERY, None, **newest),
            "newest with a filter, ms": lambda _: store.search(
                EVERY, None, filter=FILTER, **newest
            ),
            "scan, ms": lambda _: store.scan(here, 10),
            "list_keys, ms": lambda _: store.list_keys(here, 10),
            "list_namespaces, ms": lambda _: store.list_namespaces(limit=10),
            "list_namespaces, first labels, ms": lambda _: store.list_namespaces(
                limit=10, max_depth=1
            ),
        }
        return {name: await self.usual(call) for name, call in calls.items()}

    async def writes(self) -> dict[str, float]:
        chunk = data.Chunk(self.count, data.texts(640, 7), data.vectors(640, 7))
        puts = puts_of(chunk, self.name)
        start = self.seconds()
        for number in range(0, len(puts), 64):
            await asyncio.gather(*(self._put(each) for each in puts[number : number + 64]))
        rate = len(puts) / (self.seconds() - start)

        async def put_and_search(number: int) -> None:
            await self._put(puts[number])
            await self.near(**self.everywhere)(number)

        mixed = await self.usual(put_and_search)
        ends = [await self.first(self.store.delete(each.namespace, each.key)) for each in puts]
        return {
            "put, 64 at a time, a second": rate,
            "put again and vector search, ms": mixed,
            "delete, ms": median(ends),
        }

    def _put(self, each: Put) -> Awaitable[Any]:
        return self.store.put_with_embedding(
            each.namespace, each.key, each.value, each.embedding, each.metadata
        )
