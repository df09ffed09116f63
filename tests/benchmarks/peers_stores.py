"""LangGraph's stores, the Locus SDK's and ours: put, get, search, and what a filter loses."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore as GraphMemoryStore
from langgraph.store.postgres.aio import AsyncPostgresStore
from langgraph.store.sqlite.aio import AsyncSqliteStore
from locus.memory import InMemoryStore as SdkMemoryStore
from locus.memory.store_backends import HolographicStore, PgMemory
from peers_figures import Part, elapsed, middle
from peers_places import Place, Places, provider
from rows import Row

from locus_memory import get_store
from locus_memory.integrations.langgraph import LocusStore
from locus_memory.store.item import Put

DIMENSIONS = 64
OWN, NEIGHBOURS, SPACES = 500, 1_000, 20
QUERIES, ROUNDS = 40, 100
ADA = ("users", "ada")
FILTER = {"third": 1}


class Items:
    """Items of one user beside many of others, and queries; their vectors are drawn, not made."""

    def __init__(self) -> None:
        generator = np.random.default_rng(11)
        centres = generator.normal(size=(50, DIMENSIONS))

        def drawn(count: int) -> Any:
            near = centres[generator.integers(len(centres), size=count)]
            return (near + 0.7 * generator.normal(size=near.shape)).astype("f4")

        self.own = drawn(OWN)
        self.others = drawn(NEIGHBOURS * SPACES)
        self.fresh = drawn(ROUNDS)
        self.queries = self.own[:QUERIES] + 0.3 * drawn(QUERIES)
        named = {"own": self.own, "other": self.others, "new": self.fresh, "query": self.queries}
        self.vectors = {
            f"{name}-{number}": vector.tolist()
            for name, matrix in named.items()
            for number, vector in enumerate(matrix)
        }
        self.spaces = {
            ADA: [f"own-{number}" for number in range(OWN)],
            **{
                ("users", f"other{space}"): [
                    f"other-{space * NEIGHBOURS + number}" for number in range(NEIGHBOURS)
                ]
                for space in range(SPACES)
            },
        }

    def vector(self, text: str) -> list[float]:
        """Return the vector of a text, which begins with the name of its item."""
        return self.vectors[text.split(maxsplit=1)[0]]

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [self.vector(text) for text in texts]

    def exact(self, query: int, *, filtered: bool) -> set[str]:
        """Return the ten of the user's items that are nearest to a query."""
        numbers = np.arange(OWN)
        if filtered:
            numbers = numbers[numbers % 3 == FILTER["third"]]
        chosen = self.own[numbers]
        scores = chosen @ self.queries[query] / np.linalg.norm(chosen, axis=1)
        return {f"own-{number}" for number in numbers[np.argsort(-scores)[:10]]}


def value_of(name: str) -> dict[str, Any]:
    return {"text": name, "third": int(name.split("-")[1]) % 3}


class Contender(ABC):
    """A store seen through the four things that are measured."""

    finds_by_vector = True
    filters = True
    spaces: int | None = None
    """How many namespaces are filled; all by default."""

    def __init__(self, store: Any, items: Items) -> None:
        self.store, self.items = store, items

    async def fill(self, space: tuple[str, ...], names: list[str]) -> None:
        limit = asyncio.Semaphore(8)

        async def put(name: str) -> None:
            async with limit:
                await self.put(space, name)

        await asyncio.gather(*map(put, names))

    @abstractmethod
    async def put(self, space: tuple[str, ...], name: str) -> Any: ...

    @abstractmethod
    async def get(self, space: tuple[str, ...], name: str) -> Any: ...

    @abstractmethod
    async def search(self, query: str, condition: Any) -> list[str]: ...


class InGraph(Contender):
    """A store of LangGraph's kind, which embeds what it is given."""

    async def fill(self, space: tuple[str, ...], names: list[str]) -> None:
        for start in range(0, len(names), 500):
            puts = [PutOp(space, name, value_of(name)) for name in names[start : start + 500]]
            await self.store.abatch(puts)

    async def put(self, space: tuple[str, ...], name: str) -> None:
        await self.store.aput(space, name, value_of(name))

    async def get(self, space: tuple[str, ...], name: str) -> Any:
        return (await self.store.aget(space, name)).value

    async def search(self, query: str, condition: Any) -> list[str]:
        found = await self.store.asearch(ADA, query=query, filter=condition, limit=10)
        return [item.key for item in found]


class InGraphWithoutVectors(InGraph):
    """One that ignores the query."""

    finds_by_vector = False


class OfTheSdk(Contender):
    """A store of the SDK's kind, whose search takes a text and no filter."""

    filters = False

    async def put(self, space: tuple[str, ...], name: str) -> None:
        await self.store.put(space, name, value_of(name))

    async def get(self, space: tuple[str, ...], name: str) -> Any:
        return await self.store.get(space, name)

    async def search(self, query: str, condition: Any) -> list[str]:
        assert condition is None
        return [item.key for item in await self.store.search(ADA, query, 10)]


class ByText(OfTheSdk):
    """A store of the SDK's that keeps no vectors of the caller's."""

    finds_by_vector = False


class BySlowText(ByText):
    """One whose puts are so slow that it gets a tenth of the neighbours."""

    spaces = 1 + SPACES // 10


class Ours(Contender):
    """A store of ours, given the vectors."""

    async def fill(self, space: tuple[str, ...], names: list[str]) -> None:
        for start in range(0, len(names), 500):
            chosen = names[start : start + 500]
            await self.store.put_batch([self._put(space, name) for name in chosen])

    def _put(self, space: tuple[str, ...], name: str) -> Put:
        value = value_of(name)
        return Put(
            namespace=space,
            key=name,
            value=value,
            metadata={"third": value["third"]},
            embedding=self.items.vector(name),
        )

    async def put(self, space: tuple[str, ...], name: str) -> None:
        value, vector = value_of(name), self.items.vector(name)
        metadata = {"third": value["third"]}
        await self.store.put_with_embedding(space, name, value, vector, metadata)

    async def get(self, space: tuple[str, ...], name: str) -> Any:
        return await self.store.get(space, name)

    async def search(self, query: str, condition: Any) -> list[str]:
        vector = self.items.vector(query)
        hits = await self.store.search_by_embedding(ADA, vector, 10, metadata_filter=condition)
        return [hit.item.key for hit in hits]


class _Embedder(SimpleNamespace):
    """The part of the SDK's embedder that its store uses."""

    dimension = DIMENSIONS

    async def embed(self, text: str) -> Any:
        return SimpleNamespace(embedding=self.items.vector(text))


@dataclass
class Entry:
    """A store by name: what it is, where it is, how it is opened."""

    who: str
    place: Place
    kind: type[Contender]
    open: Callable[[], AbstractAsyncContextManager[Any] | Any]
    ours: bool = False


async def entries(places: Places, items: Items) -> list[Entry]:
    index: Any = {"dims": DIMENSIONS, "embed": items.embed, "fields": ["text"]}
    graph_memory, sdk_memory = await places.new("memory"), await places.new("memory")
    sqlite, held = await places.new("SQLite"), await places.new("SQLite")
    server, tenants = await places.new("PostgreSQL"), await places.new("PostgreSQL")
    embedder: Any = _Embedder(items=items)
    opened: Callable[..., Any] = AsyncSqliteStore.from_conn_string
    able = hasattr(sqlite3.Connection, "enable_load_extension")
    theirs = [
        Entry(
            "LangGraph InMemoryStore",
            graph_memory,
            InGraph,
            lambda: GraphMemoryStore(index=index),
        ),
        Entry("SDK InMemoryStore", sdk_memory, ByText, SdkMemoryStore),
        Entry(
            "LangGraph AsyncSqliteStore" + ("" if able else ", no index"),
            sqlite,
            InGraph if able else InGraphWithoutVectors,
            partial(opened, str(sqlite.path), index=index if able else None),
        ),
        Entry("SDK HolographicStore", held, BySlowText, lambda: HolographicStore(str(held.path))),
        Entry(
            "LangGraph AsyncPostgresStore",
            server,
            InGraph,
            partial(AsyncPostgresStore.from_conn_string, server.url, index=index),
        ),
        Entry(
            "SDK PgMemory",
            tenants,
            OfTheSdk,
            lambda: PgMemory(tenants.url, embedder=embedder),
        ),
    ]
    return sorted(
        theirs + await _ours(places, index), key=lambda entry: _RANK[entry.place.database]
    )


_RANK = {"memory": 0, "SQLite": 1, "PostgreSQL": 2, "Redis": 3}


async def _ours(places: Places, index: Any) -> list[Entry]:
    made = []
    for database in _RANK:
        adapted, alone = await places.new(database), await places.new(database)
        opened = partial(LocusStore, provider(adapted), index=index)
        made.append(Entry("LocusStore for LangGraph", adapted, InGraph, opened, ours=True))
        made.append(Entry("get_store", alone, Ours, partial(get_store, provider(alone)), ours=True))
    return made


async def stores(places: Places) -> list[Part]:
    """Measure all stores, one after the other."""
    part = Part(
        f"Stores: {OWN} items of one user beside {NEIGHBOURS * SPACES:,} of others",
        ("store", "on", "fill, s", "put", "get", "search", "search, filtered", "recall@10",
         "recall@10, filtered", "fewest hits"),
    )  # fmt: skip
    items = Items()
    for entry in await entries(places, items):
        async with AsyncExitStack() as stack:
            store = entry.open()
            if hasattr(store, "__aenter__"):
                store = await stack.enter_async_context(store)
            if hasattr(store, "setup"):
                await store.setup()
            await _measured(part, entry, entry.kind(store, items))
            if not isinstance(store, LocusStore) and isinstance(store, SDK_STORES):
                await store.close()
    part.notes += [
        "Milliseconds, the median of 100 puts, 100 gets and 40 searches, one at a time, with",
        f"vectors of {DIMENSIONS} numbers at hand. The filter matches a third of the user's items;",
        "recall is against the exact answer. Batches of 500 fill a store where it has batches.",
        "A dash: it takes no filter, or keeps no vectors: then it searches texts in its own way,",
        "or, as AsyncSqliteStore without an index, ignores the query. Its index needs a Python",
        "whose sqlite3 loads extensions.",
        "HolographicStore has 2,000 of the others' items only, so that the run ends.",
        "LangGraph's Redis store needs RedisJSON and RediSearch, which this Redis has not.",
    ]
    return [part]


SDK_STORES = (SdkMemoryStore, HolographicStore, PgMemory)


async def _measured(part: Part, entry: Entry, contender: Contender) -> None:
    start = time.perf_counter()
    for space, names in list(contender.items.spaces.items())[: contender.spaces]:
        await contender.fill(space, names)
    filled = time.perf_counter() - start
    await entry.place.analyse()
    names = [f"new-{number}" for number in range(ROUNDS)]
    puts = [await elapsed(contender.put(("users", "eve"), name)) for name in names]
    gets = [await elapsed(contender.get(("users", "eve"), name)) for name in names]
    assert await contender.get(ADA, "own-7") == value_of("own-7")
    plain, recall, fewest = await _searched(contender, None)
    line = [
        entry.who,
        entry.place.database,
        f"{filled:.1f}",
        middle(puts),
        middle(gets),
        middle(plain),
    ]
    filtered, least = 0.0, fewest
    line.append("-")
    if contender.filters:
        timed, filtered, least = await _searched(contender, FILTER)
        line[-1] = middle(timed)
    known = contender.finds_by_vector
    line.append(f"{recall:.3f}" if known else "-")
    line.append(f"{filtered:.3f}" if known and contender.filters else "-")
    line.append(str(min(fewest, least)) if known else "-")
    part.lines.append(tuple(line))
    if entry.ours:
        figure = f"{entry.who} on {entry.place.database}: filtered recall@10"
        part.bars.append(Row(figure, filtered, 0.95, at_least=True))


async def _searched(contender: Contender, condition: Any) -> tuple[list[float], float, int]:
    """Return the times of all queries, their mean recall, and the fewest hits of any."""
    taken, shares, counts = [], [], []
    for number in range(QUERIES):
        start = time.perf_counter()
        found = await contender.search(f"query-{number}", condition)
        taken.append(time.perf_counter() - start)
        exact = contender.items.exact(number, filtered=condition is not None)
        shares.append(len(exact & set(found)) / 10)
        counts.append(len(found))
    return taken, sum(shares) / QUERIES, min(counts)
