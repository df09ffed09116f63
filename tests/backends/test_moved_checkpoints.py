"""Records that the database itself moved to another thread, and records of before."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from hashlib import blake2b

import orjson
import pytest
from redis import Redis

from locus_memory.backends.file.checkpoints import FileCheckpointer
from locus_memory.backends.file.schema import folder_name
from locus_memory.backends.inmemory.checkpoints import MemoryCheckpointer
from locus_memory.backends.postgresql.checkpoints import PostgreSQLCheckpointer
from locus_memory.backends.postgresql.connection.connection import PostgreSQLPool
from locus_memory.backends.record_rows import digest_of
from locus_memory.backends.redis.checkpoints import RedisCheckpointer
from locus_memory.backends.redis.records import thread_keys
from locus_memory.backends.sqlite.checkpoints import SQLiteCheckpointer
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.checkpoint.record import moved
from locus_memory.errors import CheckpointCorruptError

OLD = b"\x01"


class SQLite:
    def __init__(self, request, folder):
        self.path = folder / "memory.db"

    def make(self):
        return SQLiteCheckpointer(self.path, state_type=None)

    async def rename(self, source, target):
        connection = sqlite3.connect(self.path)
        with connection:
            change = "UPDATE threads SET thread_id = ? WHERE thread_id = ?"
            assert connection.execute(change, (target, source)).rowcount == 1
        connection.close()


class File:
    def __init__(self, request, folder):
        self.path = folder / "checkpoints"

    def make(self):
        return FileCheckpointer(self.path, state_type=None)

    async def rename(self, source, target):
        folder = (self.path / folder_name(source)).rename(self.path / folder_name(target))
        for path in folder.glob("*.ckpt"):
            head, payload = path.read_bytes().split(b"\n", 1)
            named = orjson.dumps({**orjson.loads(head), "thread_id": target})
            path.write_bytes(named + b"\n" + payload)


class PostgreSQL:
    def __init__(self, request, folder):
        self.url = request.getfixturevalue("postgresql_server").url
        self.schema = "t_" + blake2b(bytes(folder), digest_size=8).hexdigest()

    def make(self):
        return PostgreSQLCheckpointer(self.url, schema=self.schema, state_type=None)

    async def rename(self, source, target):
        async with PostgreSQLPool(self.url, schema=self.schema) as pool:
            change = "UPDATE {threads} SET digest = $1, thread_id = $2 WHERE thread_id = $3"
            assert await pool.execute(change, digest_of(target), target, source) == "UPDATE 1"


class InRedis:
    def __init__(self, request, folder):
        self.url = request.getfixturevalue("redis_server").url
        self.prefix = "t" + blake2b(bytes(folder), digest_size=8).hexdigest() + ":"

    def make(self):
        return RedisCheckpointer(self.url, key_prefix=self.prefix, state_type=None)

    async def rename(self, source, target):
        before, after = (thread_keys(self.prefix.encode(), name) for name in (source, target))
        with Redis.from_url(self.url) as client:
            for old, new in zip(before.all[:3], after.all[:3], strict=True):
                client.rename(old, new)
            client.zrem(before.all[3], before.member)
            client.zadd(after.all[3], {after.member: 0})


PERSISTENT = [SQLite, File, PostgreSQL, InRedis]


@pytest.fixture(params=PERSISTENT)
def place(request, tmp_path):
    return request.param(request, tmp_path)


async def test_a_thread_that_was_renamed_is_never_believed(place):
    async with place.make() as checkpointer:
        for number in range(4):
            await checkpointer.save({"of": "bob", "n": number}, "bob", f"c{number}", {"n": number})
        await checkpointer.save({"of": "carol"}, "carol", "c0")
    await place.rename("bob", "alice")
    async with place.make() as checkpointer:
        for read in (
            checkpointer.load("alice"),
            checkpointer.load("alice", "c1"),
            checkpointer.get_metadata("alice"),
            checkpointer.list_checkpoints("alice"),
            checkpointer.fork("alice", "c2", "dave"),
            checkpointer.copy_thread("alice", "dave"),
            checkpointer.query_by_metadata({"n": 1}),
        ):
            with pytest.raises(CheckpointCorruptError):
                await read
        assert await checkpointer.load("bob") is None
        assert await checkpointer.load("carol") == {"of": "carol"}
        # The thread goes on, from a full state.
        await checkpointer.save({"of": "alice"}, "alice", "new")
        assert await checkpointer.load("alice") == {"of": "alice"}
    await place.rename("alice", "bob")
    async with place.make() as checkpointer:
        assert await checkpointer.load("bob", "c2") == {"of": "bob", "n": 2}
        with pytest.raises(CheckpointCorruptError):
            await checkpointer.load("bob", "new")


def of_before(record):
    """Return the record as it was written before seals had the thread."""
    body = record.payload[5:]
    checksum = record.checksum(body, record.size, 1).to_bytes(4, "big")
    former = replace(record, payload=OLD + checksum + body)
    assert former.seal() != record.seal()
    return former


async def write_of_before(checkpointer, thread, count):
    """Save a thread as a version of before did; returns its states by name."""
    memory = MemoryCheckpointer(state_type=None)
    states = {}
    for number in range(count):
        states[f"c{number}"] = {"list": list(range(number)), "text": "so it was " * 50}
        await memory.save(states[f"c{number}"], thread, f"c{number}", {"n": number})
        record = await memory.storage.retrieve(thread)
        await checkpointer.storage.store(of_before(record))
    return states


async def states_of(checkpointer, thread):
    names = await checkpointer.list_checkpoints(thread, 100)
    return {name: await checkpointer.load(thread, name) for name in reversed(names)}


async def test_records_of_before_are_as_good_as_ever(place):
    async with place.make() as checkpointer:
        states = await write_of_before(checkpointer, "old", 9)
    async with place.make() as checkpointer:
        assert await states_of(checkpointer, "old") == states
        await checkpointer.copy_thread("old", "copy")
        assert await checkpointer.fork("old", "c4", "branch") == "c4"
        assert await states_of(checkpointer, "copy") == states
        begun = {name: states[name] for name in list(states)[:5]}
        assert await states_of(checkpointer, "branch") == begun
        infos = await checkpointer.list_with_metadata("branch")
        assert [info.forked_from for info in infos] == [("old", "c4"), None, None, None, None]
        # New records build on old ones, and both are copied together.
        states["new"] = {"list": list(range(12)), "text": "so it was " * 50}
        await checkpointer.save(states["new"], "old", "new")
        await checkpointer.copy_thread("old", "mixed")
        await checkpointer.fork("mixed", "new", "mixed branch")
        for thread in ("old", "mixed", "mixed branch"):
            assert await states_of(checkpointer, thread) == states
        await checkpointer.prune("mixed branch", keep_last=3)
        kept = {name: states[name] for name in list(states)[-3:]}
        assert await states_of(checkpointer, "mixed branch") == kept
        await checkpointer.delete("branch", "c4")
        del begun["c4"]
        assert await states_of(checkpointer, "branch") == begun


async def test_a_new_record_does_not_pass_as_an_old_one(place):
    async with place.make() as checkpointer:
        await write_of_before(checkpointer, "bob", 3)
        await checkpointer.save({"list": [], "of": "bob"}, "bob", "new")
    await place.rename("bob", "alice")
    async with place.make() as checkpointer:
        assert (await checkpointer.load("alice", "c1"))["list"] == [0]
        with pytest.raises(CheckpointCorruptError):
            await checkpointer.load("alice", "new")


async def test_a_record_of_before_can_be_stored_anywhere(place):
    """A storage that copies in the database sees by the payload that the seal has no thread."""
    async with place.make() as checkpointer:
        states = await write_of_before(checkpointer, "old", 2)
        other = DeltaCheckpointer(checkpointer.storage, state_type=None)
        record = await checkpointer.storage.retrieve("old", "c0")
        await other.storage.store(replace(record, thread_id="there"))
        await other.copy_thread("there", "again")
        assert await other.load("again") == states["c0"]


def test_the_change_of_a_seal_is_undone_by_the_way_back():
    origin = ("a", "c")
    assert moved("a", "b", None, origin) == moved("b", "a", origin, None)
    assert moved("a", "b", None, None) ^ moved("b", "c", None, None) == moved("a", "c", None, None)
    assert moved("a", "a", origin, origin) == 0
