"""What is configured badly about a Redis or Valkey server."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final

from locus_memory.backends.advice import Advice, is_remote, on_clock
from locus_memory.backends.redis.connection.connection import RedisConnection
from locus_memory.backends.redis.connection.features import Features, texts
from locus_memory.backends.redis.items.former import leftover_indexes
from locus_memory.errors import BackendError

__all__ = ["advise"]

_ROOM: Final = 0.9
"""The share of its memory from which a server is nearly full."""


async def advise(connection: RedisConnection) -> list[Advice]:
    """Return what is configured badly, and what to do; of a cluster, of the server that answers."""
    await connection.open()
    before = time.time()
    seconds, micros = await connection.execute("TIME", again=True)
    facts = await _facts(connection)
    return [
        *on_clock("redis", int(seconds) + int(micros) / 1e6, before),
        *_on_memory(facts, await connection.known_features()),
        *_on_disk(facts),
        *_on_connection(connection, facts),
        *_on_indexes(await leftover_indexes(connection)),
    ]


async def _facts(connection: RedisConnection) -> dict[str, str]:
    """Return the fields of INFO, and of CONFIG where the server allows it."""
    facts: dict[str, str] = {}
    for section in ("memory", "persistence", "clients", "server"):
        facts |= texts(await connection.execute("INFO", section, again=True))
    for name in ("save", "maxclients"):
        # A managed server forbids it.
        with suppress(BackendError):
            facts |= texts(await connection.execute("CONFIG", "GET", name, again=True))
    return facts


def _on_memory(facts: Mapping[str, str], features: Features) -> Iterator[Advice]:
    policy = features.maxmemory_policy
    if features.evicts:
        yield Advice(
            "redis.eviction",
            f"maxmemory-policy is {policy}: a full server deletes memories and checkpoints",
            "CONFIG SET maxmemory-policy noeviction, and use another server as a cache",
        )
    limit, used = int(facts.get("maxmemory", 0)), int(facts.get("used_memory", 0))
    if limit and used > limit * _ROOM:
        yield Advice(
            "redis.memory",
            f"{used // 2**20} of {limit // 2**20} MB are used: writes will fail soon",
            "raise maxmemory, or delete data with locus-memory retain",
        )


def _on_disk(facts: Mapping[str, str]) -> Iterator[Advice]:
    if facts.get("aof_enabled") == "0" and facts.get("save", "?") == "":
        yield Advice(
            "redis.persistence",
            "neither an append-only file nor snapshots are on: a restart loses everything",
            "CONFIG SET appendonly yes",
        )
    elif facts.get("aof_enabled") == "0":
        yield Advice(
            "redis.append_only",
            "there is no append-only file: a crash loses all writes since the last snapshot",
            "CONFIG SET appendonly yes",
        )
    if facts.get("rdb_last_bgsave_status", "ok") != "ok":
        yield Advice(
            "redis.snapshot",
            "the last snapshot failed: the server may refuse writes",
            "look at the log of the server, and at the room on its disk",
        )


def _on_connection(connection: RedisConnection, facts: Mapping[str, str]) -> Iterator[Advice]:
    for host in filter(is_remote, connection.plain_hosts):
        yield Advice(
            "redis.unencrypted",
            f"the connection to {host} is not encrypted",
            "use rediss:// in the URL, and let the server listen with TLS",
        )
    pool_size = connection.pool_size
    most = int(facts.get("maxclients", 0))
    left = most - int(facts.get("connected_clients", 0))
    if most and pool_size > left:
        yield Advice(
            "redis.connections",
            f"a pool may open {pool_size} connections in each event loop, and the server has "
            f"{left} left of {most}",
            "lower pool_size, or raise maxclients",
        )


def _on_indexes(names: Iterable[bytes]) -> Iterator[Advice]:
    for name in (each.decode() for each in names):
        yield Advice(
            "redis.redisearch",
            f"the index {name} of RediSearch, of an earlier version, takes memory for nothing",
            f"FT.DROPINDEX {name}",
        )
