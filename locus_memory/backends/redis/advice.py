"""What is configured badly about a Redis or Valkey server."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any, Final

from locus_memory.backends.advice import Advice, Check, by_facts, on_clock, on_plain
from locus_memory.backends.redis.connection.connection import RedisConnection
from locus_memory.backends.redis.connection.features import texts
from locus_memory.backends.redis.items.former import leftover_indexes
from locus_memory.errors import BackendError

__all__ = ["advise"]

_ROOM: Final = 0.9
"""The share of its memory from which a server is nearly full."""

_CHECKS: Final = (
    Check(
        "eviction",
        lambda case: case["evicts"],
        "maxmemory-policy is {policy}: a full server deletes memories and checkpoints",
        "CONFIG SET maxmemory-policy noeviction, and use another server as a cache",
    ),
    Check(
        "memory",
        lambda case: case["limit"] and case["used"] > case["limit"] * _ROOM,
        "{used:.0f} of {limit:.0f} MB are used: writes will fail soon",
        "raise maxmemory, or delete data with locus-memory retain",
    ),
    Check(
        "persistence",
        lambda case: case["log"] == "0" and case["save"] == "",
        "neither an append-only file nor snapshots are on: a restart loses everything",
        "CONFIG SET appendonly yes",
    ),
    Check(
        "append_only",
        lambda case: case["log"] == "0" and case["save"] != "",
        "there is no append-only file: a crash loses all writes since the last snapshot",
        "CONFIG SET appendonly yes",
    ),
    Check(
        "snapshot",
        lambda case: case["snapshot"] != "ok",
        "the last snapshot failed: the server may refuse writes",
        "look at the log of the server, and at the room on its disk",
    ),
    Check(
        "connections",
        lambda case: case["most"] and case["pool_size"] > case["left"],
        "a pool may open {pool_size} connections in each event loop, and the server has {left} "
        "left of {most}",
        "lower pool_size, or raise maxclients",
    ),
)

_INDEX: Final = Check(
    "redisearch",
    bool,
    "the index {name} of RediSearch, of an earlier version, takes memory for nothing",
    "FT.DROPINDEX {name}",
)


async def advise(connection: RedisConnection) -> list[Advice]:
    """Return what is configured badly, and what to do; of a cluster, of the server that answers."""
    await connection.open()
    before = time.time()
    seconds, micros = await connection.execute("TIME", again=True)
    remedy = "use rediss:// in the URL, and let the server listen with TLS"
    indexes = [{"name": each.decode()} for each in await leftover_indexes(connection)]
    return [
        *on_clock("redis", int(seconds) + int(micros) / 1e6, before),
        *by_facts("redis", _CHECKS, [await _facts(connection)]),
        *on_plain("redis", connection.plain_hosts, remedy),
        *by_facts("redis", [_INDEX], indexes),
    ]


async def _facts(connection: RedisConnection) -> dict[str, Any]:
    """Return the facts of INFO, and of CONFIG where the server allows it."""
    facts: dict[str, str] = {}
    for section in ("memory", "persistence", "clients", "server"):
        facts |= texts(await connection.execute("INFO", section, again=True))
    for name in ("save", "maxclients"):
        # A managed server forbids it.
        with suppress(BackendError):
            facts |= texts(await connection.execute("CONFIG", "GET", name, again=True))
    features, most = await connection.known_features(), int(facts.get("maxclients", 0))
    return {
        "evicts": features.evicts,
        "policy": features.maxmemory_policy,
        "limit": int(facts.get("maxmemory", 0)) / 2**20,
        "used": int(facts.get("used_memory", 0)) / 2**20,
        "log": facts.get("aof_enabled"),
        "save": facts.get("save", "?"),
        "snapshot": facts.get("rdb_last_bgsave_status", "ok"),
        "most": most,
        "left": most - int(facts.get("connected_clients", 0)),
        "pool_size": connection.pool_size,
    }
