"""Places that contenders keep their things in, none shared, on the same two servers."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import redis.asyncio

from locus_memory.testing.servers import PostgreSQLServer, RedisServer

_SIZE = """
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema')
"""


@dataclass(slots=True)
class Place:
    """Where one contender keeps everything; in memory, it says itself what it holds."""

    database: str
    url: str = ""
    path: Path = Path()
    held: Any = None

    async def bytes_stored(self) -> int:
        """Return how many bytes everything in it takes, indexes included."""
        if self.database == "PostgreSQL":
            return await _postgresql_size(self.url)
        if self.database == "Redis":
            return await _redis_size(self.url)
        if self.database == "memory":
            return weight(self.held, set())
        files = [self.path, *self.path.parent.rglob(f"{self.path.name}*/**/*")]
        files += self.path.parent.glob(f"{self.path.name}-*")
        return sum(each.stat().st_size for each in files if each.is_file())

    async def analyse(self) -> None:
        """Let the planner know what is there now, as it would a minute later by itself."""
        if self.database == "PostgreSQL":
            connection = await asyncpg.connect(self.url)
            await connection.execute("ANALYZE")
            await connection.close()


async def _postgresql_size(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(_SIZE)
    finally:
        await connection.close()


async def _redis_size(url: str) -> int:
    async with redis.asyncio.Redis.from_url(url) as client:
        keys = [key async for key in client.scan_iter(count=1000)]
        sizes = [await client.memory_usage(key, samples=0) for key in keys]
    return sum(size or 0 for size in sizes)


def weight(held: Any, seen: set[int]) -> int:
    """Return the bytes of all texts and blobs in an object, each once; all else is free."""
    if id(held) in seen:
        return 0
    seen.add(id(held))
    if isinstance(held, bytes):
        return len(held)
    if isinstance(held, str):
        return len(held.encode())
    if isinstance(held, Mapping):
        return sum(weight(key, seen) + weight(value, seen) for key, value in held.items())
    if isinstance(held, (list, tuple, set, frozenset)):
        return sum(weight(each, seen) for each in held)
    slots = [name for kind in type(held).__mro__ for name in getattr(kind, "__slots__", ())]
    inside = {name: getattr(held, name, None) for name in slots} | getattr(held, "__dict__", {})
    return sum(weight(value, seen) for value in inside.values())


class Places:
    """Hands out places: a folder for files, and a database of one's own on each server."""

    def __init__(self, folder: Path, postgresql: PostgreSQLServer, server: RedisServer) -> None:
        self._folder = folder
        self._postgresql = postgresql
        self._redis = server
        self._numbers = itertools.count(1)
        self._redis_numbers = itertools.count(0)

    @classmethod
    @asynccontextmanager
    async def running(cls, folder: Path) -> AsyncIterator[Places]:
        """Start the servers; end them afterwards."""
        postgresql, server = PostgreSQLServer(max_connections=200), RedisServer(databases=64)
        try:
            await asyncio.to_thread(postgresql.start)
            await asyncio.to_thread(server.start)
            yield cls(folder, postgresql, server)
        finally:
            await asyncio.to_thread(postgresql.close)
            await asyncio.to_thread(server.close)

    async def versions(self) -> str:
        """Return what the servers call themselves."""
        connection = await asyncpg.connect(self._postgresql.url)
        postgresql = await connection.fetchval("SHOW server_version")
        await connection.close()
        async with redis.asyncio.Redis.from_url(self._redis.url) as client:
            server = (await client.info("server"))["redis_version"]
        return f"PostgreSQL {postgresql}, Redis {server}"

    async def new(self, database: str) -> Place:
        """Return an empty place of a database."""
        if database == "PostgreSQL":
            return Place(database, url=await self._new_postgresql())
        if database == "Redis":
            return Place(database, url=f"{self._redis.url}/{next(self._redis_numbers)}")
        return Place(database, path=self._folder / f"place{next(self._numbers)}")

    async def _new_postgresql(self) -> str:
        name = f"place{next(self._numbers)}"
        connection = await asyncpg.connect(self._postgresql.url)
        await connection.execute(f"CREATE DATABASE {name}")
        await connection.close()
        return self._postgresql.url.rsplit("/", 1)[0] + f"/{name}"


def provider(place: Place) -> str:
    """Return the string that opens ours in a place."""
    names = {"memory": "memory", "SQLite": f"sqlite:{place.path}", "files": f"file:{place.path}"}
    return names.get(place.database, place.url)
