"""New databases, logs, backups, archives and folders are readable by their owner alone."""

from __future__ import annotations

import os
import sqlite3
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from locus_memory import get_checkpointer, open_backend
from locus_memory.backends.folders import create_private
from locus_memory.backends.sqlite.upkeep.backups import backup, restore
from locus_memory.transfer import write_archive

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")


@pytest.fixture(autouse=True, params=[0o000, 0o022, 0o077], ids=oct)
def umask(request):
    """Work under each of these masks, which take nothing, little and all from others."""
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def open_to_others(folder):
    """Return the paths in a folder that others may use."""
    return [str(path) for path in folder.rglob("*") if mode(path) & 0o077]


async def fill(url, **options):
    async with open_backend(url, state_type=None, **options) as backend:
        await backend.store.put(("users", "ada"), "diet", "No walnuts.")
        for turn in range(5):
            await backend.checkpointer.save({"turn": turn}, "trip", f"c{turn}")
        yield backend


async def test_a_new_database_and_its_logs(tmp_path):
    path = tmp_path / "made" / "agent.db"
    async for _ in fill(f"sqlite:{path}"):
        names = {each.name for each in path.parent.iterdir()}
        assert {"agent.db", "agent.db-wal", "agent.db-shm"} <= names
        assert open_to_others(tmp_path) == []


async def test_a_rollback_journal(tmp_path):
    path = tmp_path / "agent.db"
    async for _ in fill(f"sqlite:{path}"):
        pass
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA journal_mode = PERSIST")
        other.execute("CREATE TABLE mine (x)")
        other.commit()
    assert (tmp_path / "agent.db-journal").exists()
    assert open_to_others(tmp_path) == []


async def test_a_database_behind_a_link_that_leads_nowhere_yet(tmp_path):
    (tmp_path / "link.db").symlink_to(tmp_path / "real.db")
    async for _ in fill(f"sqlite:{tmp_path / 'link.db'}"):
        assert mode(tmp_path / "real.db") == 0o600


@pytest.mark.parametrize("given", [0o640, 0o664, 0o600, 0o644])
async def test_an_existing_database_keeps_its_mode(tmp_path, given):
    path = tmp_path / "agent.db"
    path.touch()
    path.chmod(given)
    async for _ in fill(f"sqlite:{path}"):
        assert {mode(each) for each in tmp_path.iterdir()} == {given}


async def test_a_folder_of_checkpoints(tmp_path):
    folder = tmp_path / "checkpoints"
    async with get_checkpointer(f"file:{folder}", state_type=None) as checkpointer:
        for turn in range(30):
            await checkpointer.save({"turn": turn}, "trip", f"c{turn}")
        await checkpointer.save({"turn": 0}, "a" * 400)
        await checkpointer.copy_thread("trip", "copy")
        await checkpointer.prune("trip", keep_last=2)
        assert mode(folder) == 0o700
        assert len(list(folder.rglob("*"))) > 10
        assert open_to_others(tmp_path) == []


async def test_an_existing_folder_of_checkpoints_keeps_its_mode(tmp_path):
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    folder.chmod(0o750)
    async with get_checkpointer(f"file:{folder}", state_type=None) as checkpointer:
        await checkpointer.save({"turn": 0}, "trip")
    assert mode(folder) == 0o750
    assert open_to_others(folder) == []


async def test_a_rewritten_record_keeps_its_mode(tmp_path):
    folder = tmp_path / "checkpoints"
    async with get_checkpointer(f"file:{folder}", state_type=None) as checkpointer:
        for turn in range(6):
            await checkpointer.save({"turns": list(range(turn))}, "trip", f"c{turn}")
        records = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"]
        for path in records:
            path.chmod(0o640)
        await checkpointer.prune("trip", keep_last=2)
        left = [path for path in records if path.exists()]
        assert len(left) == 2
        assert {mode(path) for path in left} == {0o640}


async def test_backups_and_restored_files(tmp_path):
    source, copy, back = (tmp_path / name for name in ("a.db", "kept/b.db", "c.db"))
    async for _ in fill(f"sqlite:{source}"):
        await backup(source, copy)
    await restore(copy, back)
    assert open_to_others(tmp_path) == []
    for path in (copy, back):
        path.chmod(0o640)
    await backup(source, copy, overwrite=True)
    await restore(copy, back, overwrite=True)
    assert (mode(copy), mode(back)) == (0o640, 0o640)


async def test_a_damaged_file_that_is_restored_keeps_its_mode(tmp_path):
    source, copy = tmp_path / "a.db", tmp_path / "b.db"
    async for _ in fill(f"sqlite:{source}"):
        await backup(source, copy)
    source.write_bytes(b"no database at all " * 500)
    source.chmod(0o640)
    report = await restore(copy, source, overwrite=True)
    assert report.aside is not None
    assert mode(source) == 0o640


async def test_archives(tmp_path):
    path = tmp_path / "all.zip"
    async for backend in fill(f"sqlite:{tmp_path / 'a.db'}"):
        await write_archive(backend, path)
        assert open_to_others(tmp_path) == []
        path.chmod(0o644)
        await write_archive(backend, path, overwrite=True)
        assert mode(path) == 0o644


def test_many_threads_create_one_file(tmp_path):
    def work(number):
        with closing(sqlite3.connect(tmp_path / "count.db")) as connection:
            return connection.execute("SELECT ?", (number,)).fetchone()[0]

    def create(number):
        create_private(tmp_path / "count.db")
        return work(number)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(create, range(40))) == list(range(40))
    assert mode(tmp_path / "count.db") == 0o600
