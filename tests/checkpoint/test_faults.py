"""What a database file, a folder and a process can suffer, and what must survive it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from locus_memory.backends.file.checkpoints import FileCheckpointer
from locus_memory.backends.sqlite.checkpoints import SQLiteCheckpointer
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.errors import CheckpointCorruptError, LocusMemoryError
from locus_memory.events import subscribe

STORM = """
import asyncio, sys
from locus_memory.backends.file.checkpoints import FileCheckpointer
from locus_memory.backends.sqlite.checkpoints import SQLiteCheckpointer

async def thread(checkpointer, name, count):
    state = {"messages": [], "thread": name}
    for index in range(count):
        state["messages"].append({"role": "user", "content": f"{name} {index} " * 20})
        await checkpointer.save(state, name, f"c{index}")
        print(name, index, flush=True)

async def main(kind, place, prefix, count):
    make = {"file": FileCheckpointer, "sqlite": SQLiteCheckpointer}[kind]
    async with make(place, state_type=None) as checkpointer:
        await asyncio.gather(*(thread(checkpointer, f"{prefix}{n}", count) for n in range(4)))

asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
"""

KINDS = {"file": FileCheckpointer, "sqlite": SQLiteCheckpointer}


def storm(kind: str, place: Path, prefix: str, count: int, **options: Any) -> subprocess.Popen[str]:
    """Start a process that saves, and says what was acknowledged."""
    arguments = [sys.executable, "-c", STORM, kind, str(place), prefix, str(count)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, **options)


def run(program: str, *arguments: str) -> str:
    """Run a program in a process of its own to its end; returns what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def expected(name: str, index: int) -> dict[str, Any]:
    messages = [{"role": "user", "content": f"{name} {n} " * 20} for n in range(index + 1)]
    return {"messages": messages, "thread": name}


async def check_acknowledged(checkpointer: DeltaCheckpointer, said: list[str]) -> None:
    """Assert that everything acknowledged loads, and nothing is half there."""
    acknowledged: dict[str, int] = {}
    for line in said:
        name, index = line.split()
        acknowledged[name] = int(index)
    for name, last in acknowledged.items():
        names = await checkpointer.list_checkpoints(name, 10_000)
        assert names == [f"c{index}" for index in reversed(range(len(names)))]
        assert len(names) in (last + 1, last + 2)
        for index in {0, last // 2, last, len(names) - 1}:
            assert await checkpointer.load(name, f"c{index}") == expected(name, index)


async def kill_writers(kind: str, place: Path, rounds: range) -> None:
    """Kill a process a round while it saves; assert that all it acknowledged is there."""
    said: dict[int, list[str]] = {}
    for round_ in rounds:
        process = storm(kind, place, f"r{round_}-", 10_000)
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(5 + round_ * 3)]
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.readlines()
        process.stdout.close()
        process.wait()
        # The last line may be cut: it was not acknowledged.
        said[round_] = [line for line in lines if line.endswith("\n")]
    async with KINDS[kind](place, state_type=None) as checkpointer:
        for lines in said.values():
            await check_acknowledged(checkpointer, lines)
        assert await checkpointer.save({}, "next")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
async def test_every_acknowledged_save_survives_sigkill(kind, tmp_path):
    # All twenty rounds are in `integration/`.
    await kill_writers(kind, tmp_path / "place", range(0, 20, 7))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
async def test_four_processes_lose_nothing(kind, tmp_path):
    processes = [storm(kind, tmp_path / "place", f"p{n}-", 25) for n in range(4)]
    said = [await asyncio.to_thread(process.communicate) for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    async with KINDS[kind](tmp_path / "place", state_type=None) as checkpointer:
        for lines, _ in said:
            await check_acknowledged(checkpointer, lines.splitlines())
        threads = await checkpointer.list_threads()
        assert len(threads) == 16
        for thread in threads:
            assert len(await checkpointer.list_checkpoints(thread, 100)) == 25


ONE_THREAD = """
import asyncio, sys
from locus_memory.backends.file.checkpoints import FileCheckpointer
from locus_memory.backends.sqlite.checkpoints import SQLiteCheckpointer

async def main(kind, place, mark):
    make = {"file": FileCheckpointer, "sqlite": SQLiteCheckpointer}[kind]
    async with make(place, state_type=None) as checkpointer:
        for index in range(25):
            state = {"by": mark, "index": index, "x": "y" * index}
            await checkpointer.save(state, "t", f"{mark}-{index}")

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
async def test_four_processes_on_one_thread_lose_nothing(kind, tmp_path):
    place = str(tmp_path / "place")
    await asyncio.gather(
        *(asyncio.to_thread(run, ONE_THREAD, kind, place, str(n)) for n in range(4))
    )
    async with KINDS[kind](place, state_type=None) as checkpointer:
        names = await checkpointer.list_checkpoints("t", 1000)
        assert sorted(names) == sorted(f"{mark}-{n}" for mark in range(4) for n in range(25))
        for name in names:
            mark, index = name.split("-")
            state = {"by": mark, "index": int(index), "x": "y" * int(index)}
            assert await checkpointer.load("t", name) == state
        # Each process's own saves keep their order.
        for mark in range(4):
            own = [int(name.split("-")[1]) for name in names if name.startswith(f"{mark}-")]
            assert own == sorted(own, reverse=True)


async def fill(checkpointer: DeltaCheckpointer, count: int) -> None:
    for index in range(count):
        await checkpointer.save(expected("t", index), "t", f"c{index}", {"step": index})


async def survey(checkpointer: DeltaCheckpointer, count: int) -> set[int]:
    """Return which checkpoints are refused as damaged; all others must load as saved."""
    refused: set[int] = set()
    for index in range(count):
        try:
            loaded = await checkpointer.load("t", f"c{index}")
        except CheckpointCorruptError:
            refused.add(index)
        else:
            assert loaded == expected("t", index)
    return refused


@pytest.mark.slow
async def test_a_flipped_byte_in_a_file_is_never_wrong_data(tmp_path):
    async with FileCheckpointer(tmp_path, state_type=None) as checkpointer:
        await fill(checkpointer, 12)
        path = sorted(tmp_path.glob("t-t/*.ckpt"))[5]
        whole = path.read_bytes()
        for place in range(0, len(whole), 3):
            damaged = bytearray(whole)
            damaged[place] ^= 0x10
            path.write_bytes(damaged)
            assert await survey(checkpointer, 12) == {5, 6, 7, 8, 9, 10, 11}
        path.write_bytes(whole[:40])
        assert await survey(checkpointer, 12) == {5, 6, 7, 8, 9, 10, 11}
        path.unlink()
        assert await survey_missing(checkpointer) == {6, 7, 8, 9, 10, 11}


@pytest.mark.slow
@pytest.mark.parametrize("thread", ["t", "A" * 300])
async def test_a_flipped_bit_in_the_head_of_a_file_is_never_told_as_true(tmp_path, thread):
    async with FileCheckpointer(tmp_path, state_type=None) as checkpointer:
        await checkpointer.save({"n": 1}, thread, "c", {"step": 1, "é": [1.5, None]})
        (path,) = tmp_path.rglob("*.ckpt")
        whole = path.read_bytes()
        true = await checkpointer.list_with_metadata(thread)
        unseen: list[int] = []
        for bit in range(0, 8 * (whole.index(b"\n") + 1), 1 if thread == "t" else 7):
            damaged = bytearray(whole)
            damaged[bit // 8] ^= 1 << bit % 8
            path.write_bytes(damaged)
            try:
                told = await checkpointer.list_with_metadata(thread)
            except CheckpointCorruptError:
                continue
            # The last digit of a time may have a neighbour that reads as the same number.
            assert told == true
            unseen.append(bit)
        assert len(unseen) <= 3
        for line in (b"", b"[]", b"7", b"{}", b"\xff", whole.replace(b"1", b"null")):
            path.write_bytes(line + b"\n")
            for call in (
                checkpointer.load(thread),
                checkpointer.get_metadata(thread),
                checkpointer.query_by_metadata({"step": 1}),
            ):
                with pytest.raises(CheckpointCorruptError):
                    await call
        path.write_bytes(whole)
        assert await checkpointer.query_by_metadata({"step": 1}) == true
        assert await checkpointer.list_threads() == [thread]


async def survey_missing(checkpointer: DeltaCheckpointer) -> set[int]:
    assert await checkpointer.load("t", "c5") is None
    refused: set[int] = set()
    for index in [*range(5), *range(6, 12)]:
        try:
            assert await checkpointer.load("t", f"c{index}") == expected("t", index)
        except CheckpointCorruptError:
            refused.add(index)
    return refused


async def test_a_flipped_byte_in_a_row_is_never_wrong_data(tmp_path):
    path = tmp_path / "memory.db"
    async with SQLiteCheckpointer(path, state_type=None) as checkpointer:
        await fill(checkpointer, 12)
    with sqlite3.connect(path) as connection:
        (payload,) = connection.execute(
            "SELECT payload FROM checkpoints WHERE checkpoint_id = 'c5'"
        ).fetchone()
        for place in range(0, len(payload), 7):
            damaged = bytearray(payload)
            damaged[place] ^= 0x10
            update = "UPDATE checkpoints SET payload = ? WHERE checkpoint_id = 'c5'"
            connection.execute(update, (bytes(damaged),))
            connection.commit()
            async with SQLiteCheckpointer(path, state_type=None) as checkpointer:
                assert await survey(checkpointer, 12) == {5, 6, 7, 8, 9, 10, 11}
    connection.close()


@pytest.mark.slow
async def test_flipped_bytes_in_a_database_file_are_never_wrong_data(tmp_path):
    path = tmp_path / "memory.db"
    async with SQLiteCheckpointer(path, state_type=None) as checkpointer:
        await fill(checkpointer, 12)
    whole = path.read_bytes()
    for place in range(100, len(whole), 997):
        damaged = bytearray(whole)
        damaged[place] ^= 0x10
        path.write_bytes(damaged)
        checkpointer = SQLiteCheckpointer(path, state_type=None)
        for index in range(12):
            with contextlib.suppress(LocusMemoryError):
                assert await checkpointer.load("t", f"c{index}") in (None, expected("t", index))
        await checkpointer.close()


FULL_DISK = """
import asyncio, json, resource, signal, sys
from locus_memory.backends.file.checkpoints import FileCheckpointer
from locus_memory.backends.sqlite.checkpoints import SQLiteCheckpointer
from locus_memory.errors import BackendWriteError

async def main(kind, place):
    make = {"file": FileCheckpointer, "sqlite": SQLiteCheckpointer}[kind]
    saved = []
    async with make(place, state_type=None) as checkpointer:
        await checkpointer.save({"n": -1}, "t", "c-1")
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
        import random
        try:
            for index in range(400):
                text = random.Random(index).randbytes(2000 * (index + 1)).hex()
                await checkpointer.save({"n": index, "text": text}, "t", f"c{index}")
                saved.append(index)
        except BackendWriteError as error:
            assert "database is locked" not in str(error)
            print(json.dumps(saved))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
async def test_a_full_disk_is_a_clear_error_and_loses_nothing(kind, tmp_path):
    place = str(tmp_path / "place")
    saved = json.loads(await asyncio.to_thread(run, FULL_DISK, kind, place))
    assert saved
    async with KINDS[kind](place, state_type=None) as checkpointer:
        assert await checkpointer.load("t", "c-1") == {"n": -1}
        for index in saved:
            assert (await checkpointer.load("t", f"c{index}"))["n"] == index
        names = await checkpointer.list_checkpoints("t", 1000)
        assert names == [f"c{index}" for index in [*reversed(saved), -1]]
        await checkpointer.save({"n": "more"}, "t")


READ_ONLY = """
import asyncio, concurrent.futures.thread, os, sys, urllib.parse
from locus_memory.backends.file.checkpoints import FileCheckpointer
from locus_memory.backends.sqlite.checkpoints import SQLiteCheckpointer
from locus_memory.errors import BackendWriteError

async def main(kind, place):
    make = {"file": FileCheckpointer, "sqlite": SQLiteCheckpointer}[kind]
    async with make(place, state_type=None) as checkpointer:
        assert await checkpointer.load("t") == {"n": 1}
        assert await checkpointer.list_threads() == ["t"]
        for attempt in (checkpointer.save({"n": 2}, "t"), checkpointer.delete("t")):
            try:
                await attempt
            except BackendWriteError:
                continue
            raise SystemExit("it was written")

if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
async def test_what_is_read_only_is_read_and_refuses_to_be_written(kind, tmp_path):
    place = tmp_path / "place"
    async with KINDS[kind](place, state_type=None) as checkpointer:
        await checkpointer.save({"n": 1}, "t")
    for path in [tmp_path, *tmp_path.rglob("*"), *tmp_path.parents]:
        if path.is_relative_to(tmp_path):
            path.chmod(0o555 if path.is_dir() else 0o444)
        elif path.is_relative_to(tmp_path.parents[2]):
            path.chmod(path.stat().st_mode | 0o055)
    try:
        await asyncio.to_thread(run, READ_ONLY, kind, str(place))
    finally:
        for path in [tmp_path, *tmp_path.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
    async with KINDS[kind](place, state_type=None) as checkpointer:
        assert await checkpointer.load("t") == {"n": 1}


async def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    (tmp_path / "kept").mkdir()
    for kind, make in KINDS.items():
        async with make(tmp_path / "kept" / kind, state_type=None) as fine:
            await fine.save({}, "t")
        with pytest.raises(LocusMemoryError, match="file"):
            await make(tmp_path / "file" / "below", state_type=None).save({}, "t")


async def test_vacuum_goes_on_past_a_damaged_thread(tmp_path):
    async with FileCheckpointer(tmp_path, state_type=None) as checkpointer:
        for thread in ("a", "b", "c"):
            for index in range(3):
                await checkpointer.save(expected(thread, index), thread)
        sorted(tmp_path.glob("t-b/*.ckpt"))[1].write_bytes(b"damaged")
        seen: list[str] = []
        stop = subscribe(lambda event: seen.append(event.name))
        assert await checkpointer.vacuum(older_than_days=0) == 4
        stop()
        assert "checkpoint.not_pruned" in seen
        await checkpointer.save({"goes": "on"}, "b")
        assert await checkpointer.load("b") == {"goes": "on"}
