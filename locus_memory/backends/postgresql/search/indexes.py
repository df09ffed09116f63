"""The HNSW indexes of the vectors: built when a search needs one, without blocking a writer.

An index makes each put of a vector several times slower, and a search of a small namespace never
uses it. So the first search of a large scope starts the build, and is exact until it is done.

One index holds all vectors of a length. If a large namespace is a small part of it, or has few
hits for a filter, that index finds too few of them in time; then the namespace gets an index of its
own, beside the other one.

`CREATE INDEX CONCURRENTLY` leaves an invalid index behind if it is ended. A builder therefore holds
an advisory lock, in a transaction of a connection of its own, which ends with its process. Whoever
gets the lock and finds an invalid index builds it again, unless the server is still at it. The lock
needs no session, so all of this works through a pooler in transaction mode.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from locus_memory._internal.recent import RecentlyUsed
from locus_memory.backends.loops import LoopLocal
from locus_memory.backends.postgresql.connection.connection import PostgreSQLPool
from locus_memory.backends.postgresql.connection.driver import Connection, Record, errors
from locus_memory.backends.postgresql.connection.standbys import reading
from locus_memory.backends.postgresql.search import vector_queries as queries
from locus_memory.errors import BackendError
from locus_memory.events import emit

__all__ = ["OwnIndex", "VectorIndexes"]

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

_REMEMBERED: Final = 1_024
"""The number of cached refusals."""

_LARGEST_SHARE: Final = 0.5
"""The largest share of all vectors that an index of one namespace may hold: a search of a larger
one would gain too little for the second index that its puts pay for."""


@dataclass(frozen=True, slots=True)
class OwnIndex:
    """The index of the vectors of one length in one namespace.

    Attributes:
        scope: The digest of the namespace.
        dimension: The length of the vectors.
    """

    scope: str
    dimension: int


_Index = int | OwnIndex
"""An index: of all vectors of a length, or of one namespace."""


class VectorIndexes:
    """The indexes of one store: one for each vector length, and those of single namespaces.

    Args:
        pool: The database.
        wanted: Whether there are indexes.
        most_own: How many namespaces may have an index of their own.
        least_own: The number of vectors below which a namespace needs none.
    """

    def __init__(
        self, pool: PostgreSQLPool, *, wanted: bool, most_own: int = 0, least_own: int = 1
    ) -> None:
        self._pool = pool
        self._wanted = wanted
        self._most_own = most_own
        self._least_own = max(1, least_own)
        self._valid: frozenset[str] = frozenset()
        self._uses = 0
        self._failed: set[_Index] = set()
        self._refused: RecentlyUsed[int] = RecentlyUsed(_REMEMBERED)
        self._builds: LoopLocal[dict[_Index, asyncio.Task[None]]] = LoopLocal()

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
        if self._uses > 0:
            self._uses -= 1
            if kind := self._kind(dimension):
                return kind
        kind = await self._look(dimension)
        if kind is None and dimension not in self._failed:
            await self._start(dimension)
            kind = await self._look(dimension)
        return kind

    def has_own(self, index: OwnIndex) -> bool:
        """Return whether a namespace had an index of its own at the last look."""
        return bool(self._most_own) and self._name(index) in self._valid

    async def make_own(self, index: OwnIndex) -> None:
        """Start the build of the index of one namespace, unless it was refused before."""
        name = self._name(index)
        if uses := self._refused.get(name):
            self._refused.put(name, uses - 1)
        elif self._most_own and index not in self._failed:
            await self._start(index)

    def _name(self, index: OwnIndex) -> str:
        return queries.own_index_name(self._pool.prefix, index.dimension, index.scope)

    def _kind(self, dimension: int) -> str | None:
        names = queries.index_names(self._pool.prefix, dimension)
        return next((kind for name, kind in names if name in self._valid), None)

    async def _look(self, dimension: int) -> str | None:
        self._valid = frozenset(row["name"] for row in await self._found() if row["is_valid"])
        self._uses = _USES
        return self._kind(dimension)

    async def _found(self) -> list[Record]:
        return await self._pool.fetch(queries.INDEXES)

    async def _start(self, index: _Index) -> None:
        builds = self._builds.get(dict)
        task = builds.get(index)
        if task is None:
            task = builds[index] = asyncio.create_task(self._build_or_tell(index))
            task.add_done_callback(lambda _: builds.pop(index, None))
        if await self._pool.fetchval(queries.SIZE_OF_VECTORS) <= _SMALL:
            await asyncio.wait([task])

    async def build(self, dimensions: Sequence[int]) -> None:
        """Build the indexes of these lengths that are missing, and wait for all builds here."""
        for dimension in filter(self.may_exist, dimensions):
            if await self._look(dimension) is None:
                await self._start(dimension)
        await self._finish()

    async def build_own(self) -> None:
        """Build the missing indexes of the largest namespaces, and drop those of small ones."""
        await self._finish()
        if small := await self._small(await self._own()):
            async with self._alone() as connection:
                if connection is not None:
                    await self._drop(connection, small)
        if not self._most_own:
            return
        # One of them may have too large a share.
        most = self._most_own + 1
        rows = await self._pool.fetch(queries.LARGE_SCOPES, self._least_own, most)
        for row in rows:
            index = OwnIndex(row["scope"], row["dimension"])
            if self.may_exist(index.dimension) and not self.has_own(index):
                await self.make_own(index)
                await self._finish()

    async def _finish(self) -> None:
        if builds := list(self._builds.get(dict).values()):
            await asyncio.wait(builds)

    async def close(self) -> None:
        """End the builds of this event loop; another start builds them again."""
        builds = list(self._builds.get(dict).values())
        for build in builds:
            build.cancel()
        if builds:
            await asyncio.wait(builds)

    async def _build_or_tell(self, index: _Index) -> None:
        try:
            with reading(of_standbys=None):
                await self._build(index)
        except BackendError as error:
            # Without an index every search is exact.
            self._failed.add(index)
            dimension = index.dimension if isinstance(index, OwnIndex) else index
            emit("postgresql.no_vector_index", error=error, dimension=dimension)
        finally:
            # The next search looks for it.
            self._uses = 0

    @asynccontextmanager
    async def _alone(self) -> AsyncGenerator[Connection | None]:
        """Lend a connection to the only builder; `None`: another process builds an index."""
        async with self._pool.outside() as guard:
            await guard.execute("BEGIN")
            if await guard.execute(self._pool.sql(queries.TRY_LOCK)) != queries.LOCKED:
                yield None
                return
            async with self._pool.outside() as connection:
                yield connection

    async def _build(self, index: _Index) -> None:
        async with self._alone() as connection:
            if connection is None:
                return
            name, statement = self._made(index)
            if not await self._is_cleared(connection, name):
                return
            if isinstance(index, OwnIndex) and not await self._has_room(connection, index):
                self._refused.put(name, _USES)
                return
            await connection.execute(self._pool.sql(statement), timeout=_PATIENCE)

    def _made(self, index: _Index) -> tuple[str, str]:
        """Return the name of an index, and the statement that builds it."""
        if isinstance(index, OwnIndex):
            name, kind = self._name(index), queries.OWN_KIND
            return name, queries.make_index(name, index.dimension, kind, index.scope)
        name, kind = queries.index_names(self._pool.prefix, index)[0]
        return name, queries.make_index(name, index, kind)

    async def _has_room(self, connection: Connection, index: OwnIndex) -> bool:
        """Return whether a namespace may have an index, after dropping those of small ones."""
        here, everywhere = await self._counted(index)
        if not self._least_own <= here <= _LARGEST_SHARE * everywhere:
            return False
        own = await self._own()
        small = await self._small(own)
        await self._drop(connection, small)
        return len(own) - len(small) < self._most_own

    async def _counted(self, index: OwnIndex) -> tuple[int, int]:
        """Return the number of vectors in a namespace, and about how many there are in all."""
        row = await self._pool.fetchrow(queries.COUNT_SCOPE, index.scope, index.dimension)
        return (row["here"], row["everywhere"]) if row is not None else (0, 0)

    async def _own(self) -> dict[str, OwnIndex]:
        """Return the indexes of single namespaces, by name."""
        names = [row["name"] for row in await self._found()]
        found = {name: queries.scope_of_index(self._pool.prefix, name) for name in names}
        return {name: OwnIndex(*place) for name, place in found.items() if place is not None}

    async def _small(self, own: dict[str, OwnIndex]) -> list[str]:
        """Return the names of the indexes of namespaces that need none any more."""
        counts = {name: (await self._counted(index))[0] for name, index in own.items()}
        return [name for name, count in counts.items() if count < self._least_own]

    async def _is_cleared(self, connection: Connection, name: str) -> bool:
        """Drop what killed builds left; return whether an index can be built."""
        found = await self._found()
        if any(row["name"] == name and not row["is_valid"] for row in found):
            if not await self._renamed(connection, name):
                return False
            found = await self._found()
        dead = self._pool.prefix + queries.DEAD
        await self._drop(connection, [row["name"] for row in found if row["name"].startswith(dead)])
        return True

    async def _drop(self, connection: Connection, names: Iterable[str]) -> None:
        for name in names:
            statement = self._pool.sql(queries.drop_index(name))
            await connection.execute(statement, timeout=_PATIENCE)

    async def _renamed(self, connection: Connection, name: str) -> bool:
        """Give an invalid index another name, unless the server is still building it."""
        await connection.execute("BEGIN")
        try:
            await connection.execute(self._pool.sql(queries.LOCK_VECTORS))
            for row in await connection.fetch(self._pool.sql(queries.INDEXES)):
                if row["name"] == name and not row["is_valid"]:
                    dead = f"{self._pool.prefix}{queries.DEAD}{row['number']}"
                    statement = queries.rename_index(name, dead)
                    await connection.execute(self._pool.sql(statement))
            await connection.execute("COMMIT")
        except errors.LockNotAvailableError:
            return False
        finally:
            if connection.is_in_transaction():
                await connection.execute("ROLLBACK")
        return True
