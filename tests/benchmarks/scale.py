"""The growth curve: what each verb takes at 1,000 to a million items, in one namespace and 1,000.

`make bench ARGS=scale` measures up to 100,000 items; `ARGS="scale --most 1000000"` goes on to a
million, which takes an hour, and `--most 10000` takes a minute. `--backends postgresql redis`
measures servers. Each size has a process of its own, which fills a store, and another that
measures: so memory is that of the searches alone. Times are of the processor, in all threads of the
process and of its server, because machines are shared.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import scale_data as data
from rows import Row
from scale_places import PLACES, Place
from scale_spaces import LAYOUTS, Spaces
from scale_verbs import QUERIES, Seconds, Verbs, puts_of, resident

from locus_memory.backends.inmemory.store import InMemoryStore

SIZES = (1_000, 10_000, 100_000, 1_000_000)
# A million items in dictionaries take more memory than a laptop has to spare.
MOST_IN_MEMORY = 100_000
# The uneven namespaces are of sizes that need a million items, or a tenth of them.
LEAST_UNEVEN = 100_000
# Codes rank what SQLite finds; the other indexes are graphs.
RECALL = {"sqlite": 0.99, "postgresql": 0.95, "redis": 0.95}
MOST = {
    "sqlite": {
        "vector search, ms": 30,
        "text search of common words, each searched before, ms": 15,
        "RSS after vector searches, MB": 300,
    }
}


def nearest_of(count: int, spaces: Spaces) -> dict[str, data.Nearest]:
    """Return the searches for the true nearest items: of all, and of each size of namespace."""
    targets = data.queries(QUERIES)
    found = {"vector": data.Nearest(targets), "filtered": data.Nearest(targets, kind=3)}
    for size in spaces.sizes(count):
        within = spaces.members(size, count)
        found[f"{size} vector"] = data.Nearest(targets, within=within)
        found[f"{size} filtered"] = data.Nearest(targets, kind=3, within=within)
    return found


async def fill(store: Any, seconds: Seconds, count: int, spaces: Spaces) -> dict[str, Any]:
    """Write the items; return the rate of the last batches, and the true nearest items."""
    nearest, name = nearest_of(count, spaces), spaces.namer(count)
    rates: list[float] = []
    for chunk in data.chunks(count):
        for each in nearest.values():
            each.see(chunk)
        puts = puts_of(chunk, name)
        start = seconds()
        for place in range(0, len(puts), 500):
            await store.put_batch(puts[place : place + 500])
        rates.append(len(puts) / (seconds() - start))
    found = {name: each.ids() for name, each in nearest.items()}
    return {"nearest": found, "batch put, a second": median(rates[-10:])}


async def in_memory(count: int, spaces: Spaces) -> dict[str, Any]:
    """Fill a store in this process and measure it."""
    seconds = time.process_time
    async with InMemoryStore() as store:
        before = resident()
        filled = await fill(store, seconds, count, spaces)
        found = await Verbs(store, seconds, count, spaces, filled.pop("nearest")).figures()
    return filled | found | {"RSS, MB": found["RSS, MB"], "RSS before, MB": before}


async def work(step: str, place: Place, notes: Path, count: int, spaces: Spaces) -> dict[str, Any]:
    """Do a step in this process: fill a place, or measure it."""
    if step == "fill":
        async with place.filling() as store:
            filled = await fill(store, place.seconds, count, spaces)
        async with place.opened() as store:
            filled |= await place.settle(store)
        await asyncio.to_thread(notes.write_text, json.dumps(filled), encoding="utf-8")
        return {}
    filled = json.loads(await asyncio.to_thread(notes.read_text, encoding="utf-8"))
    sizes = await asyncio.to_thread(place.sizes)
    async with place.opened() as store:
        nearest = filled.pop("nearest")
        found = await Verbs(store, place.seconds, count, spaces, nearest).figures()
    return filled | found | sizes


def run(*arguments: str) -> dict[str, Any]:
    """Do a step in a process of its own."""
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def point(folder: Path, backend: str, layout: str, count: int) -> dict[str, Any]:
    """Return the figures of one size."""
    if backend == "memory":
        return run("memory", "memory", "-", str(folder), str(count), layout)
    with PLACES[backend].made(folder) as place:
        run("fill", backend, place.at, str(folder), str(count), layout)
        return run("measure", backend, place.at, str(folder), str(count), layout)


def points(most: int, backends: Sequence[str], layouts: Sequence[str]) -> Any:
    """Yield the backend, the layout and the size of each point."""
    for backend in backends:
        for layout in layouts:
            for count in SIZES:
                beyond = backend == "memory" and count > MOST_IN_MEMORY
                uneven = LAYOUTS[layout].is_uneven
                if count > most or beyond or (uneven and not is_for_uneven(backend, count)):
                    continue
                yield backend, layout, count


def is_for_uneven(backend: str, count: int) -> bool:
    """Return whether namespaces of different sizes are measured at this size."""
    return backend in PLACES and PLACES[backend].uneven and count >= LEAST_UNEVEN


def tables(points: list[tuple[str, str, int, dict[str, float]]]) -> str:
    """Return a table for each backend and layout, a column for each size."""
    lines: list[str] = []
    for backend, layout in dict.fromkeys((point[0], point[1]) for point in points):
        chosen = {
            point[2]: point[3] for point in points if (point[0], point[1]) == (backend, layout)
        }
        head = " | ".join(f"{count:,}" for count in chosen)
        lines += ["", f"| {backend}, {LAYOUTS[layout].title} | {head} |"]
        lines.append("|---" * (len(chosen) + 1) + "|")
        for figure in dict.fromkeys(name for each in chosen.values() for name in each):
            cells = (f"{each[figure]:.3g}" if figure in each else "" for each in chosen.values())
            lines.append(f"| {figure} | {' | '.join(map(plain, cells))} |")
    return "\n".join(lines)


def plain(number: str) -> str:
    """Return a number without an exponent."""
    return f"{float(number):g}" if "e" in number else number


async def scale(
    folder: Path,
    most: int = 100_000,
    backends: Sequence[str] = ("sqlite", "memory"),
    layouts: Sequence[str] = tuple(LAYOUTS),
) -> list[Row]:
    """Measure the curve up to `most` items, print it, and return the figures that have bars."""
    found: list[Any] = []
    for backend, layout, count in points(most, backends, layouts):
        inside = folder / f"{backend}-{layout}-{count}"
        inside.mkdir(exist_ok=True)
        figures = point(inside, backend, layout, count)
        found.append((backend, layout, count, figures))
        print(json.dumps(found[-1]), file=sys.stderr, flush=True)
    print(tables(found))
    return [row for each in found if each[0] in RECALL for row in _bars(*each)]


def _bars(backend: str, layout: str, count: int, found: dict[str, float]) -> list[Row]:
    where = f"{backend}, {count:,} items, {LAYOUTS[layout].title}"
    rows = [
        Row(f"{name}, {where}", figure, RECALL[backend], at_least=True)
        for name, figure in found.items()
        if name.startswith("recall@10")
    ]
    most = MOST.get(backend, {})
    return rows + [Row(f"{name}, {where}", found[name], bar) for name, bar in most.items()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=("fill", "measure", "memory"))
    parser.add_argument("backend", choices=("memory", *PLACES))
    parser.add_argument("at")
    parser.add_argument("folder", type=Path)
    parser.add_argument("count", type=int)
    parser.add_argument("layout", choices=LAYOUTS)
    given = parser.parse_args()
    if given.step == "memory":
        doing = in_memory(given.count, LAYOUTS[given.layout])
    else:
        where = PLACES[given.backend](given.at)
        path = given.folder / "filled.json"
        doing = work(given.step, where, path, given.count, LAYOUTS[given.layout])
    print(json.dumps(asyncio.run(doing)))
