"""What the SQLite store costs, against bare statements and bare numpy."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rows import Row, typical

from locus_memory.backends.sqlite.connection.connection import SQLiteDatabase
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.store.item import Put

AT_ONCE = 64
VALUE = {"type": "preference", "content": "prefers tea over coffee in the afternoon", "weight": 3}


async def timed(call: Callable[[int], Awaitable[Any]], start: int) -> float:
    before = time.perf_counter()
    await asyncio.gather(*(call(start + index) for index in range(AT_ONCE)))
    return time.perf_counter() - before


async def puts_and_gets(folder: Path) -> list[Row]:
    """Put and get, 64 at a time, against bare statements through the same threads."""
    database = SQLiteDatabase(folder / "store.db")
    try:
        return await _puts_and_gets(database)
    finally:
        await database.close()


async def _puts_and_gets(database: SQLiteDatabase) -> list[Row]:
    store = SQLiteStore(database=database)
    encoded = str(VALUE)
    await database.write(lambda c: c.execute("CREATE TABLE raw (key TEXT PRIMARY KEY, value TEXT)"))

    async def raw_put(index: int) -> Any:
        statement = "INSERT OR REPLACE INTO raw VALUES (?, ?)"
        return await database.write(lambda c: c.execute(statement, (f"k{index}", encoded)))

    async def raw_get(index: int) -> Any:
        statement = "SELECT value FROM raw WHERE key = ?"
        return await database.read(lambda c: c.execute(statement, (f"k{index}",)).fetchone())

    async def put(index: int) -> Any:
        return await store.put(("users", "u"), f"k{index}", VALUE)

    async def get(index: int) -> Any:
        return await store.get(("users", "u"), f"k{index}")

    rows: list[Row] = []
    for name, ours, raw in (("put", put, raw_put), ("get", get, raw_get)):
        times = [
            (await timed(ours, number * AT_ONCE), await timed(raw, number * AT_ONCE))
            for number in range(30)
        ]
        mine, bare = median(t for t, _ in times), median(t for _, t in times)
        detail = f"{mine / AT_ONCE * 1e6:.0f} us / {bare / AT_ONCE * 1e6:.0f} us each"
        rows.append(Row(f"store {name}, 64 at a time / bare statements", mine / bare, 3, detail))
    return rows


async def vectors(folder: Path) -> list[Row]:
    """Exact vector search in one process, against numpy alone, and its recall."""
    count, dimension, limit = 10_000, 384, 10
    generator = np.random.default_rng(7)
    async with SQLiteStore(folder / "vectors.db") as store:
        small = generator.normal(size=(200, dimension)).astype("f4")
        large = generator.normal(size=(count, dimension)).astype("f4")
        for namespace, matrix in ((("small",), small), (("large",), large)):
            await _fill(store, namespace, matrix)
        queries = generator.normal(size=(60, dimension)).astype("f4")
        unit = large / np.linalg.norm(large, axis=1, keepdims=True)
        await store.search_by_embedding(("large",), queries[0], limit)
        ours, bare = [], []
        for query in queries:
            start = time.perf_counter()
            await store.search_by_embedding(("large",), query, limit)
            ours.append(time.perf_counter() - start)
            bare.append(typical(lambda q=query: np.argpartition(unit @ q, -limit)[-limit:], 1))
        recall = min(
            [await _recall(store, ("small",), small, query) for query in queries]
            + [await _recall(store, ("large",), large, query) for query in queries]
        )
    detail = f"{median(ours) * 1e3:.2f} ms / {median(bare) * 1e3:.2f} ms"
    return [
        Row(
            "vector search, 10,000 x 384, warm / numpy alone",
            median(ours) / median(bare),
            3,
            detail,
        ),
        Row("recall@10 against brute force, worst query", recall, 1.0, at_least=True),
    ]


async def _fill(store: SQLiteStore, namespace: tuple[str, ...], matrix: Any) -> None:
    puts = [
        Put(namespace=namespace, key=f"{index:05}", value=index, embedding=vector)
        for index, vector in enumerate(matrix)
    ]
    for start in range(0, len(puts), 1000):
        await store.put_batch(puts[start : start + 1000])


async def _recall(store: SQLiteStore, namespace: tuple[str, ...], matrix: Any, query: Any) -> float:
    scores = (matrix @ query) / np.linalg.norm(matrix, axis=1)
    exact = {int(index) for index in np.argsort(-scores)[:10]}
    hits = await store.search_by_embedding(namespace, query, 10)
    return len(exact & {hit.item.value for hit in hits}) / 10
