"""The PostgreSQL backend: both contracts over one pool of connections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from typing_extensions import override

from locus_memory._internal.options import Keywords, checked
from locus_memory.backends.advice import Advice
from locus_memory.backends.base import Backend, compact_parts
from locus_memory.backends.postgresql.advice import advise, outdated
from locus_memory.backends.postgresql.checkpoints import PostgreSQLCheckpointer
from locus_memory.backends.postgresql.connection.connection import (
    PostgreSQLPool,
    pool_for,
)
from locus_memory.backends.postgresql.connection.driver import Pool
from locus_memory.backends.postgresql.items.queries import LOST_VECTORS
from locus_memory.backends.postgresql.options import (
    PostgreSQLKeywords,
    PostgreSQLOptions,
)
from locus_memory.backends.postgresql.remains import REWRITE, find_remains
from locus_memory.backends.postgresql.store import PostgreSQLStore
from locus_memory.backends.remains import ByteSearch, Place
from locus_memory.checkpoint.chain import CheckpointerOptions

__all__ = ["PostgreSQLBackend"]


class PostgreSQLBackend(Backend):
    """A store and a checkpointer in one schema of a database, over the same connections.

    Args:
        database: See `PostgreSQLPool`.
        pool: A pool to share, of asyncpg or a `PostgreSQLPool`; the backend does not close it.
        options: How to connect, and where the tables are; ignored with a `PostgreSQLPool`.
        store_options: Options of `PostgreSQLStore`.
        checkpointer_options: Options of `PostgreSQLCheckpointer`.
        **keywords: The fields of `PostgreSQLOptions` by name, in place of `options`.
    """

    provider = "postgresql"

    @checked
    def __init__(
        self,
        database: str | None = None,
        *,
        pool: Pool | PostgreSQLPool | None = None,
        options: PostgreSQLOptions | None = None,
        store_options: Mapping[str, Any] | None = None,
        checkpointer_options: CheckpointerOptions | None = None,
        **keywords: Unpack[PostgreSQLKeywords],
    ) -> None:
        options = Keywords(self, keywords).all_into(PostgreSQLOptions, options=options)
        self._pool, self._owned = pool_for(database, pool, options)
        for_store: Mapping[str, Any] = store_options or {}
        self._store = PostgreSQLStore(pool=self._pool, **for_store)
        for_checkpointer: CheckpointerOptions = checkpointer_options or {}
        self._checkpointer: PostgreSQLCheckpointer = PostgreSQLCheckpointer(
            pool=self._pool, **for_checkpointer
        )

    @property
    def store(self) -> PostgreSQLStore:
        """The store."""
        return self._store

    @property
    def checkpointer(self) -> PostgreSQLCheckpointer:
        """The checkpointer."""
        return self._checkpointer

    @override
    async def problems(self) -> list[str]:
        """Return the number of lost vectors, which a search does not detect."""
        await self._pool.open()
        if not self._pool.features.has_vector:
            return []
        lost = await self._pool.fetchval(LOST_VECTORS)
        return [f"postgresql: items without their vector: {lost}"] if lost else []

    @override
    async def advice(self) -> list[Advice]:
        return await advise(self._pool)

    @override
    async def outdated(self) -> list[Advice]:
        return await outdated(self._pool)

    @override
    async def compact(self) -> None:
        """Erase deleted rows from the files: each table is rewritten, and locked meanwhile."""
        await compact_parts(self)
        await self._pool.execute(REWRITE)
        if self._pool.features.has_vector:
            await self._pool.execute("VACUUM (FULL, ANALYZE) {vectors}")

    @override
    async def remains(self, search: ByteSearch) -> list[Place]:
        """Search the files of the tables and their statistics.

        Its write-ahead log, replicas and backups are named as places that are not searched.
        """
        limits = "it keeps deleted data until it is recycled or expires"
        return [
            *await find_remains(self._pool, search),
            Place(name="pg_wal, replicas and backups", how="not read", limit=limits),
        ]

    async def open(self) -> None:
        """Connect and create the tables now, rather than at the first use."""
        await self._store.open()
        await self._checkpointer.open()

    async def close(self) -> None:
        """Close the connections, unless the pool was passed in."""
        await self._store.close()
        await self._checkpointer.close()
        if self._owned:
            await self._pool.close()
