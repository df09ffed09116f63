"""What a store in RediSearch costs against one with an index of our own, on the same server."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from redis import Redis
from rows import Row

from locus_memory.backends.redis.search.layout import SearchIndex
from locus_memory.backends.redis.store import RedisStore
from locus_memory.errors import MissingDriverError
from locus_memory.store.item import Put
from locus_memory.testing.servers import RedisServer, ValkeyServer

KINDS: tuple[SearchIndex, ...] = ("own", "redisearch")
SIZES = (200, 5_000, 50_000)
NEIGHBOURS = 20
_SYLLABLES = ("ba do ki lu mo ne pra sti tro vex", "ran tol mig sel dap fus gin hob jut kal")
_ENDS = "a en or is um ot ix ay el ud op ir em as on et ul yn ob ag"


class Talker:
    """Says turns of 8 to 60 words, of which some are far more frequent than others."""

    def __init__(self) -> None:
        self._random = random.Random(5)
        first, second = (each.split() for each in _SYLLABLES)
        self._words = [a + b + c for a in first for b in second for c in _ENDS.split()]
        self._random.shuffle(self._words)
        self._weights = [1 / (rank + 5) for rank in range(len(self._words))]

    def words(self, least: int, most: int) -> str:
        count = self._random.randint(least, most)
        return " ".join(self._random.choices(self._words, self._weights, k=count))

    def turns(self, namespace: tuple[str, ...], count: int) -> list[tuple[Any, ...]]:
        return [(namespace, f"{n:06}", self.words(8, 60)) for n in range(count)]


class Contest:
    """Two stores on one server, and what the same takes on each, in turn."""

    def __init__(self, stores: dict[SearchIndex, RedisStore], client: Redis) -> None:
        self.stores = stores
        self.rows: list[tuple[str, dict[SearchIndex, float], str]] = []
        self._client = client

    async def time(self, what: str, calls: dict[SearchIndex, Callable[[], Awaitable[Any]]]) -> None:
        taken: dict[SearchIndex, list[float]] = {kind: [] for kind in calls}
        for _ in range(60):
            for kind, call in calls.items():
                start = time.perf_counter()
                await call()
                taken[kind].append(time.perf_counter() - start)
        found: dict[SearchIndex, float] = {
            kind: median(times[10:]) * 1e3 for kind, times in taken.items()
        }
        self.rows.append((what, found, "ms"))

    async def fill(self, namespace: tuple[str, ...], count: int, what: str = "") -> None:
        sizes: dict[SearchIndex, float] = {}
        for kind, store in self.stores.items():
            before = self._used()
            turns = Talker().turns(namespace, count)
            for start in range(0, count, 200):
                await store.put_batch(turns[start : start + 200])
            sizes[kind] = (self._used() - before) / count
        if what:
            self.rows.append((what, sizes, "bytes"))

    def _used(self) -> int:
        facts: Any = self._client.info("memory")
        return int(facts["used_memory"])


@asynccontextmanager
async def contest(server_class: type[RedisServer]) -> AsyncGenerator[Contest]:
    server = server_class(search=True)
    await asyncio.to_thread(server.start)
    try:
        with Redis.from_url(server.url) as client:
            stores: dict[SearchIndex, RedisStore] = {
                kind: RedisStore(server.url, key_prefix=f"{kind}:", search_index=kind)
                for kind in KINDS
            }
            yield Contest(stores, client)
            for store in stores.values():
                await store.close()
    finally:
        await asyncio.to_thread(server.close)


async def server_search(_: Path) -> list[Row]:
    """RediSearch / an index of our own: puts, text search, memory, and recall of vectors."""
    rows: list[Row] = []
    for server_class in (ValkeyServer, RedisServer):
        name = server_class.__name__.removesuffix("Server")
        try:
            async with contest(server_class) as match:
                await _write(match)
                await _search(match)
                recall = await _recall(match)
        except MissingDriverError as error:
            print(error)
            return rows
        for what, found, unit in match.rows:
            own, other = (found[kind] for kind in KINDS)
            detail = f"{other:.2f} / {own:.2f} {unit}"
            rows.append(Row(f"{name}: {what}, RediSearch / own", other / own, 2, detail))
        rows += [Row(f"{name}: {what}", *rest) for what, *rest in recall]
    return rows


async def _write(match: Contest) -> None:
    talkers = {kind: Talker() for kind in KINDS}
    names = iter(range(10**6))
    for what, count in (("put", 1), ("put_batch of 100", 100)):

        def call(kind: SearchIndex, count: int = count) -> Callable[[], Awaitable[Any]]:
            say = talkers[kind].words
            return lambda: match.stores[kind].put_batch(
                [(("puts",), f"{next(names)}", say(8, 60)) for _ in range(count)]
            )

        await match.time(what, {kind: call(kind) for kind in KINDS})


def _ask(
    match: Contest, namespace: tuple[str, ...]
) -> dict[SearchIndex, Callable[[], Awaitable[Any]]]:
    def call(kind: SearchIndex) -> Callable[[], Awaitable[Any]]:
        talker, store = Talker(), match.stores[kind]
        return lambda: store.search(namespace, talker.words(10, 10), 10)

    return {kind: call(kind) for kind in KINDS}


async def _search(match: Contest) -> None:
    for size in SIZES:
        space = ("turns", f"{size}")
        # Of a few, what the allocator does is most of it.
        await match.fill(space, size, f"memory of one of {size:,} items" if size > SIZES[0] else "")
        await match.time(f"search of 10 words in {size:,} turns", _ask(match, space))
    for place in range(NEIGHBOURS):
        await match.fill(("many", f"{place}"), 2000)
    what = f"search of 10 words in 2,000 turns next to {NEIGHBOURS} namespaces"
    await match.time(what, _ask(match, ("many", "3")))


async def _recall(match: Contest) -> list[tuple[Any, ...]]:
    """Return recall@10 of RediSearch in the worst of 20 namespaces, and what a query takes."""
    generator = np.random.default_rng(11)
    centres = generator.normal(size=(200, 384))
    sizes = [1_000, 12_000, *[2_055] * 17, 2_065]
    store, worst, taken = match.stores["redisearch"], 1.0, []
    matrices = {}
    for place, size in enumerate(sizes):
        near = centres[generator.integers(len(centres), size=size)]
        matrix = (near + 0.7 * generator.normal(size=(size, 384))).astype("f4")
        matrices["space", f"{place:02}"] = matrix
        for start in range(0, size, 500):
            some = enumerate(matrix[start : start + 500], start)
            space = ("space", f"{place:02}")
            puts = [Put(namespace=space, key=f"{n}", value=n, embedding=v) for n, v in some]
            await store.put_batch(puts)
    for space, matrix in matrices.items():
        found = 0
        for query in matrix[:20] + 0.3 * generator.normal(size=(20, 384)).astype("f4"):
            best = np.argsort(-(matrix @ query) / np.linalg.norm(matrix, axis=1))[:10].tolist()
            start_time = time.perf_counter()
            hits = await store.search_by_embedding(space, query, 10)
            taken.append(time.perf_counter() - start_time)
            found += len({hit.item.value for hit in hits} & set(best))
        worst = min(worst, found / 200)
    detail = f"median query {median(taken) * 1e3:.1f} ms, slowest {max(taken) * 1e3:.1f} ms"
    return [("recall@10 of RediSearch, worst namespace", worst, 0.95, detail, True)]
