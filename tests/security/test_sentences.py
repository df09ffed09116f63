"""Errors say what is the matter, also where a driver does not; its own words are the cause."""

from __future__ import annotations

import subprocess
import sys

import pytest
from asyncpg import InternalClientError

from locus_memory import FileCheckpointer, get_checkpointer
from locus_memory.backends.postgresql.connection import driver_errors
from locus_memory.checkpoint import record
from locus_memory.errors import BackendUnavailableError, CheckpointCorruptError

LIMITED = """
import asyncio, os, resource, signal, sys
from locus_memory import SQLiteStore
from locus_memory.errors import BackendError

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

async def told():
    store = SQLiteStore(sys.argv[1])
    try:
        await store.put(("a",), "k", 1)
    except BackendError as error:
        return f"{type(error).__name__}: {error}"
    finally:
        await store.close()

async def main():
    limit = getattr(resource, sys.argv[2])
    before = resource.getrlimit(limit)
    taken = len(os.listdir("/proc/self/fd")) if sys.argv[2] == "RLIMIT_NOFILE" else 0
    resource.setrlimit(limit, (int(sys.argv[3]) + taken, before[1]))
    said = await told()
    resource.setrlimit(limit, before)
    print(said)

asyncio.run(main())
"""


def limited(path, *limit):
    command = [sys.executable, "-W", "ignore", "-c", LIMITED, str(path), *map(str, limit)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="it counts the open files of a process")
@pytest.mark.parametrize("is_new", [True, False])
def test_too_many_open_files(tmp_path, is_new):
    path = tmp_path / "a.db"
    if not is_new:
        assert limited(path, "RLIMIT_FSIZE", 2**20) == "None\n"
    said = [limited(path, "RLIMIT_NOFILE", left) for left in range(3)]
    assert said[0] != "None\n"
    for each in said:
        is_told = "too many files open; close some, or raise its limit" in each
        assert each == "None\n" or (is_told and each.startswith("BackendUnavailableError: "))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="files have no limit")
def test_a_disk_that_is_full_when_a_file_is_opened(tmp_path):
    assert limited(tmp_path / "a.db", "RLIMIT_FSIZE", 2**20) == "None\n"
    said = limited(tmp_path / "a.db", "RLIMIT_FSIZE", 4096)
    assert said.startswith("BackendWriteError: ")
    assert "no room for the -shm file (SQLITE_IOERR_SHMSIZE); deleting may need room" in said


@pytest.mark.parametrize("kind", ["file", "redis", "sqlite", "postgresql"])
async def test_a_checkpoint_of_a_newer_version(request, tmp_path, monkeypatch, kind):
    where, options = f"{kind}:{tmp_path / 'there'}", {}
    if kind in ("redis", "postgresql"):
        where = request.getfixturevalue(f"{kind}_server").url
        options = {"key_prefix": f"{tmp_path.name}:"}
    if kind == "postgresql":
        options = {"schema": request.getfixturevalue("schema_of")(tmp_path)}
    with monkeypatch.context() as patch:
        patch.setattr(record, "FORMAT_VERSION", record.FRAMED_VERSION + 1)
        async with get_checkpointer(where, state_type=None, **options) as newer:
            await newer.save({"n": 1}, "t", "c")
    async with get_checkpointer(where, state_type=None, **options) as checkpointer:
        for call in (checkpointer.load("t"), checkpointer.list_with_metadata("t")):
            with pytest.raises(CheckpointCorruptError, match="a newer locus_memory wrote it"):
                await call


async def test_a_damaged_checkpoint_is_not_one_of_a_newer_version(tmp_path):
    async with FileCheckpointer(tmp_path, state_type=None) as checkpointer:
        await checkpointer.save({"n": 1}, "t", "c")
        [path] = tmp_path.rglob("*.ckpt")
        whole = path.read_bytes()
        start = whole.index(b"\n") + 1
        for version in range(256):
            if version != whole[start]:
                path.write_bytes(whole[:start] + bytes((version,)) + whole[start + 1 :])
                with pytest.raises(Exception, match=r"unknown record format|checksum|encrypted"):
                    await checkpointer.storage.with_chain("t", "c", lambda found: found[0].unpack())


def test_a_farewell_of_postgresql():
    error = InternalClientError("cannot switch to state 12; another operation (2) is in progress")
    described = driver_errors.translate(error, "postgresql db")
    assert type(described) is BackendUnavailableError
    assert str(described) == "postgresql db: the server ended the connection"
    assert described.__cause__ is error
