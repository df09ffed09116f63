"""64 clients in 8 processes with a mixed load, in turn with the same load on the bare driver.

`make bench ARGS="fan_out --minutes 10"` measures PostgreSQL and Redis. Each client reads and writes
a namespace of its own, and knows what it wrote last: at the end every acknowledged write is looked
up. Ours and the bare driver take turns of some seconds in the same processes, so that both have
the same machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any

import fan_out_raw as raw
import scale_data as data
from rows import Row
from scale_places import PLACES
from scale_verbs import resident

from locus_memory.registry import get_store

PROCESSES, CLIENTS = 8, 8
KEYS = 200
BACKENDS = ("postgresql", "redis")
TURN = 4.0
"""Seconds of a turn."""

# The verbs of the load with their shares.
SHARES = {"get": 50, "put": 20, "put with a vector": 10, "vector search": 10, "newest": 10}

Call = Callable[[], Awaitable[Any]]


class Ours:
    """A client of the library, which has a namespace of its own."""

    def __init__(self, store: Any, name: str) -> None:
        self.store, self.space = store, ("clients", name)

    async def get(self, key: str) -> Any:
        return await self.store.get(self.space, key)

    async def put(self, key: str, value: Any, vector: Any = None) -> None:
        if vector is None:
            await self.store.put(self.space, key, value, text="")
        else:
            await self.store.put_with_embedding(self.space, key, value, vector, text="")

    async def near(self, vector: Any) -> Any:
        return await self.store.search_by_embedding(self.space, vector, 10)

    async def newest(self) -> Any:
        return await self.store.search(self.space, None, 10)


class Client:
    """The load of one client.

    Attributes:
        last: The value of each key that was written last and acknowledged.
        taken: The seconds of each call.
        errors: The errors of calls.
    """

    def __init__(self, target: Any, number: int) -> None:
        self.target = target
        self.chance = random.Random(number)
        self.texts = data.texts(KEYS, number)
        self.vectors = [row.tolist() for row in data.vectors(KEYS, number)]
        self.last: dict[str, Any] = {}
        self.taken: list[float] = []
        self.errors: list[str] = []
        self.count = 0

    async def fill(self) -> None:
        for number in range(KEYS):
            await self.write(number, self.vectors[number])

    async def write(self, number: int, vector: Any = None) -> None:
        self.count += 1
        value = {"text": self.texts[number], "count": self.count}
        await self.target.put(f"{number}", value, vector)
        self.last[f"{number}"] = value

    def call(self) -> Awaitable[Any]:
        """Return the next call of the load."""
        number = self.chance.randrange(KEYS)
        [verb] = self.chance.choices(list(SHARES), list(SHARES.values()))
        if verb == "get":
            return self.target.get(f"{number}")
        if verb == "vector search":
            return self.target.near(self.vectors[number])
        if verb == "newest":
            return self.target.newest()
        return self.write(number, self.vectors[number] if "vector" in verb else None)

    async def run(self, until: float) -> None:
        while (start := time.monotonic()) < until:
            try:
                await self.call()
            except Exception as error:  # noqa: BLE001 - it is counted, whatever it is
                self.errors.append(f"{type(error).__name__}: {error}")
            self.taken.append(time.monotonic() - start)

    async def lost(self) -> int:
        """Return how many acknowledged writes are not there."""
        found = [await self.target.get(key) for key in self.last]
        return sum(value != self.last[key] for key, value in zip(self.last, found, strict=True))


async def work(backend: str, at: str, process: int, seconds: float) -> dict[str, Any]:
    """Run the clients of one process; the turns begin at round moments in all processes."""
    place: Any = PLACES[backend](at)
    async with (
        get_store(place.url, pool_size=CLIENTS) as store,
        raw.opened(backend, place.url, CLIENTS) as bare,
    ):
        numbers = [process * CLIENTS + each for each in range(CLIENTS)]
        ours = [Client(Ours(store, f"{number}"), number) for number in numbers]
        theirs = [Client(bare.client(f"{number}"), number) for number in numbers]
        await asyncio.gather(*(client.fill() for client in (*ours, *theirs)))
        memory: list[float] = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for clients in (ours, theirs):
                await _turn(clients)
            memory.append(resident())
        lost = sum(await asyncio.gather(*(client.lost() for client in ours)))
    return {"ours": _figures(ours), "raw": _figures(theirs), "lost": lost, "memory": memory}


async def _turn(clients: list[Client]) -> None:
    """Run clients until the next round moment, which is the same in every process."""
    left = TURN - time.monotonic() % TURN
    if left < TURN / 2:
        await asyncio.sleep(left)
        left = TURN
    until = time.monotonic() + left
    await asyncio.gather(*(client.run(until) for client in clients))


def _figures(clients: list[Client]) -> dict[str, Any]:
    return {
        "taken": [round(each, 6) for client in clients for each in client.taken],
        "errors": [each for client in clients for each in client.errors],
    }


def together(backend: str, folder: Path, seconds: float) -> dict[str, Any]:
    """Run all processes against a server of their own; return the figures of all of them."""
    with PLACES[backend].made(folder) as place:
        asyncio.run(raw.prepare(backend, place.url))
        command = [sys.executable, __file__, backend, place.at]
        started = [
            subprocess.Popen(
                [*command, str(number), str(seconds)], stdout=subprocess.PIPE, text=True
            )
            for number in range(PROCESSES)
        ]
        outputs = [each.communicate()[0] for each in started]
    if any(each.returncode for each in started):
        raise RuntimeError(f"{backend}: a process of the load failed")
    return merged([json.loads(output) for output in outputs])


def merged(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of all processes."""
    result: dict[str, Any] = {"lost": sum(each["lost"] for each in found)}
    for who in ("ours", "raw"):
        taken = sorted(time for each in found for time in each[who]["taken"])
        result[who] = {
            "calls": len(taken),
            "p50": taken[len(taken) // 2],
            "p99": taken[len(taken) * 99 // 100],
            "errors": [error for each in found for error in each[who]["errors"]],
        }
    # The first quarter fills caches.
    result["growth"] = max(
        each["memory"][-1] / each["memory"][len(each["memory"]) // 4] for each in found
    )
    result["memory"] = median(each["memory"][-1] for each in found)
    return result


async def fan_out(folder: Path, minutes: float = 10.0) -> list[Row]:
    """Measure the load on each server."""
    rows: list[Row] = []
    for backend in BACKENDS:
        found = await asyncio.to_thread(together, backend, folder, minutes * 60)
        ours, bare = found["ours"], found["raw"]
        calls = f"{ours['calls']:,} / {bare['calls']:,} calls"
        times = f"{ours['p50'] * 1e3:.1f} / {ours['p99'] * 1e3:.1f} ms"
        theirs = f"; the bare driver {bare['p50'] * 1e3:.1f} / {bare['p99'] * 1e3:.1f} ms"
        name = f"{backend}: 64 clients in 8 processes"
        rows += [
            Row(f"{name}, calls / bare driver", ours["calls"] / bare["calls"], 0.3, calls, True),
            Row(f"{name}, p99 / p50", ours["p99"] / ours["p50"], 10, times + theirs),
            Row(f"{name}, errors", len(ours["errors"]), 0, "; ".join(ours["errors"][:3])),
            Row(f"{name}, lost writes", found["lost"], 0),
            Row(f"{name}, RSS at the end / after a quarter", found["growth"], 1.1),
        ]
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("backend", choices=BACKENDS)
    parser.add_argument("at")
    parser.add_argument("process", type=int)
    parser.add_argument("seconds", type=float)
    given = parser.parse_args()
    print(json.dumps(asyncio.run(work(given.backend, given.at, given.process, given.seconds))))
