"""Backups of a file that is in use, and their way back."""

from __future__ import annotations

import asyncio
import sqlite3

import pytest

from locus_memory.backends.sqlite import backup, restore
from locus_memory.errors import (
    BackendCorruptError,
    BackendUnavailableError,
    ConfigurationError,
)
from locus_memory.registry import open_backend
from locus_memory.store.item import Put

NS = ("users", "ada")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "locus.db"


@pytest.fixture
async def backend(path):
    async with open_backend(f"sqlite:{path}") as backend:
        for number in range(50):
            await backend.store.put(NS, f"k{number}", {"n": number})
            await backend.checkpointer.save({"n": number}, "talk")
        yield backend


async def held(path):
    async with open_backend(f"sqlite:{path}") as backend:
        return await backend.store.list_keys(NS, 1000), await backend.checkpointer.load("talk")


async def test_a_copy_is_the_database_of_one_moment(backend, path, tmp_path):
    running = True

    async def write():
        number = 50
        while running:
            await backend.store.put_batch([(NS, f"x{number}", number), (NS, f"y{number}", number)])
            number += 1

    writer = asyncio.ensure_future(write())
    copies = [tmp_path / f"copy{number}.db" for number in range(3)]
    for copy in copies:
        report = await backup(path, copy)
        assert report.checkpoints == 50
    running = False
    await writer
    for copy in copies:
        keys, state = await held(copy)
        both = {key[1:] for key in keys if key[0] == "x"}
        assert both == {key[1:] for key in keys if key[0] == "y"}
        assert state == {"n": 49}


async def test_a_backup_is_one_file(backend, path, tmp_path):
    folder = tmp_path / "backups"
    report = await backup(path, folder / "a.db")
    assert [each.name for each in folder.iterdir()] == ["a.db"]
    assert (report.items, report.checkpoints) == (50, 50)
    assert report.size == (folder / "a.db").stat().st_size


async def test_a_restore_replaces_what_others_have_open(backend, path, tmp_path):
    await backup(path, tmp_path / "a.db")
    await backend.store.put(NS, "later", 1)
    await backend.checkpointer.save({"later": 1}, "talk")
    with pytest.raises(ConfigurationError, match="exists"):
        await restore(tmp_path / "a.db", path)
    assert await backend.store.get(NS, "later") == 1
    report = await restore(tmp_path / "a.db", path, overwrite=True)
    assert (report.items, report.aside) == (50, None)
    assert await backend.store.get(NS, "later") is None
    assert await backend.checkpointer.load("talk") == {"n": 49}
    await backend.store.put(NS, "after", 1)
    keys, _ = await held(path)
    assert len(keys) == 51


async def test_a_damaged_backup_changes_nothing(backend, path, tmp_path):
    copy = tmp_path / "a.db"
    await backup(path, copy)
    content = bytearray(copy.read_bytes())
    content[4096 * 2 : 4096 * 2 + 512] = bytes(512)
    copy.write_bytes(content)
    with pytest.raises(BackendCorruptError):
        await restore(copy, path, overwrite=True)
    assert await backend.checkpointer.load("talk") == {"n": 49}


async def test_a_damaged_database_is_set_aside(path, tmp_path):
    async with open_backend(f"sqlite:{path}") as backend:
        await backend.store.put(NS, "k", 1)
    await backup(path, tmp_path / "a.db")
    path.write_bytes(b"no database any more" * 300)
    report = await restore(tmp_path / "a.db", path, overwrite=True)
    assert report.aside == f"{path}.damaged-1"
    assert await held(path) == (["k"], None)


async def test_what_is_no_backup_is_refused(path, tmp_path):
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    for wrong in (other, tmp_path):
        with pytest.raises((BackendCorruptError, BackendUnavailableError)):
            await restore(wrong, path)
    with pytest.raises(BackendUnavailableError, match="no such file"):
        await backup(path, other, overwrite=True)
    assert not path.exists()


async def test_a_backup_never_replaces_its_source(backend, path, tmp_path):
    with pytest.raises(ConfigurationError, match="the source itself"):
        await backup(path, path, overwrite=True)
    link = tmp_path / "link.db"
    link.symlink_to(path)
    with pytest.raises(ConfigurationError, match="the source itself"):
        await backup(path, link, overwrite=True)


async def test_a_search_after_a_restore_finds_nothing_of_before(backend, path, tmp_path):
    """The restored database uses the revisions of the replaced one again."""
    store = backend.store

    async def found():
        told = await store.candidates(NS, 3, words="tea", embedding=[1.0, 0.0])
        near = await store.search_by_embedding(NS, [1.0, 0.0], 3)
        return (
            [each.item.value for each in told.by_text],
            [(each.item.value, each.score) for each in told.by_vector],
            [(each.item.value, each.score) for each in near],
        )

    await backup(path, tmp_path / "a.db")
    await store.put_batch([Put(namespace=NS, key="old", value="old tea", embedding=[1.0, 0.0])])
    assert await found() == (["old tea"], [("old tea", 1.0)], [("old tea", 1.0)])
    await restore(tmp_path / "a.db", path, overwrite=True)
    await store.put_batch([Put(namespace=NS, key="new", value="new tea", embedding=[0.0, 1.0])])
    assert await found() == (["new tea"], [("new tea", 0.0)], [("new tea", 0.0)])
