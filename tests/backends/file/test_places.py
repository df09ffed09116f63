"""What is in the folder and is not ours: never followed, never waited for, never "not found"."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from contextlib import suppress

import pytest

from locus_memory.backends.file.checkpoints import FileCheckpointer
from locus_memory.errors import BackendCorruptError, BackendUnavailableError

CALLS = {
    "load": lambda c: c.load("t"),
    "load one": lambda c: c.load("t", "c0"),
    "exists": lambda c: c.exists("t"),
    "list": lambda c: c.list_checkpoints("t"),
    "metadata": lambda c: c.get_metadata("t"),
    "save": lambda c: c.save({}, "t"),
    "copy": lambda c: c.copy_thread("t", "u"),
    "copy onto": lambda c: c.copy_thread("other", "t"),
    "delete": lambda c: c.delete("t"),
    "prune": lambda c: c.prune("t", keep_last=1),
}

needs_links = pytest.mark.skipif(sys.platform == "win32", reason="there are no links and pipes")


@pytest.fixture
async def checkpointer(tmp_path):
    async with FileCheckpointer(tmp_path / "base", state_type=None) as opened:
        for thread in ("t", "other"):
            for n in range(3):
                await opened.save({"n": n}, thread, f"c{n}")
        yield opened


@pytest.fixture
def base(tmp_path):
    return tmp_path / "base"


async def check_refused(call, match):
    with pytest.raises(BackendCorruptError, match=match) as raised:
        async with asyncio.timeout(10):
            await call
    assert "move it away" in str(raised.value)


@pytest.mark.parametrize("name", CALLS)
async def test_a_file_in_place_of_a_threads_folder(checkpointer, base, name):
    shutil.rmtree(base / "t-t")
    (base / "t-t").write_text("mine")
    await check_refused(CALLS[name](checkpointer), "t-t: is a file where a folder")
    assert (base / "t-t").read_text() == "mine"
    assert await checkpointer.list_threads() == ["other"]


@needs_links
@pytest.mark.parametrize("name", CALLS)
async def test_a_link_in_place_of_a_threads_folder_is_not_followed(
    checkpointer, base, tmp_path, name
):
    elsewhere = tmp_path / "elsewhere"
    (base / "t-t").rename(elsewhere)
    (base / "t-t").symlink_to(elsewhere)
    before = sorted(elsewhere.iterdir())
    await check_refused(CALLS[name](checkpointer), "t-t: is a symbolic link")
    with suppress(BackendCorruptError):
        await checkpointer.vacuum(0)
    assert sorted(elsewhere.iterdir()) == before
    assert await checkpointer.list_threads() in ([], ["other"])


@needs_links
@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
@pytest.mark.parametrize("name", ["load", "copy", "list"])
async def test_what_is_in_place_of_a_record(checkpointer, base, tmp_path, kind, name):
    record = max((base / "t-t").iterdir())
    secret = tmp_path / "secret"
    record.rename(secret)
    if kind == "pipe":
        os.mkfifo(record)
    elif kind == "link":
        record.symlink_to(secret)
    else:
        record.mkdir()
    await check_refused(CALLS[name](checkpointer), record.name)
    assert await checkpointer.load("other") == {"n": 2}


@pytest.mark.parametrize("name", CALLS)
async def test_a_file_in_place_of_the_folder_itself(checkpointer, base, name):
    shutil.rmtree(base)
    base.write_text("mine")
    with pytest.raises((BackendCorruptError, BackendUnavailableError)):
        await CALLS[name](checkpointer)
    with pytest.raises((BackendCorruptError, BackendUnavailableError)):
        await checkpointer.list_threads()
    assert base.read_text() == "mine"


@pytest.mark.parametrize("name", [*CALLS, "threads"])
async def test_a_folder_that_went_away_is_not_an_empty_one(checkpointer, base, name):
    shutil.rmtree(base)
    call = checkpointer.list_threads() if name == "threads" else CALLS[name](checkpointer)
    with pytest.raises(BackendUnavailableError, match="deleted or unmounted"):
        await call
    assert not base.exists()


async def test_a_folder_that_was_never_there_has_no_threads(tmp_path):
    checkpointer = FileCheckpointer(tmp_path / "base", state_type=None)
    assert await checkpointer.load("t") is None
    assert await checkpointer.list_threads() == []
    assert not await checkpointer.delete("t")
    await checkpointer.save({"n": 1}, "t")
    assert await checkpointer.load("t") == {"n": 1}
    await checkpointer.close()


@needs_links
async def test_a_link_that_leads_to_itself_and_a_path_too_long(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for base in (loop, tmp_path / ("x" * 300)):
        checkpointer = FileCheckpointer(base, state_type=None)
        for call in (
            checkpointer.load("t"),
            checkpointer.list_threads(),
            checkpointer.save({}, "t"),
        ):
            with pytest.raises((BackendCorruptError, BackendUnavailableError)):
                await call
        await checkpointer.close()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may do anything")
async def test_a_folder_that_must_not_be_read(checkpointer, base):
    (base / "t-t").chmod(0)
    try:
        for name in ("load", "exists", "list"):
            with pytest.raises(BackendUnavailableError):
                await CALLS[name](checkpointer)
    finally:
        (base / "t-t").chmod(0o700)
