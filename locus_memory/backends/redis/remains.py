"""Deleted words in the keys of Redis, in its append-only files and in its snapshot."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Final

from locus_memory._internal.offload import in_thread
from locus_memory.backends.redis.connection.connection import RedisConnection
from locus_memory.backends.redis.connection.features import texts
from locus_memory.backends.remains import ByteSearch, Place, of_file
from locus_memory.errors import BackendError

__all__ = ["find_remains", "rewrite_files"]

_PAGE: Final = 500
_PAUSE: Final = 0.05
_LONGEST: Final = 600.0
"""Seconds to wait for the server to rewrite its files."""

_READS: Final[Mapping[str, tuple[Any, ...]]] = {
    "string": ("GET",),
    "hash": ("HGETALL",),
    "set": ("SMEMBERS",),
    "zset": ("ZRANGE", 0, -1),
    "list": ("LRANGE", 0, -1),
}


async def find_remains(connection: RedisConnection, search: ByteSearch) -> list[Place]:
    """Return the keys below the prefix and the files of the server, as far as they are here."""
    await connection.open()
    if (await connection.known_features()).cluster:
        problem = "a cluster: look at each of its servers"
        return [Place(name="keys", how="not read", problem=problem)]
    return [await _keys(connection, search), *await _files(connection, search)]


async def _keys(connection: RedisConnection, search: ByteSearch) -> Place:
    cursor: Any = 0
    count = size = found = 0
    while True:
        # The prefix as a pattern of `SCAN` that means only itself.
        pattern = re.sub(rb"([*?\[\]\\])", rb"\\\1", connection.key()) + b"*"
        cursor, keys = await connection.execute("SCAN", cursor, "MATCH", pattern, "COUNT", _PAGE)
        for key in keys:
            data = await _content(connection, key)
            count, size, found = count + 1, size + len(data), found + search.count(data)
        if int(cursor) == 0:
            how = f"the name and each value of {count} keys"
            return Place(name="keys", how=how, bytes=size, found=found)


async def _content(connection: RedisConnection, key: bytes) -> bytes:
    """Return the name and the whole content of a key, with a line feed between parts."""
    kind = (await connection.execute("TYPE", key)).decode()
    name, *options = _READS.get(kind, ("DUMP",))
    return b"\n".join([key, *_parts(await connection.execute(name, key, *options))])


def _parts(answer: Any) -> Iterable[bytes]:
    if isinstance(answer, Iterable) and not isinstance(answer, bytes | str):
        return chain.from_iterable(map(_parts, answer))
    return [] if answer is None else [answer if isinstance(answer, bytes) else str(answer).encode()]


async def _files(connection: RedisConnection, search: ByteSearch) -> list[Place]:
    names = ("dir", "appendonly", "appenddirname", "appendfilename", "dbfilename", "save")
    try:
        settings = {name: await _setting(connection, name) for name in names}
    except BackendError:
        problem = "the server does not tell its folder: look for its files there"
        return [Place(name="files", how="not read", problem=problem)]
    return await in_thread(_read_files, settings, search)


def _read_files(settings: Mapping[str, str], search: ByteSearch) -> list[Place]:
    folder = Path(settings["dir"])
    if not folder.is_dir():
        problem = f"{folder} is on another machine: look for its files there"
        return [Place(name="files", how="not read", problem=problem)]
    snapshot = of_file(folder / settings["dbfilename"], search, "every byte of the snapshot")
    name = settings["appendfilename"] or "appendonly.aof"
    logs = sorted((folder / (settings["appenddirname"] or ".")).glob(f"{name}*"))
    return [snapshot, *(of_file(log, search, "every byte of the log") for log in logs)]


async def rewrite_files(connection: RedisConnection) -> None:
    """Let the server rewrite its append-only file and its snapshot, and wait for both.

    Raises:
        BackendError: The server refuses it.
    """
    if await _setting(connection, "appendonly") == "yes":
        await _rewrite(connection, "BGREWRITEAOF")
    if await _setting(connection, "save"):
        await _rewrite(connection, "BGSAVE")


async def _rewrite(connection: RedisConnection, command: str) -> None:
    async with asyncio.timeout(_LONGEST):
        await _idle(connection)
        await connection.execute(command)
        await _idle(connection)


async def _idle(connection: RedisConnection) -> None:
    """Wait until the server neither rewrites nor saves."""
    marks = ("aof_rewrite_in_progress", "aof_rewrite_scheduled", "rdb_bgsave_in_progress")
    while True:
        info = texts(await connection.execute("INFO", "persistence"))
        if not any(int(info.get(mark) or 0) for mark in marks):
            return
        await asyncio.sleep(_PAUSE)


async def _setting(connection: RedisConnection, name: str) -> str:
    return texts(await connection.execute("CONFIG", "GET", name)).get(name, "")
