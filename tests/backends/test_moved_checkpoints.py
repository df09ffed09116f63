"""Records that the database itself moved to another thread."""

from __future__ import annotations

import sqlite3
from hashlib import blake2b

import orjson
import pytest
from redis import Redis

from locus_memory.backends.file.checkpoints import FileCheckpointer
from locus_memory.backends.file.schema import folder_name
from locus_memory.backends.postgresql.checkpoints import PostgreSQLCheckpointer
from locus_memory.backends.postgresql.connection.connection import PostgreSQLPool
from locus_memory.backends.record_rows import digest_of
from locus_memory.backends.redis.checkpoints import RedisCheckpointer
from locus_memory.backends.redis.records import thread_keys
from locus_memory.backends.sqlite.checkpoints import SQLiteCheckpointer
from locus_memory.checkpoint.record import moved
from locus_memory.errors import CheckpointCorruptError


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


def test_the_change_of_a_seal_is_undone_by_the_way_back():
    origin = ("a", "c")
    assert moved("a", "b", None, origin) == moved("b", "a", origin, None)
    assert moved("a", "b", None, None) ^ moved("b", "c", None, None) == moved("a", "c", None, None)
    assert moved("a", "a", origin, origin) == 0
