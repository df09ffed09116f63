"""The growth curve: what each verb takes at 1,000 to a million items, in one namespace and 1,000.

`make bench ARGS=scale` measures up to 100,000 items; `ARGS="scale --most 1000000"` goes on to a
million, which takes an hour, and `--most 10000` takes a minute. Each size has a process of its own,
which fills a store, and another that measures: so memory is that of the searches alone. Times are
of the processor, in all threads, because machines are shared; the table ends with two of a clock.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any

import scale_data as data
from rows import Row

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.retrieval.hybrid import HybridSearch
from locus_memory.store.item import Put

SIZES = (1_000, 10_000, 100_000, 1_000_000)
LAYOUTS = {"one": 1, "many": 1_000}
FILTER = {"kind": "kind 3"}
QUERIES = 40
# A million items in dictionaries take more memory than a laptop has to spare.
MOST_IN_MEMORY = 100_000


class Known:
    """An embedder of queries whose vectors are known."""

    name, dimension = "known", data.DIMENSION

    def __init__(self) -> None:
        self.vectors = dict[str, list[float]]()

    async def embed(self, texts: Any, *, kind: str) -> Any:
        return [self.vectors[text] for text in texts]


def namespace_of(number: int, spaces: int) -> tuple[str, ...]:
    return ("all",) if spaces == 1 else ("all", f"user {number % spaces:03}")


def puts_of(chunk: data.Chunk, spaces: int) -> list[Put]:
    return [
        Put(
            namespace=namespace_of(number, spaces),
            key=f"{number:07}",
            value={"text": text, "kind": f"kind {number % data.KINDS}"},
            metadata={"number": number},
            embedding=vector,
        )
        for number, (text, vector) in enumerate(
            zip(chunk.texts, chunk.vectors, strict=True), start=chunk.start
        )
    ]


async def fill(store: Any, count: int, spaces: int) -> dict[str, Any]:
    """Write the items; return the rate of the last batches, and the true nearest items."""
    targets = data.queries(QUERIES)
    nearest = {"vector": data.Nearest(targets), "filtered": data.Nearest(targets, kind=3)}
    rates: list[float] = []
    for chunk in data.chunks(count):
        for each in nearest.values():
            each.see(chunk)
        puts = puts_of(chunk, spaces)
        start = time.process_time()
        for place in range(0, len(puts), 500):
            await store.put_batch(puts[place : place + 500])
        rates.append(len(puts) / (time.process_time() - start))
    found = {name: each.ids() for name, each in nearest.items()}
    return {"nearest": found, "batch put, a second": median(rates[-10:])}


async def milliseconds(call: Callable[[int], Awaitable[Any]], times: int = QUERIES) -> float:
    """Return the median time of a call, in processor time; the first two do not count."""
    taken = [await first(call(abs(number))) for number in range(-2, times)]
    return median(taken[2:])


async def first(call: Awaitable[Any]) -> float:
    """Return the milliseconds of processor time of a call, in all threads."""
    start = time.process_time()
    await call
    return (time.process_time() - start) * 1e3


def share(found: list[Any], expected: list[int]) -> float:
    return len({int(each.item.key) for each in found} & set(expected)) / len(expected)


async def measure(store: Any, count: int, spaces: int, nearest: Any) -> dict[str, float]:
    """Return the figures of a store that holds the items."""
    here, every, recursive = namespace_of(5, spaces), ("all",), spaces > 1
    found: dict[str, float] = {}
    found["cold open and get, ms"] = await first(store.get(here, f"{5:07}"))
    targets = [row.tolist() for row in data.queries(QUERIES)]

    def near(**where: Any) -> Callable[[int], Awaitable[Any]]:
        namespace = where.pop("namespace", every)
        return lambda n: store.search_by_embedding(namespace, targets[n], 10, **where)

    everywhere = {"recursive": recursive}
    filtered = everywhere | {"metadata_filter": FILTER}
    found["first vector search, ms"] = await first(near(**everywhere)(0))
    found["vector search, ms"] = await milliseconds(near(**everywhere))
    found["first filtered vector search, ms"] = await first(near(**filtered)(0))
    found["filtered vector search, ms"] = await milliseconds(near(**filtered))
    if recursive:
        found["vector search of one namespace, ms"] = await milliseconds(near(namespace=here))
    for name, call in (("vector", near(**everywhere)), ("filtered", near(**filtered))):
        shares = [share(await call(n), nearest[name][n]) for n in range(QUERIES)]
        found[f"recall@10, {name}"] = sum(shares) / len(shares)
    found |= await _words(store, every, recursive=recursive)
    found |= await _hybrid(store, every, targets, recursive=recursive)
    found |= await _listings(store, here, every, recursive=recursive)
    found["RSS, MB"] = resident()
    found |= await _writes(store, count, spaces)
    return found


async def _words(store: Any, every: Any, *, recursive: bool) -> dict[str, float]:
    def search(words: Callable[[int], str]) -> Callable[[int], Awaitable[Any]]:
        return lambda n: store.search(every, words(n), 10, recursive=recursive)

    return {
        "text search of common words, ms": await milliseconds(search(data.common_words)),
        "text search, ms": await milliseconds(search(data.usual_words)),
    }


async def _hybrid(store: Any, every: Any, targets: Any, *, recursive: bool) -> dict[str, float]:
    embedder = Known()
    embedder.vectors = {data.usual_words(n): targets[n] for n in range(QUERIES)}
    search = HybridSearch(store, embedder)
    texts = list(embedder.vectors)
    return {
        "hybrid query, ms": await milliseconds(
            lambda n: search.search(every, texts[n], 10, recursive=recursive)
        )
    }


async def _listings(store: Any, here: Any, every: Any, *, recursive: bool) -> dict[str, float]:
    calls: dict[str, Callable[[int], Awaitable[Any]]] = {
        "get, ms": lambda n: store.get(here, f"{5 + 1000 * (n % 2):07}"),
        "newest, ms": lambda _: store.search(every, None, 10, recursive=recursive),
        "newest with a filter, ms": lambda _: store.search(
            every, None, 10, filter=FILTER, recursive=recursive
        ),
        "scan, ms": lambda _: store.scan(here, 10),
        "list_keys, ms": lambda _: store.list_keys(here, 10),
        "list_namespaces, ms": lambda _: store.list_namespaces(limit=10),
        "list_namespaces, first labels, ms": lambda _: store.list_namespaces(limit=10, max_depth=1),
    }
    return {name: await milliseconds(call) for name, call in calls.items()}


async def _writes(store: Any, count: int, spaces: int) -> dict[str, float]:
    chunk = data.Chunk(count, data.texts(640, 7), data.vectors(640, 7))
    puts = puts_of(chunk, spaces)
    start = time.process_time()
    for number in range(0, len(puts), 64):
        await asyncio.gather(
            *(
                store.put_with_embedding(
                    each.namespace, each.key, each.value, each.embedding, each.metadata
                )
                for each in puts[number : number + 64]
            )
        )
    rate = len(puts) / (time.process_time() - start)
    targets = data.queries(QUERIES)

    async def put_and_search(number: int) -> None:
        each = puts[number]
        await store.put_with_embedding(each.namespace, each.key, each.value, each.embedding)
        await store.search_by_embedding(("all",), targets[number], 10, recursive=spaces > 1)

    mixed = await milliseconds(put_and_search)
    ends = [await first(store.delete(each.namespace, each.key)) for each in puts]
    return {
        "put, 64 at a time, a second": rate,
        "put again and vector search, ms": mixed,
        "delete, ms": median(ends),
    }


def resident() -> float:
    """Return the memory of this process in MB, where the system tells it."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return float("nan")
    return int(status.split("VmRSS:")[1].split()[0]) / 1e3


async def work(step: str, folder: Path, count: int, layout: str) -> dict[str, Any]:
    """Do a step in this process: fill a file, measure it, or both in memory."""
    spaces = LAYOUTS[layout]
    if step == "memory":
        async with InMemoryStore() as store:
            before = resident()
            filled = await fill(store, count, spaces)
            found = await measure(store, count, spaces, filled.pop("nearest"))
        return filled | found | {"RSS, MB": found["RSS, MB"], "RSS before, MB": before}
    path, notes = folder / "scale.db", folder / "filled.json"
    async with SQLiteStore(path) as store:
        if step == "fill":
            notes.write_text(json.dumps(await fill(store, count, spaces)), encoding="utf-8")
            return {}
        filled = json.loads(notes.read_text(encoding="utf-8"))
        size = path.stat().st_size / 1e6
        found = await measure(store, count, spaces, filled.pop("nearest"))
        return filled | found | {"file, MB": size}


def run(*arguments: str) -> dict[str, Any]:
    """Do a step in a process of its own."""
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def curve(folder: Path, most: int, backends: tuple[str, ...] = ("sqlite", "memory")) -> Any:
    """Yield the backend, the layout, the size and the figures of each point."""
    for backend in backends:
        for layout in LAYOUTS:
            for count in SIZES:
                if count > most or (backend == "memory" and count > MOST_IN_MEMORY):
                    continue
                place = folder / f"{backend}-{layout}-{count}"
                place.mkdir(exist_ok=True)
                steps = ("memory",) if backend == "memory" else ("fill", "measure")
                for step in steps:
                    found = run(step, str(place), str(count), layout)
                for file in place.iterdir():
                    file.unlink()
                yield backend, layout, count, found


def tables(points: list[tuple[str, str, int, dict[str, float]]]) -> str:
    """Return a table for each backend and layout, a column for each size."""
    lines: list[str] = []
    for backend, layout in dict.fromkeys((point[0], point[1]) for point in points):
        chosen = {
            point[2]: point[3] for point in points if (point[0], point[1]) == (backend, layout)
        }
        spaces = "one namespace" if layout == "one" else "1,000 namespaces"
        head = " | ".join(f"{count:,}" for count in chosen)
        lines += ["", f"| {backend}, {spaces} | {head} |", "|---" * (len(chosen) + 1) + "|"]
        for figure in dict.fromkeys(name for each in chosen.values() for name in each):
            cells = (f"{each[figure]:.3g}" if figure in each else "" for each in chosen.values())
            lines.append(f"| {figure} | {' | '.join(map(plain, cells))} |")
    return "\n".join(lines)


def plain(number: str) -> str:
    """Return a number without an exponent."""
    return f"{float(number):g}" if "e" in number else number


async def scale(folder: Path, most: int = 100_000) -> list[Row]:
    """Measure the curve up to `most` items, print it, and return the figures that have bars."""
    points = []
    for point in curve(folder, most):
        points.append(point)
        print(json.dumps(point), file=sys.stderr, flush=True)
    print(tables(points))
    rows: list[Row] = []
    for backend, layout, count, found in points:
        if backend == "memory":
            continue
        where = f"{count:,} items, {'one namespace' if layout == 'one' else '1,000 namespaces'}"
        rows.append(Row(f"recall@10, {where}", found["recall@10, vector"], 0.99, at_least=True))
        rows.append(
            Row(f"recall@10 filtered, {where}", found["recall@10, filtered"], 0.99, at_least=True)
        )
        rows.append(Row(f"RSS, MB, {where}", found["RSS, MB"], 300))
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=("fill", "measure", "memory"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("count", type=int)
    parser.add_argument("layout", choices=LAYOUTS)
    given = parser.parse_args()
    result = asyncio.run(work(given.step, given.folder, given.count, given.layout))
    print(json.dumps(result))
