"""What checkpoints on SQLite cost: bytes, time, and stalls of the event loop."""

from __future__ import annotations

import asyncio
import gc
import json
import time
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from statistics import fmean, median
from typing import Any

import orjson
from conversations import Talk
from rows import Row, typical
from shapes import SHAPES, states_of

from locus_memory.backends.sqlite.checkpoints import SQLiteCheckpointer
from locus_memory.messages import Message
from locus_memory.registry import get_checkpointer
from locus_memory.state import AgentState


async def sizes(folder: Path) -> list[Row]:
    """200 checkpoints: bytes stored and growth of the file, against full JSON each time."""
    path = folder / "sizes.db"
    async with get_checkpointer(f"sqlite:{path}", state_type=None) as checkpointer:
        await checkpointer.save({}, "empty")
    before = path.stat().st_size
    full = 0
    async with get_checkpointer(f"sqlite:{path}", state_type=None) as checkpointer:
        for state in Talk().states(200):
            full += len(orjson.dumps(state))
            await checkpointer.save(state, "t")
        stats = await checkpointer.get_storage_stats("t")
    growth = path.stat().st_size - before
    counts = f"{stats['full_checkpoints']} full, {stats['delta_checkpoints']} deltas"
    return [
        Row("bytes stored / full JSON", stats["compressed_size"] / full, 0.012, counts),
        Row("file growth / full JSON", growth / full, 0.018, f"{growth / 1e6:.2f} MB"),
    ]


class Stalls:
    """How long the event loop was held up, at worst."""

    def __init__(self) -> None:
        self.worst = 0.0

    async def watch(self) -> None:
        while True:
            start = time.perf_counter()
            await asyncio.sleep(0.001)
            self.worst = max(self.worst, time.perf_counter() - start - 0.001)


async def saves(folder: Path) -> list[Row]:
    """2,000 saves and a load: how the cost grows for dicts, and for states of messages."""
    async with SQLiteCheckpointer(folder / "saves.db", state_type=None) as checkpointer:
        dicts = await _growth(checkpointer, Talk().states(2000), "a dict", 2.5)
    async with SQLiteCheckpointer(folder / "agent.db", state_type=AgentState) as checkpointer:
        return dicts + await _growth(checkpointer, _agent_states(2000), "AgentState", 1.5)


def _agent_states(count: int) -> Iterator[AgentState]:
    talk, state = Talk(), AgentState(run_id="r")
    for turn in range(1, count + 1):
        state = state.with_messages(Message.model_validate(said) for said in talk.turn())
        yield state.with_iteration(turn)


async def _growth(
    checkpointer: SQLiteCheckpointer, states: Iterator[Any], kind: str, bar: float
) -> list[Row]:
    # What the process held before is not collected again: only our own objects count.
    gc.collect()
    gc.freeze()
    stalls = Stalls()
    taken: list[float] = []
    state: Any = None
    watcher = asyncio.create_task(stalls.watch())
    for state in states:
        start = time.perf_counter()
        await checkpointer.save(state, "t")
        taken.append(time.perf_counter() - start)
    loaded = await checkpointer.load("t")
    watcher.cancel()
    gc.unfreeze()
    assert loaded == state
    early, late = taken[20:220], taken[-200:]
    return [
        Row(
            f"median save of {kind}, last 200 of 2,000 turns / turns 20 to 220",
            median(late) / median(early),
            bar,
            f"{median(late) * 1e6:.0f} us / {median(early) * 1e6:.0f} us",
        ),
        Row(
            f"mean save of {kind}, the same",
            fmean(late) / fmean(early),
            3,
            f"{fmean(late) * 1e6:.0f} us / {fmean(early) * 1e6:.0f} us",
        ),
        Row(f"longest stall of the event loop, {kind}, ms", stalls.worst * 1e3, 20),
    ]


async def saves_of_shapes(folder: Path) -> list[Row]:
    """2,000 saves of each shape of state: how much processor time a save takes more at their end.

    A short thread and a long one are saved in turns, so whatever else runs slows both of them down.
    """
    rows = []
    for number, shape in enumerate(SHAPES):
        async with SQLiteCheckpointer(folder / f"shape{number}.db", state_type=None) as made:
            gc.collect()
            gc.freeze()
            short, long = (states_of(shape, 2000) for _ in range(2))
            for states, thread, count in ((short, "short", 50), (long, "long", 1850)):
                for state in islice(states, count):
                    await made.save(state, thread)
            taken: dict[str, list[float]] = {"short": [], "long": []}
            for pair in islice(zip(short, long, strict=False), 150):
                for state, thread in zip(pair, taken, strict=True):
                    start = time.process_time()
                    await made.save(state, thread)
                    taken[thread].append(time.process_time() - start)
            gc.unfreeze()
            assert await made.load("long") == pair[1]
        early, late = map(median, taken.values())
        rows.append(
            Row(
                f"processor time of a save, {shape.name}, turns 1,850 to 2,000 / 50 to 200",
                late / early,
                2.5,
                f"{late * 1e6:.0f} us / {early * 1e6:.0f} us",
            )
        )
    return rows


async def against_raw(folder: Path) -> list[Row]:
    """A save against a bare insert of an equal blob through the same threads, in turn."""
    path = folder / "raw.db"
    checkpointer = SQLiteCheckpointer(path, state_type=None)
    database: Any = checkpointer.storage._connection
    await database.write(lambda c: c.execute("CREATE TABLE raw (id INTEGER PRIMARY KEY, b BLOB)"))
    ours: list[float] = []
    raw: list[float] = []
    for state in Talk().states(220):
        start = time.perf_counter()
        name = await checkpointer.save(state, "t")
        ours.append(time.perf_counter() - start)
        record = await checkpointer.storage.retrieve("t", name)
        assert record is not None
        blob = record.payload
        start = time.perf_counter()
        await database.write(lambda c, b=blob: c.execute("INSERT INTO raw (b) VALUES (?)", (b,)))
        raw.append(time.perf_counter() - start)
    await checkpointer.close()
    detail = f"{median(ours[20:]) * 1e6:.0f} us / {median(raw[20:]) * 1e6:.0f} us"
    return [Row("median save / bare insert", median(ours[20:]) / median(raw[20:]), 4, detail)]


async def cold_load(folder: Path) -> list[Row]:
    """A load by a checkpointer that has loaded and saved nothing, its file open or not yet."""
    path = folder / "cold.db"
    async with SQLiteCheckpointer(path, state_type=None) as checkpointer:
        state: dict[str, Any] = {}
        for state in Talk().states(200):
            await checkpointer.save(state, "t")
    record = zlib.compress(orjson.dumps(state), 6)
    opened, closed, full = [], [], []
    for _ in range(40):
        for times, opens in ((opened, True), (closed, False)):
            times.append(await _load_fresh(path, state, opens=opens))
            full.append(typical(lambda: json.loads(zlib.decompress(record)), 1))
    ratio, from_file = median(opened) / median(full), median(closed) / median(full)
    detail = (
        f"{median(opened) * 1e3:.2f} ms / {median(full) * 1e3:.2f} ms; "
        f"{from_file:.2f} with the opening of the file"
    )
    return [Row("cold load at turn 200 / one full record", ratio, 1.8, detail)]


async def _load_fresh(path: Path, state: dict[str, Any], *, opens: bool) -> float:
    fresh = SQLiteCheckpointer(path, state_type=None)
    if opens:
        await fresh.open()
    start = time.perf_counter()
    loaded = await fresh.load("t")
    taken = time.perf_counter() - start
    await fresh.close()
    assert loaded == state
    return taken


async def large_states(folder: Path) -> list[Row]:
    """States of a million values: how long a save and a load hold the event loop up at most."""
    million = 10**6
    shapes: dict[str, dict[str, Any]] = {
        "one dict": {f"key{n}": n for n in range(million)},
        "dicts in a dict": {
            f"group{g}": {f"key{n}": f"value {n}" for n in range(1000)} for g in range(1000)
        },
        "rows": {"rows": [{f"key{n}": n for n in range(10)} for _ in range(million // 10)]},
    }
    return [
        Row(f"longest stall of the event loop, a million values, {name}, ms", stall * 1e3, 300)
        for name, stall in [(name, await _stall(folder, shapes[name])) for name in shapes]
    ]


async def _stall(folder: Path, state: dict[str, Any]) -> float:
    stalls = Stalls()
    async with SQLiteCheckpointer(folder / "large.db", state_type=None) as checkpointer:
        await checkpointer.save({}, "first")
        watcher = asyncio.create_task(stalls.watch())
        await asyncio.sleep(0.01)
        await checkpointer.save(state, "t")
        await checkpointer.save({**state, "more": "one more"}, "t")
        loaded = await checkpointer.load("t")
        await asyncio.sleep(0.01)
        watcher.cancel()
        await checkpointer.delete("t")
    assert loaded == {**state, "more": "one more"}
    return stalls.worst
