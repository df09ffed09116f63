"""What is configured badly is told with a remedy, by servers that really are."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing

import asyncpg
import pytest
from redis.asyncio import Redis

from locus_memory.backends import advice as module
from locus_memory.backends.advice import is_remote, on_clock, on_folder
from locus_memory.registry import open_backend
from locus_memory.testing.servers import RedisServer


async def names(backend):
    found = await backend.advice()
    assert all(each.finding and each.remedy for each in found)
    return {each.name for each in found}


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("", False),
        ("localhost", False),
        ("127.0.0.1", False),
        ("::1", False),
        ("[::1]", False),
        ("/run/postgresql", False),
        ("10.0.0.7", True),
        ("db.example.com", True),
        ("fe80::1%eth0", True),
    ],
)
def test_another_machine(host, expected):
    assert is_remote(host) is expected


def test_a_clock_may_differ_a_little():
    now = time.time()
    assert list(on_clock("redis", now + 0.5, now)) == []
    [late] = on_clock("redis", now - 3600, now)
    [early] = on_clock("redis", now + 3600, now)
    assert "3600 seconds" in late.finding
    assert early.name == "redis.clock"


def test_a_folder_on_the_network(tmp_path, monkeypatch):
    mounts = tmp_path / "mounts"
    mounts.write_text(f"disk / ext4 rw 0 0\nserver:/x {tmp_path}/far nfs4 rw 0 0\n")
    monkeypatch.setattr(module, "_MOUNTS", mounts)
    far = tmp_path / "far" / "deep"
    far.mkdir(parents=True)
    [found] = on_folder("file", far)
    assert (found.name, "nfs4" in found.finding) == ("file.network", True)
    near = tmp_path / "near"
    near.mkdir()
    assert list(on_folder("file", near)) == []


async def test_memory_needs_none():
    async with open_backend("memory") as backend:
        assert await backend.advice() == []


class TestFiles:
    @pytest.mark.slow
    async def test_sqlite(self, tmp_path):
        path = tmp_path / "locus.db"
        async with open_backend(f"sqlite:{path}") as backend:
            await backend.store.put_batch(
                [(("big",), f"{n}", {"x": "word " * 2_000}) for n in range(3_000)]
            )
            assert await names(backend) <= {"sqlite.network"}
            await backend.store.clear_namespace(("big",))
            assert "sqlite.free_pages" in await names(backend)
            await backend.compact()
            assert "sqlite.free_pages" not in await names(backend)

    @pytest.mark.slow
    async def test_one_compaction_of_sqlite_frees_all_space(self, tmp_path):
        path = tmp_path / "locus.db"
        async with open_backend(f"sqlite:{path}") as backend:
            # The text index is as large as the texts.
            words = [" ".join(f"w{n}x{each}" for each in range(500)) for n in range(300)]
            items = [((f"{n % 2}",), f"{n}", text) for n, text in enumerate(words)]
            await backend.store.put_batch(items)
            await backend.store.clear_namespace(("0",))
            await backend.compact()
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA freelist_count").fetchone() == (0,)


class TestPostgreSQL:
    @pytest.fixture
    async def backend(self, postgresql_server, schema_of, tmp_path):
        async with open_backend(postgresql_server.url, schema=schema_of(tmp_path)) as backend:
            await backend.store.put(("a",), "b", 1)
            yield backend

    async def test_a_good_one(self, backend):
        # The servers of the tests do without a disk's promises.
        allowed = {"fsync", "full_page_writes", "synchronous_commit", "autovacuum"}
        assert await names(backend) <= {f"postgresql.{name}" for name in allowed}

    async def test_too_few_connections(self, postgresql_server, schema_of, tmp_path):
        options = {"schema": schema_of(tmp_path), "pool_size": 5_000}
        async with open_backend(postgresql_server.url, **options) as backend:
            assert "postgresql.connections" in await names(backend)

    @pytest.mark.slow
    async def test_dead_rows_and_a_broken_index(
        self, backend, postgresql_server, schema_of, tmp_path
    ):
        schema = schema_of(tmp_path)
        connection = await asyncpg.connect(postgresql_server.url)
        try:
            await connection.execute(
                f'ALTER TABLE "{schema}".locus_items SET (autovacuum_enabled = off)'
            )
            for _ in range(12):
                await backend.store.put_batch([(("a",), f"{n}", n) for n in range(1_000)])
            await connection.execute(
                "UPDATE pg_index SET indisvalid = false WHERE indexrelid = "
                f"""'"{schema}".locus_items_by_word'::regclass"""
            )
            await connection.execute("SELECT pg_stat_force_next_flush()")
            found = await names(backend)
            assert "postgresql.index" in found
            deadline = time.monotonic() + 10
            while "postgresql.vacuum" not in await names(backend):
                assert time.monotonic() < deadline
        finally:
            await connection.execute(
                "UPDATE pg_index SET indisvalid = true WHERE indexrelid = "
                f"""'"{schema}".locus_items_by_word'::regclass"""
            )
            await connection.execute(f'VACUUM "{schema}".locus_items')
            await connection.execute(
                f'ALTER TABLE "{schema}".locus_items RESET (autovacuum_enabled)'
            )
            await connection.close()

    @pytest.mark.slow
    async def test_the_missing_extension(self, postgresql_server, tmp_path):
        connection = await asyncpg.connect(postgresql_server.url)
        name = f"bare_{abs(hash(str(tmp_path))) % 10**9}"
        await connection.execute(f"CREATE DATABASE {name}")
        await connection.execute(f"CREATE ROLE {name} LOGIN")
        await connection.execute(f"GRANT ALL ON DATABASE {name} TO {name}")
        base = postgresql_server.url.rpartition("/")[0]
        try:
            bare = f"{base}/{name}"
            owner = await asyncpg.connect(bare)
            await owner.execute(f"GRANT ALL ON SCHEMA public TO {name}")
            await owner.close()
            async with open_backend(_as_user(bare, name)) as backend:
                assert "postgresql.vector" in await names(backend)
        finally:
            await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
            await connection.execute(f"DROP ROLE {name}")
            await connection.close()


def _as_user(url, user):
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{user}@{rest.rpartition('@')[2]}"


class TestRedis:
    @pytest.fixture
    async def server(self):
        with RedisServer() as server:
            client = Redis.from_url(server.url)
            yield server.url, client
            await client.aclose()

    async def test_eviction_persistence_and_room(self, server):
        url, client = server
        await client.config_set("appendonly", "yes")
        async with open_backend(url) as backend:
            assert await names(backend) == set()
        await client.config_set("appendonly", "no")
        await client.config_set("save", "")
        await client.config_set("maxmemory-policy", "allkeys-lru")
        used = (await client.info("memory"))["used_memory"]
        await client.config_set("maxmemory", used + 2**20)
        async with open_backend(url, pool_size=20_000) as backend:
            found = await names(backend)
        assert found >= {"redis.eviction", "redis.persistence", "redis.connections"}
        await client.config_set("save", "900 1")
        await client.config_set("maxmemory", 0)
        async with open_backend(url) as backend:
            assert await names(backend) == {"redis.eviction", "redis.append_only"}
