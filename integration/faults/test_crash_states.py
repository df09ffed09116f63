"""A loss of power at any moment: what was acknowledged is there, the rest is whole or absent."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from integration.faults.crash_states import built, crash_states, laid_out, recorded
from locus_memory import FileCheckpointer, SQLiteBackend

pytestmark = pytest.mark.slow

CALLS = [
    ("save", "t", "a", 1),
    ("save", "t", "b", 2),
    ("save", "t", "c", 3),
    # Again, under its id.
    ("save", "t", "a", 4),
    ("delete", "t", "b"),
    ("copy", "t", "Long" * 100),
    ("save", "Long" * 100, "d", 5),
    ("prune", "Long" * 100, 1),
    ("delete", "t", "a"),
    ("prune", "t", 1),
    ("save", "t", "e", 6),
    ("save", "t", "f", 7),
    ("prune", "t", 1),
    ("delete", "t"),
    ("save", "t", "a", 8),
]
ITEMS = [("put", "k", 1), ("put", "k", 2), ("remove", "k"), ("put", "l", 3)]

PROGRAM = """
import asyncio, json, os, sys
from contextlib import suppress
from locus_memory import FileCheckpointer, SQLiteBackend
from integration.faults.test_crash_states import state

async def do(checkpointer, store, verb, thread, *rest):
    if verb == "save":
        await checkpointer.save(state(rest[1]), thread, rest[0])
    elif verb == "copy":
        await checkpointer.copy_thread(thread, rest[0])
    elif verb == "prune":
        await checkpointer.prune(thread, keep_last=rest[0])
    elif verb == "delete":
        await checkpointer.delete(thread, *rest)
    elif verb == "put":
        await store.put(("a",), thread, rest[0])
    else:
        await store.delete(("a",), thread)

async def main(folder, kind, calls):
    if kind == "file":
        opened = FileCheckpointer(f"{folder}/base", state_type=None)
        checkpointer, store = opened, None
    else:
        opened = SQLiteBackend(
            f"{folder}/new/a.db", synchronous="full", checkpointer_options={"state_type": None}
        )
        checkpointer, store = opened.checkpointer, opened.store
    async with opened:
        for n, call in enumerate(json.loads(calls)):
            await do(checkpointer, store, *call)
            with suppress(FileNotFoundError):
                os.unlink(f"{folder}/ack {n}")

asyncio.run(main(*sys.argv[1:]))
"""


def state(n):
    return {"n": n, "messages": [f"{each} " * 8 for each in range(n + 12)]}


def histories(calls):
    """Yield what the calls leave, before the first and after each: threads, and items."""
    threads, items = {}, {}
    yield {}, {}
    for verb, name, *rest in calls:
        old = threads.get(name, {})
        if verb == "save":
            threads[name] = {k: v for k, v in old.items() if k != rest[0]} | {rest[0]: rest[1]}
        elif verb == "copy":
            threads[rest[0]] = old
        elif verb == "prune":
            threads[name] = dict(list(old.items())[-rest[0] :])
        elif verb == "delete":
            threads[name] = {k: v for k, v in old.items() if rest and k != rest[0]}
        elif verb == "put":
            items = {**items, name: rest[0]}
        else:
            items = {key: value for key, value in items.items() if key != name}
        threads = {thread: saved for thread, saved in threads.items() if saved}
        yield dict(threads), items


async def read(checkpointer):
    """Return the threads, with the number of each state, oldest first."""
    threads = {}
    for thread in await checkpointer.list_threads():
        names = await checkpointer.list_checkpoints(thread, 100)
        loaded = {name: await checkpointer.load(thread, name) for name in reversed(names)}
        threads[thread] = {name: found["n"] for name, found in loaded.items()}
        assert all(found == state(found["n"]) for found in loaded.values())
    return threads


def in_order(found):
    threads, items = found
    return {thread: list(saved.items()) for thread, saved in threads.items()}, items


def check(found, acknowledged, expected):
    allowed = [in_order(each) for each in expected[acknowledged : acknowledged + 2]]
    assert in_order(found) in allowed


async def delete_one_by_one(checkpointer):
    """No deletion brings an earlier state of its id back."""
    for thread in await checkpointer.list_threads():
        for name in await checkpointer.list_checkpoints(thread, 100):
            assert await checkpointer.delete(thread, name)
            assert await checkpointer.load(thread, name) is None


@pytest.fixture(scope="module")
def recorder(tmp_path_factory):
    library = built(tmp_path_factory.mktemp("recorder"))
    if library is None:
        pytest.skip("a record of system calls needs Linux and a C compiler")
    return library


@pytest.fixture
def memory():
    """Return a folder in memory, if there is one: thousands of states are read in it."""
    place = Path("/dev/shm")
    with TemporaryDirectory(dir=place if place.is_dir() else None) as folder:
        yield Path(folder)


async def test_files(tmp_path, recorder, memory):
    (tmp_path / "disk").mkdir()
    steps = recorded(recorder, PROGRAM, tmp_path / "disk", "file", json.dumps(CALLS))
    expected, states = list(histories(CALLS)), 0
    for acknowledged, files in crash_states(tmp_path / "disk", steps):
        folder = laid_out(files, memory)
        async with FileCheckpointer(folder / "base", state_type=None) as checkpointer:
            # Readers complete nothing; the next writer does.
            check((await read(checkpointer), {}), acknowledged, expected)
            await delete_one_by_one(checkpointer)
            assert await read(checkpointer) == {}
        shutil.rmtree(folder)
        states += 1
    assert states > 200


async def test_sqlite(tmp_path, recorder, memory):
    (tmp_path / "disk").mkdir()
    calls = [*CALLS[:9], *ITEMS]
    steps = recorded(recorder, PROGRAM, tmp_path / "disk", "sqlite", json.dumps(calls))
    expected, states = list(histories(calls)), 0
    for acknowledged, files in crash_states(tmp_path / "disk", steps):
        # It is shared memory, which a loss of power clears.
        kept = {path: content for path, content in files.items() if path.suffix != ".db-shm"}
        folder = laid_out(kept, memory)
        (folder / "new").mkdir(exist_ok=True)
        async with SQLiteBackend(
            folder / "new" / "a.db", checkpointer_options={"state_type": None}
        ) as backend:
            items = {key: await backend.store.get(("a",), key) for key in ("k", "l")}
            there = {key: value for key, value in items.items() if value is not None}
            check((await read(backend.checkpointer), there), acknowledged, expected)
        shutil.rmtree(folder)
        states += 1
    assert states > 100
