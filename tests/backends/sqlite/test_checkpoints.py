"""What only the checkpoints of a SQLite file can do wrong."""

from __future__ import annotations

import contextlib
import random
import sqlite3

import pytest

from locus_memory.backends.sqlite.checkpoints import SQLiteCheckpointer
from locus_memory.errors import CheckpointCorruptError, LocusMemoryError


def noise(seed: int) -> dict[str, str]:
    return {"text": random.Random(seed).randbytes(100_000).hex()}


@pytest.mark.slow
async def test_vacuum_gives_the_space_back(tmp_path):
    path = tmp_path / "memory.db"
    async with SQLiteCheckpointer(path, state_type=None) as checkpointer:
        for number in range(50):
            await checkpointer.save(noise(number), "t")
        assert await checkpointer.prune("t", keep_last=1) == 49
        await checkpointer.vacuum(0)
        assert await checkpointer.load("t") == noise(49)
    assert path.stat().st_size < 500_000


DAMAGES = [
    ("checkpoint_id", "'c9'"),
    ("checkpoint_id", "CAST(x'63ff' AS TEXT)"),
    ("checkpoint_id", "x'63ff'"),
    ("checkpoint_id", "char(2, 9)"),
    ("checkpoint_id", "char(2)"),
    ("revision", "revision + 1"),
    ("revision", "'text'"),
    ("base", "1"),
    ("base", "x'00'"),
    ("level", "'text'"),
    ("level", "1e300"),
    ("created_at", "created_at + 1"),
    ("created_at", "'text'"),
    ("created_at", "1e300"),
    ("metadata", """'{"step":8}'"""),
    ("metadata", "'[1]'"),
    ("metadata", "'{'"),
    ("metadata", "CAST(x'7bff' AS TEXT)"),
    ("metadata", "'7'"),
    ("size", "size + 1"),
    ("size", "-1"),
    ("size", "1 << 62"),
    ("size", "'text'"),
    ("seal", "seal + 1"),
    ("seal", "'text'"),
]


@pytest.mark.parametrize(("column", "value"), DAMAGES)
async def test_a_damaged_head_is_never_told_as_true(tmp_path, column, value):
    path = tmp_path / "memory.db"
    async with SQLiteCheckpointer(path, state_type=None) as checkpointer:
        await checkpointer.save({"n": 1}, "t", "c0", {"step": 1})
        await checkpointer.save({"n": 1}, "other", "c0", {"step": 1})
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(f"UPDATE checkpoints SET {column} = {value} WHERE thread = 1")
    connection.close()
    async with SQLiteCheckpointer(path, state_type=None) as checkpointer:
        for call in (
            checkpointer.load("t"),
            checkpointer.get_metadata("t"),
            checkpointer.list_checkpoints("t"),
            checkpointer.list_with_metadata("t"),
            checkpointer.get_storage_stats("t"),
            checkpointer.query_by_metadata({}),
            checkpointer.prune("t", keep_last=1),
        ):
            with pytest.raises(CheckpointCorruptError, match="'t'"):
                await call
        with contextlib.suppress(CheckpointCorruptError):
            # What is damaged may no longer match.
            found = await checkpointer.query_by_metadata({"step": 1})
            assert [info.thread_id for info in found] == ["other"]
        await checkpointer.save({"n": 2}, "t")
        assert await checkpointer.load("t") == {"n": 2}
        assert await checkpointer.load("other") == {"n": 1}
        assert await checkpointer.get_metadata("other", "c0") == {"step": 1}
        assert await checkpointer.delete("t")
        assert len(await checkpointer.query_by_metadata({"step": 1})) == 1


async def test_threads_read_together_are_those_read_alone_and_a_damaged_one_is_named(tmp_path):
    async with SQLiteCheckpointer(tmp_path / "memory.db", state_type=None) as checkpointer:
        for number in range(10):
            await checkpointer.save({"n": number}, "t" if number % 3 else "other")
        names = ["t", "nobody", "other"]
        alone = [await checkpointer.list_with_metadata(name, 5) for name in names]
        assert await checkpointer.list_newest(names, 5) == alone
        update = "UPDATE checkpoints SET metadata = CAST(x'7bff' AS TEXT) WHERE thread = 1"
        await checkpointer.storage._connection.write(lambda c: c.execute(update))
        assert await checkpointer.list_newest(["t"], 5) == alone[:1]
        with pytest.raises(CheckpointCorruptError, match="'other'"):
            await checkpointer.list_newest(names, 5)


async def test_a_payload_of_another_type_is_damaged(tmp_path):
    path = tmp_path / "memory.db"
    async with SQLiteCheckpointer(path, state_type=None) as checkpointer:
        await checkpointer.save({"n": 1}, "t", "c0")
        for value in ("7", "'text'", "2.5", "CAST(x'ff' AS TEXT)"):
            update = f"UPDATE checkpoints SET payload = {value}"
            await checkpointer.storage._connection.write(lambda c, update=update: c.execute(update))
            with pytest.raises(CheckpointCorruptError, match="'t'"):
                await checkpointer.load("t")
            assert await checkpointer.list_checkpoints("t") == ["c0"]


@pytest.mark.parametrize("value", ["CAST(x'74ff' AS TEXT)", "char(2, 9)", "char(2)"])
async def test_a_damaged_name_of_a_thread_is_named(tmp_path, value):
    async with SQLiteCheckpointer(tmp_path / "memory.db", state_type=None) as checkpointer:
        await checkpointer.save({"n": 1}, "t", "c0")
        update = f"UPDATE threads SET thread_id = {value}"
        await checkpointer.storage._connection.write(lambda c: c.execute(update))
        for call in (checkpointer.list_threads(), checkpointer.query_by_metadata({})):
            with pytest.raises(CheckpointCorruptError, match="its name is damaged"):
                await call


async def test_an_index_that_leads_elsewhere_is_noticed(tmp_path):
    path = tmp_path / "memory.db"
    async with SQLiteCheckpointer(path, state_type=None) as checkpointer:
        await checkpointer.save({"n": 1}, "t", "c-first", {"step": 1})
        await checkpointer.save({"n": 2}, "t", "c-later")
    whole = path.read_bytes()
    places = [place for place in range(len(whole)) if whole.startswith(b"c-first", place)]
    refused = 0
    for place in places:
        path.write_bytes(whole[:place] + b"c-worst" + whole[place + 7 :])
        async with SQLiteCheckpointer(path, state_type=None) as checkpointer:
            for name in ("c-first", "c-worst"):
                for read in (checkpointer.load, checkpointer.get_metadata):
                    try:
                        assert await read("t", name) in (None, {"n": 1}, {"step": 1})
                    except CheckpointCorruptError:
                        refused += 1
    # In the table, and in the index by name.
    assert len(places) >= 2
    assert refused >= 2


@pytest.mark.slow
async def test_damage_anywhere_is_an_error_of_ours_or_harmless(tmp_path):
    path = tmp_path / "memory.db"
    async with SQLiteCheckpointer(path, state_type=None) as checkpointer:
        for number in range(4):
            await checkpointer.save({"n": number}, "t", f"c{number}", {"step": number})
    whole = path.read_bytes()
    chance = random.Random(7)
    for _ in range(250):
        # Half of it in the schema, which fills most of the first pages.
        place = chance.randrange(100, chance.choice((3 * 4096, len(whole))))
        damaged = bytearray(whole)
        damaged[place] = chance.choice((0xFF, 0x00, damaged[place] ^ 0x10))
        path.write_bytes(damaged)
        checkpointer = SQLiteCheckpointer(path, state_type=None)
        with contextlib.suppress(LocusMemoryError):
            assert await checkpointer.load("t", "c2") in (None, {"n": 2})
        with contextlib.suppress(LocusMemoryError):
            assert await checkpointer.get_metadata("t", "c2") in (None, {"step": 2})
        with contextlib.suppress(LocusMemoryError):
            for info in await checkpointer.list_with_metadata("t"):
                assert info.metadata == {"step": int(info.checkpoint_id[1:])}
        with contextlib.suppress(LocusMemoryError):
            await checkpointer.query_by_metadata({"step": 1})
        with contextlib.suppress(LocusMemoryError):
            await checkpointer.list_threads()
        with contextlib.suppress(LocusMemoryError):
            await checkpointer.save({"n": 5}, "t")
        await checkpointer.close()
        for log in tmp_path.glob("memory.db-*"):
            log.unlink()


@pytest.mark.parametrize(("path", "outlives"), [(":memory:", False), ("a.db", True)])
async def test_what_outlives_the_process_says_so(tmp_path, monkeypatch, path, outlives):
    monkeypatch.chdir(tmp_path)
    async with SQLiteCheckpointer(path) as checkpointer:
        assert checkpointer.capabilities.persistent_checkpoint_ids is outlives
