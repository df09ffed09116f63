"""A copy that is reported as written is still there after a loss of power."""

from __future__ import annotations

import pytest

from locus_memory import open_backend
from locus_memory.backends.sqlite.upkeep.backups import backup, restore
from locus_memory.transfer import write_archive
from tests.disks import Disk

COPIES = {
    "backup": lambda source, backed, path: backup(source, path),
    "restore": lambda source, backed, path: restore(backed, path, overwrite=True),
    "export": lambda source, backed, path: write_archive(f"sqlite:{source}", path),
}


@pytest.fixture
def disk(monkeypatch):
    return Disk(monkeypatch)


@pytest.fixture
async def source(tmp_path):
    async with open_backend(f"sqlite:{tmp_path / 'source' / 'a.db'}") as backend:
        await backend.store.put(("a",), "k", {"v": 1})
    await backup(tmp_path / "source" / "a.db", tmp_path / "source" / "backup.db")
    return tmp_path / "source" / "a.db"


async def check(disk, name, source, path):
    disk.unsynced.clear()
    await COPIES[name](source, source.with_name("backup.db"), path)
    assert path.exists()
    assert disk.unsynced - {str(source.parent)} == set()


@pytest.mark.parametrize("name", COPIES)
async def test_the_name_of_a_copy_is_durable(tmp_path, disk, source, name):
    await check(disk, name, source, tmp_path / "copy")


@pytest.mark.parametrize("name", ["backup", "restore"])
async def test_the_folders_of_a_copy_are_durable(tmp_path, disk, source, name):
    await check(disk, name, source, tmp_path / "new" / "folder" / "copy")


async def test_a_restored_file_takes_the_place_of_a_damaged_one(tmp_path, disk, source):
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(b"no database" * 1000)
    await check(disk, "restore", source, damaged)
    assert damaged.with_name("damaged.db.damaged-1").exists()


async def test_the_folder_of_a_new_database_is_durable(tmp_path, disk):
    async with open_backend(f"sqlite:{tmp_path / 'new' / 'a.db'}") as backend:
        await backend.store.put(("a",), "k", {"v": 1})
    assert disk.unsynced == set()
