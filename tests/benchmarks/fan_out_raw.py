"""The load of `fan_out` on the bare drivers: the plainest statements that do as much."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import numpy as np
import orjson
import redis.asyncio
import scale_data as data

TABLE = f"""
CREATE EXTENSION IF NOT EXISTS vector;
CREATE SEQUENCE raw_revisions;
CREATE TABLE raw_items (
  space text, key text, revision bigint NOT NULL, value jsonb NOT NULL,
  embedding vector({data.DIMENSION}), PRIMARY KEY (space, key));
CREATE INDEX raw_newest ON raw_items (space, revision);
"""
PUT = """
INSERT INTO raw_items VALUES ($1, $2, nextval('raw_revisions'), $3::jsonb, $4::text::vector)
ON CONFLICT (space, key) DO UPDATE SET
  revision = excluded.revision, value = excluded.value, embedding = excluded.embedding
"""
GET = "SELECT value FROM raw_items WHERE space = $1 AND key = $2"
NEWEST = "SELECT key, value FROM raw_items WHERE space = $1 ORDER BY revision DESC LIMIT 10"
NEAR = """
SELECT key, value, embedding <=> $2::text::vector AS distance FROM raw_items
WHERE space = $1 AND embedding IS NOT NULL ORDER BY distance LIMIT 10
"""


class OnPostgreSQL:
    """A client of asyncpg."""

    def __init__(self, pool: Any, name: str) -> None:
        self.pool, self.name = pool, name

    async def get(self, key: str) -> Any:
        return orjson.loads(await self.pool.fetchval(GET, self.name, key))

    async def put(self, key: str, value: Any, vector: Any = None) -> None:
        text = None if vector is None else orjson.dumps(vector).decode()
        await self.pool.execute(PUT, self.name, key, orjson.dumps(value).decode(), text)

    async def near(self, vector: Any) -> Any:
        rows = await self.pool.fetch(NEAR, self.name, orjson.dumps(vector).decode())
        return [orjson.loads(row["value"]) for row in rows]

    async def newest(self) -> Any:
        return [orjson.loads(row["value"]) for row in await self.pool.fetch(NEWEST, self.name)]


class OnRedis:
    """A client of redis-py."""

    def __init__(self, client: Any, name: str) -> None:
        self.client, self.name = client, f"raw:{name}"

    async def get(self, key: str) -> Any:
        return orjson.loads(await self.client.hget(f"{self.name}:{key}", "value"))

    async def put(self, key: str, value: Any, vector: Any = None) -> None:
        revision = await self.client.incr("raw:revision")
        async with self.client.pipeline(transaction=True) as pipeline:
            pipeline.hset(f"{self.name}:{key}", "value", orjson.dumps(value))
            pipeline.zadd(f"{self.name}:newest", {key: revision})
            if vector is None:
                pipeline.execute_command("VREM", f"{self.name}:vectors", key)
            else:
                packed = np.array(vector, "<f4").tobytes()
                pipeline.execute_command("VADD", f"{self.name}:vectors", "FP32", packed, key)
            await pipeline.execute()

    async def near(self, vector: Any) -> Any:
        packed = np.array(vector, "<f4").tobytes()
        command = ("VSIM", f"{self.name}:vectors", "FP32", packed, "COUNT", 10, "TRUTH")
        return await self._all(await self.client.execute_command(*command))

    async def newest(self) -> Any:
        return await self._all(await self.client.zrevrange(f"{self.name}:newest", 0, 9))

    async def _all(self, keys: list[bytes]) -> list[Any]:
        async with self.client.pipeline(transaction=False) as pipeline:
            for key in keys:
                pipeline.hget(f"{self.name}:{key.decode()}", "value")
            return [orjson.loads(value) for value in await pipeline.execute()]


class Bare:
    """The connections of a process, for several clients."""

    def __init__(self, kind: Any, connections: Any) -> None:
        self.kind, self.connections = kind, connections

    def client(self, name: str) -> Any:
        return self.kind(self.connections, name)


@contextlib.asynccontextmanager
async def opened(backend: str, url: str, size: int) -> AsyncIterator[Bare]:
    """Connect by the bare driver."""
    if backend == "postgresql":

        async def keep(_: Any) -> None:
            """Send nothing when a connection is given back, which asyncpg does by default."""

        async with asyncpg.create_pool(url, min_size=size, max_size=size, reset=keep) as pool:
            yield Bare(OnPostgreSQL, pool)
        return
    pool = redis.asyncio.BlockingConnectionPool.from_url(url, max_connections=size)
    async with redis.asyncio.Redis(connection_pool=pool) as client:
        yield Bare(OnRedis, client)
    await pool.disconnect()


async def prepare(backend: str, url: str) -> None:
    """Create the table of the bare driver, if it needs one."""
    if backend == "postgresql":
        connection = await asyncpg.connect(url)
        await connection.execute(TABLE)
        await connection.close()
