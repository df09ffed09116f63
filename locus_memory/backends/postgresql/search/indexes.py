"""The HNSW indexes of the vectors: built when a search needs one, without blocking a writer.

An index makes each put of a vector several times slower, and a search of a small namespace never
uses it. So the first search of a large scope starts the build, and is exact until it is done.

`CREATE INDEX CONCURRENTLY` leaves an invalid index behind if it is ended. A builder therefore holds
an advisory lock, in a transaction of a connection of its own, which ends with its process. Whoever
gets the lock and finds an invalid index builds it again, unless the server is still at it. The lock
needs no session, so all of this works through a pooler in transaction mode.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from locus_memory.backends.loops import LoopLocal
from locus_memory.backends.postgresql.connection.connection import Connection, PostgreSQLPool
from locus_memory.backends.postgresql.connection.standbys import on_primary
from locus_memory.backends.postgresql.items import index_queries as queries
from locus_memory.errors import BackendError
from locus_memory.events import emit

__all__ = ["VectorIndexes"]

# https://github.com/pgvector/pgvector: the longest vector of an HNSW index.
_HALVES: Final = 4_000
_ITERATIVE_SCAN: Final = (0, 8)
"""The first version whose index continues until the page is full."""

_SMALL: Final = 2_000_000
"""Bytes of the table up to which an index is built at once, within a second."""

_PATIENCE: Final = 86_400.0
"""Seconds that a build may take."""

_USES: Final = 256
"""How many searches reuse the result of a look at the indexes."""


@dataclass(slots=True)
class _Seen:
    """The index that was found, or `None`, and for how many more searches that counts."""

    kind: str | None
    uses: int = _USES


class VectorIndexes:
    """The indexes of one store, one for each vector length.

    Args:
        pool: The database.
        wanted: Whether there are indexes.
    """

    def __init__(self, pool: PostgreSQLPool, *, wanted: bool) -> None:
        self._pool = pool
        self._wanted = wanted
        self._seen: dict[int, _Seen] = {}
        self._failed: set[int] = set()
        self._builds: LoopLocal[dict[int, asyncio.Task[None]]] = LoopLocal()

    def may_exist(self, dimension: int) -> bool:
        """Return whether vectors of this length can have an index."""
        return (
            self._wanted
            and dimension <= _HALVES
            and self._pool.features.vector_version >= _ITERATIVE_SCAN
        )

    async def kind(self, dimension: int) -> str | None:
        """Return the type of the vectors in the index of a length; `None`: there is none yet.

        If there is none, its build starts: a small one is awaited, a larger one is not.
        """
        seen = self._seen.get(dimension)
        if seen is not None and seen.uses > 0:
            seen.uses -= 1
            return seen.kind
        kind = await self._look(dimension)
        if kind is None and dimension not in self._failed:
            await self._start(dimension)
            kind = await self._look(dimension)
        return kind

    async def _look(self, dimension: int) -> str | None:
        valid = {each.name for each in await self._found() if each.is_valid}
        names = queries.index_names(self._pool.prefix, dimension)
        kind = next((kind for name, kind in names if name in valid), None)
        if kind is not None:
            self._seen[dimension] = _Seen(kind)
        return kind

    async def _found(self) -> list[queries.FoundIndex]:
        return [queries.FoundIndex.of(row) for row in await self._pool.fetch(queries.INDEXES)]

    async def _start(self, dimension: int) -> None:
        builds = self._builds.get(dict)
        task = builds.get(dimension)
        if task is None:
            task = builds[dimension] = asyncio.create_task(self._build_or_tell(dimension))
            task.add_done_callback(lambda _: builds.pop(dimension, None))
        if await self._pool.fetchval(queries.SIZE_OF_VECTORS) <= _SMALL:
            await asyncio.wait([task])

    async def build(self, dimensions: Sequence[int]) -> None:
        """Build the indexes of these lengths that are missing, and wait for all builds here."""
        for dimension in filter(self.may_exist, dimensions):
            if await self._look(dimension) is None:
                await self._start(dimension)
        if builds := list(self._builds.get(dict).values()):
            await asyncio.wait(builds)

    async def close(self) -> None:
        """End the builds of this event loop; another start builds them again."""
        builds = list(self._builds.get(dict).values())
        for build in builds:
            build.cancel()
        if builds:
            await asyncio.wait(builds)

    async def _build_or_tell(self, dimension: int) -> None:
        try:
            with on_primary():
                await self._build(dimension)
        except BackendError as error:
            # Without an index every search is exact.
            self._failed.add(dimension)
            emit("postgresql.no_vector_index", error=error, dimension=dimension)

    async def _build(self, dimension: int) -> None:
        name, kind = queries.index_names(self._pool.prefix, dimension)[0]
        async with self._pool.outside() as guard:
            await guard.execute("BEGIN")
            if await guard.execute(self._pool.sql(queries.TRY_LOCK)) != queries.LOCKED:
                # Another process builds an index.
                return
            async with self._pool.outside() as connection:
                if await self._is_cleared(connection, name):
                    statement = queries.make_index(name, dimension, kind)
                    await connection.execute(self._pool.sql(statement), timeout=_PATIENCE)

    async def _is_cleared(self, connection: Connection, name: str) -> bool:
        """Drop what killed builds left; return whether an index can be built."""
        found = await self._found()
        if any(each.name == name and not each.is_valid for each in found):
            if not await self._renamed(connection, name):
                return False
            found = await self._found()
        dead = self._pool.prefix + queries.DEAD
        for each in found:
            if each.name.startswith(dead):
                statement = queries.drop_index(each.name)
                await connection.execute(self._pool.sql(statement), timeout=_PATIENCE)
        return True

    async def _renamed(self, connection: Connection, name: str) -> bool:
        """Give an invalid index another name, unless the server is still building it."""
        await connection.execute("BEGIN")
        try:
            if not await queries.locked_at_once(connection, self._pool.sql(queries.LOCK_VECTORS)):
                return False
            for row in await connection.fetch(self._pool.sql(queries.INDEXES)):
                found = queries.FoundIndex.of(row)
                if found.name == name and not found.is_valid:
                    dead = f"{self._pool.prefix}{queries.DEAD}{found.number}"
                    statement = queries.rename_index(name, dead)
                    await connection.execute(self._pool.sql(statement))
            await connection.execute("COMMIT")
        finally:
            if connection.is_in_transaction():
                await connection.execute("ROLLBACK")
        return True
