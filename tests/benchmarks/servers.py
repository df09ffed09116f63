"""What checkpoints and the store cost on database servers, against bare statements."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import orjson
from conversations import Talk
from databases import DATABASES, Database
from rows import Row

from locus_memory.store.base import BaseStore
from locus_memory.store.item import Put

Measure = Callable[[Database], Awaitable[list[Row]]]
VALUE = {"type": "preference", "content": "prefers tea over coffee in the afternoon", "weight": 3}


def on_each(measure: Measure) -> Callable[[Path], Awaitable[list[Row]]]:
    """Return the measure of every database, each on a server of its own."""

    async def measured(_: Path) -> list[Row]:
        rows: list[Row] = []
        for kind in DATABASES:
            async with kind.running() as database:
                rows += await measure(database)
        return rows

    measured.__name__ = measure.__name__
    measured.__doc__ = measure.__doc__
    return measured


async def elapsed(call: Awaitable[Any]) -> float:
    start = time.perf_counter()
    await call
    return time.perf_counter() - start


@on_each
async def server_sizes(database: Database) -> list[Row]:
    """200 checkpoints: growth of what the server stores, against full JSON each time."""
    full = 0
    async with database.checkpointer() as checkpointer:
        await checkpointer.save({}, "empty")
        before = await database.bytes_stored()
        for state in Talk().states(200):
            full += len(orjson.dumps(state))
            await checkpointer.save(state, "t")
        growth = await database.bytes_stored() - before
    detail = f"{growth / 1e6:.2f} MB / {full / 1e6:.1f} MB"
    return [Row(f"{database.name}: 200 checkpoints / full JSON", growth / full, 0.02, detail)]


@on_each
async def server_saves(database: Database) -> list[Row]:
    """2,000 saves, each in turn with a bare statement that writes an equal blob."""
    ours: list[float] = []
    raw: list[float] = []
    async with database.checkpointer() as checkpointer:
        for state in Talk().states(2000):
            ours.append(await elapsed(checkpointer.save(state, "t")))
            if 100 <= len(ours) < 300:
                record = await checkpointer.storage.retrieve("t")
                assert record is not None
                raw.append(await elapsed(database.write(record.payload)))
        assert await checkpointer.load("t") == state
    at_200, bare = median(ours[100:300]), median(raw)
    early, late = median(ours[20:220]), median(ours[-200:])
    return [
        Row(
            f"{database.name}: median save about turn 200 / bare statement",
            at_200 / bare,
            2.5,
            f"{at_200 * 1e6:.0f} us / {bare * 1e6:.0f} us",
        ),
        Row(
            f"{database.name}: median save of a dict, last 200 of 2,000 turns / turns 20 to 220",
            late / early,
            2.5,
            f"{late * 1e6:.0f} us / {early * 1e6:.0f} us",
        ),
    ]


@on_each
async def server_crowd(database: Database) -> list[Row]:
    """50 threads at once over a pool of 16, against bare statements of the same bytes."""
    threads, turns = 50, 40
    states = list(Talk().states(turns))
    ratios: list[float] = []
    detail = ""
    async with database.checkpointer() as checkpointer:

        async def live(thread: str) -> None:
            for state in states:
                await checkpointer.save(state, thread)

        async def write(blobs: list[bytes]) -> None:
            for blob in blobs:
                await database.write(blob)

        for attempt in range(3):
            names = [f"{attempt}-{number}" for number in range(threads)]
            taken = await elapsed(asyncio.gather(*map(live, names)))
            saved = await checkpointer.list_checkpoints(names[0], turns)
            records = [await checkpointer.storage.retrieve(names[0], each) for each in saved]
            blobs = [record.payload for record in records if record is not None]
            assert len(blobs) == turns
            bare = await elapsed(asyncio.gather(*(write(blobs) for _ in names)))
            ratios.append(bare / taken)
            detail = f"{threads * turns / taken:.0f} / {threads * turns / bare:.0f} a second"
    figure = f"{database.name}: turns a second, 50 threads / bare statements, a pool of 16"
    return [Row(figure, median(ratios), 0.3, detail, at_least=True)]


@on_each
async def server_store(database: Database) -> list[Row]:
    """Put and get, one and a hundred, each in turn with the bare statement."""
    value = orjson.dumps(VALUE)
    namespace = ("users", "u")
    rows: list[Row] = []
    async with database.store() as store:
        for name, ours, raw in (
            ("put", _put(store, namespace), lambda n: database.put(f"k{n}", value)),
            ("get", lambda n: store.get(namespace, f"k{n}"), lambda n: database.get(f"k{n}")),
            (
                "put_batch of 100",
                lambda n: store.put_batch([(namespace, key, VALUE) for key in _keys(n)]),
                lambda n: database.put_batch(_keys(n), value),
            ),
            (
                "get_batch of 100",
                lambda n: store.get_batch([(namespace, key) for key in _keys(n)]),
                lambda n: database.get_batch(_keys(n)),
            ),
        ):
            pairs = [(await elapsed(ours(n)), await elapsed(raw(n))) for n in range(200)][20:]
            mine, bare = median(t for t, _ in pairs), median(t for _, t in pairs)
            detail = f"{mine * 1e6:.0f} us / {bare * 1e6:.0f} us"
            most = 2.5 if name == "put" else 2
            rows.append(Row(f"{database.name}: {name} / bare statement", mine / bare, most, detail))
    return rows


def _put(store: BaseStore, namespace: tuple[str, ...]) -> Callable[[int], Awaitable[Any]]:
    return lambda number: store.put(namespace, f"k{number}", VALUE)


def _keys(number: int) -> list[str]:
    return [f"b{number}-{index}" for index in range(100)]


@on_each
async def server_recall(database: Database) -> list[Row]:
    """50,000 x 384 clustered vectors in 20 namespaces: recall@10, and whether any row is lost."""
    generator = np.random.default_rng(11)
    centres = generator.normal(size=(200, 384))
    sizes = [1_000, 12_000, *[2_055] * 17, 2_065]
    spaces = {("space", f"{n:02}"): size for n, size in enumerate(sizes)}
    worst, fewest, slowest = 1.0, 10, 0.0
    async with database.store() as store:
        matrices = {}
        for space, size in spaces.items():
            near = centres[generator.integers(len(centres), size=size)]
            matrices[space] = (near + 0.7 * generator.normal(size=(size, 384))).astype("f4")
            await _fill(store, space, matrices[space])
        for space, matrix in matrices.items():
            queries = matrix[:20] + 0.3 * generator.normal(size=(20, 384)).astype("f4")
            for condition in (None, {"third": 1}):
                found = [await _search(store, space, matrix, q, condition) for q in queries]
                worst = min(worst, sum(recall for recall, _, _ in found) / len(found))
                fewest = min(fewest, *(count for _, count, _ in found))
                slowest = max(slowest, median(taken for _, _, taken in found))
    detail = f"median query of the slowest namespace {slowest * 1e3:.1f} ms; fewest hits {fewest}"
    return [
        Row(f"{database.name}: recall@10, worst namespace", worst, 0.95, detail, at_least=True),
        Row(f"{database.name}: fewest hits of 10 asked", fewest, 10, at_least=True),
    ]


async def _fill(store: BaseStore, namespace: tuple[str, ...], matrix: Any) -> None:
    for start in range(0, len(matrix), 500):
        puts = [
            Put(
                namespace=namespace,
                key=f"{start + index:05}",
                value=start + index,
                metadata={"third": (start + index) % 3},
                embedding=vector,
            )
            for index, vector in enumerate(matrix[start : start + 500])
        ]
        await store.put_batch(puts)


async def _search(
    store: BaseStore, namespace: tuple[str, ...], matrix: Any, query: Any, condition: Any
) -> tuple[float, int, float]:
    """Return the recall of one query, how many hits it had, and the seconds it took."""
    numbers = np.arange(len(matrix))
    if condition:
        numbers = numbers[numbers % 3 == condition["third"]]
    scores = (matrix[numbers] @ query) / np.linalg.norm(matrix[numbers], axis=1)
    exact = set(numbers[np.argsort(-scores)[:10]].tolist())
    start = time.perf_counter()
    hits = await store.search_by_embedding(namespace, query, 10, metadata_filter=condition)
    taken = time.perf_counter() - start
    return len(exact & {hit.item.value for hit in hits}) / 10, len(hits), taken
