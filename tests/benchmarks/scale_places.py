"""The places of the growth curve: a file, this process, or a server with a folder of its own.

A place opens stores, tells how large it is, and counts the processor time of its server.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import redis

from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.registry import get_store
from locus_memory.testing.servers import PostgreSQLServer, RedisServer, Server

# As for a machine of its own: the defaults of PostgreSQL are for one with 256 MB.
SETTINGS = {"shared_buffers": "2GB", "maintenance_work_mem": "3GB", "max_connections": 200}


class Place(ABC):
    """A place that outlives the processes of the steps.

    Attributes:
        name: The name of the backend.
        at: The path or the URL, which a step gets as an argument.
    """

    name: ClassVar[str]
    uneven: ClassVar[bool] = False

    def __init__(self, at: str) -> None:
        self.at = at

    @classmethod
    @contextmanager
    @abstractmethod
    def made(cls, folder: Path) -> Iterator[Any]:
        """Make an empty place, and remove it."""

    def filling(self) -> Any:
        """Return the store to fill."""
        return self.opened()

    @abstractmethod
    def opened(self) -> Any:
        """Return the store to measure."""

    async def settle(self, store: Any) -> dict[str, float]:
        """Do the work after a bulk load; return its figures."""
        return {}

    @abstractmethod
    def sizes(self) -> dict[str, float]:
        """Return what it takes, by figure."""

    def seconds(self) -> float:
        """Return the processor time of this process and of the server, in all threads."""
        return time.process_time()


class SQLitePlace(Place):
    name = "sqlite"

    @classmethod
    @contextmanager
    def made(cls, folder: Path) -> Iterator[Any]:
        path = folder / "scale.db"
        yield cls(str(path))
        for file in folder.glob("scale.db*"):
            file.unlink()

    def opened(self) -> Any:
        return SQLiteStore(Path(self.at))

    def sizes(self) -> dict[str, float]:
        return {"file, MB": Path(self.at).stat().st_size / 1e6}


class ServerPlace(Place):
    """A database server; the id of its process is the fragment of the URL."""

    server_class: ClassVar[type[Server]]
    settings: ClassVar[dict[str, Any]] = {}
    uneven = True

    def __init__(self, at: str) -> None:
        super().__init__(at)
        self.url, _, pid = at.partition("#")
        self._pid = int(pid)

    @classmethod
    @contextmanager
    def made(cls, folder: Path) -> Iterator[Any]:
        with cls.server_class(**cls.settings) as server:
            yield cls(f"{server.url}#{server.pid}")

    def seconds(self) -> float:
        """Return the processor time of this process and of the server, in all threads."""
        children = Path(f"/proc/{self._pid}/task/{self._pid}/children")
        pids = [self._pid, *map(int, children.read_text(encoding="ascii").split())]
        return time.process_time() + _seconds_of_ended(self._pid) + sum(map(_seconds_of, pids))


def _seconds_of_ended(pid: int) -> float:
    """Return the processor time of the children of a process that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    # Fields 16 and 17 of proc(5), after the two that end with the name.
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def _seconds_of(pid: int) -> float:
    """Return the processor time of a process; 0 if it has ended."""
    found = 0
    for file in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            found += int(file.read_text(encoding="ascii").split()[0])
        except OSError:
            continue
    return found / 1e9


class PostgreSQLPlace(ServerPlace):
    name = "postgresql"
    server_class = PostgreSQLServer
    settings = SETTINGS

    def opened(self) -> Any:
        return get_store(self.url, command_timeout=None)

    def filling(self) -> Any:
        # An index that exists makes each put slower; after a bulk load it is built at once.
        return get_store(self.url, command_timeout=None, vector_index=None)

    async def settle(self, store: Any) -> dict[str, float]:
        async with self._connected() as connection:
            # Otherwise the server does it in the middle of the searches.
            await connection.execute("VACUUM (ANALYZE)")
        before, since = self.seconds(), time.perf_counter()
        await store.compact()
        return {
            "index build, s of the processor": self.seconds() - before,
            "index build, s of a clock": time.perf_counter() - since,
        }

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Any]:
        import asyncpg  # noqa: PLC0415 - only this place has the driver

        connection = await asyncpg.connect(self.url)
        try:
            yield connection
        finally:
            await connection.close()

    def sizes(self) -> dict[str, float]:
        import asyncio  # noqa: PLC0415 - as above

        return asyncio.run(self._sizes())

    async def _sizes(self) -> dict[str, float]:
        async with self._connected() as connection:
            rows = await connection.fetch(
                "SELECT CASE WHEN relkind = 'r' THEN relname::text ELSE 'vector indexes' END"
                " AS name, sum(CASE WHEN relkind = 'r' THEN pg_total_relation_size(oid)"
                " ELSE pg_relation_size(oid) END) / 1e6 AS size FROM pg_class"
                " WHERE relname IN ('locus_items', 'locus_vectors')"
                " OR relname LIKE 'locus_vectors_by_halves%' OR relname LIKE 'locus_own%'"
                " GROUP BY 1"
            )
        found = {row["name"]: float(row["size"]) for row in rows}
        return {f"{name.removeprefix('locus_')}, MB": size for name, size in found.items()}


class RedisPlace(ServerPlace):
    name = "redis"
    server_class = RedisServer
    settings: ClassVar[dict[str, Any]] = {"appendonly": "no"}

    def opened(self) -> Any:
        return get_store(self.url)

    def sizes(self) -> dict[str, float]:
        parts = urlsplit(self.url)
        with redis.Redis(host=parts.hostname or "", port=parts.port or 0) as client:
            return {"memory of the server, MB": client.info("memory")["used_memory"] / 1e6}


PLACES: dict[str, type[Place]] = {
    each.name: each for each in (SQLitePlace, PostgreSQLPlace, RedisPlace)
}
