"""The servers that are measured, and the plainest statements that do as much on each."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import asyncpg
import orjson
import redis.asyncio

from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.registry import get_checkpointer, get_store
from locus_memory.store.base import BaseStore
from locus_memory.testing.servers import PostgreSQLServer, RedisServer, Server

POOL = 16


class Database(ABC):
    """One server of its own, ours on it, and bare statements over a pool of the same size."""

    name: ClassVar[str]
    server_class: ClassVar[type[Server]]

    def __init__(self, server: Server) -> None:
        self.server = server

    @classmethod
    @asynccontextmanager
    async def running(cls) -> AsyncIterator[Any]:
        """Start the server; end it afterwards."""
        server = cls.server_class()
        await asyncio.to_thread(server.start)
        try:
            database = cls(server)
            await database.connect()
            yield database
            await database.disconnect()
        finally:
            await asyncio.to_thread(server.close)

    def checkpointer(self) -> DeltaCheckpointer:
        made: Any = get_checkpointer(self.server.url, state_type=None, pool_size=POOL)
        return made

    def store(self, **options: Any) -> BaseStore:
        return get_store(self.server.url, pool_size=POOL, **options)

    @abstractmethod
    async def connect(self) -> None: ...

    @abstractmethod
    async def disconnect(self) -> None: ...

    @abstractmethod
    async def bytes_stored(self) -> int:
        """Return how many bytes everything in the database takes."""

    @abstractmethod
    async def write(self, blob: bytes) -> None:
        """Write a blob by one statement."""

    @abstractmethod
    async def put(self, key: str, value: bytes) -> None: ...

    @abstractmethod
    async def get(self, key: str) -> Any: ...

    @abstractmethod
    async def put_batch(self, keys: Sequence[str], value: bytes) -> None: ...

    @abstractmethod
    async def get_batch(self, keys: Sequence[str]) -> Any: ...


_PUT = """
INSERT INTO raw_items VALUES ($1, $2::jsonb) ON CONFLICT (key) DO UPDATE SET value = excluded.value
"""


class PostgreSQL(Database):
    name = "PostgreSQL"
    server_class = PostgreSQLServer

    async def connect(self) -> None:
        async def keep(_: Any) -> None:
            """Send nothing when a connection is given back, which asyncpg does by default."""

        self.pool = await asyncpg.create_pool(
            self.server.url, min_size=POOL, max_size=POOL, reset=keep
        )
        await self.pool.execute("CREATE TABLE raw_blobs (id bigserial PRIMARY KEY, b bytea)")
        await self.pool.execute("CREATE TABLE raw_items (key text PRIMARY KEY, value jsonb)")

    async def disconnect(self) -> None:
        await self.pool.close()

    async def bytes_stored(self) -> int:
        return await self.pool.fetchval(
            "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class"
            " WHERE relkind = 'r' AND relname LIKE 'locus%'"
        )

    async def write(self, blob: bytes) -> None:
        await self.pool.execute("INSERT INTO raw_blobs (b) VALUES ($1)", blob)

    async def put(self, key: str, value: bytes) -> None:
        await self.pool.execute(_PUT, key, value.decode())

    async def get(self, key: str) -> Any:
        found = await self.pool.fetchval("SELECT value FROM raw_items WHERE key = $1", key)
        return orjson.loads(found)

    async def put_batch(self, keys: Sequence[str], value: bytes) -> None:
        await self.pool.executemany(_PUT, [(key, value.decode()) for key in keys])

    async def get_batch(self, keys: Sequence[str]) -> Any:
        statement = "SELECT value FROM raw_items WHERE key = ANY($1)"
        return [orjson.loads(row[0]) for row in await self.pool.fetch(statement, keys)]


class Redis(Database):
    name = "Redis"
    server_class = RedisServer

    async def connect(self) -> None:
        pool = redis.asyncio.BlockingConnectionPool.from_url(self.server.url, max_connections=POOL)
        self.client = redis.asyncio.Redis(connection_pool=pool)

    async def disconnect(self) -> None:
        await self.client.aclose()
        await self.client.connection_pool.disconnect()

    async def bytes_stored(self) -> int:
        keys = [key async for key in self.client.scan_iter("locus*", count=1000)]
        sizes = [await self.client.memory_usage(key, samples=0) for key in keys]
        return sum(size or 0 for size in sizes)

    async def write(self, blob: bytes) -> None:
        self._count = getattr(self, "_count", 0) + 1
        await self.client.set(f"raw:{self._count}", blob)

    async def put(self, key: str, value: bytes) -> None:
        await self.client.hset(key, "value", value)

    async def get(self, key: str) -> Any:
        return orjson.loads((await self.client.hgetall(key))[b"value"])

    async def put_batch(self, keys: Sequence[str], value: bytes) -> None:
        async with self.client.pipeline(transaction=True) as pipeline:
            for key in keys:
                pipeline.hset(key, "value", value)
            await pipeline.execute()

    async def get_batch(self, keys: Sequence[str]) -> Any:
        async with self.client.pipeline(transaction=False) as pipeline:
            for key in keys:
                pipeline.hgetall(key)
            return [orjson.loads(found[b"value"]) for found in await pipeline.execute()]


DATABASES: tuple[type[Database], ...] = (PostgreSQL, Redis)

Work = Callable[[], Awaitable[Any]]
