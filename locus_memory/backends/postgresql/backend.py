"""The PostgreSQL backend: both contracts over one pool of connections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from typing_extensions import override

from locus_memory._internal.options import Keywords, checked
from locus_memory.backends.advice import Advice
from locus_memory.backends.base import ConnectedBackend, compact_parts
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


class PostgreSQLBackend(
    ConnectedBackend[PostgreSQLPool, PostgreSQLStore, PostgreSQLCheckpointer[Any]]
):
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
        self._connection, self._owned = pool_for(database, pool, options)
        self._store = PostgreSQLStore(pool=self._connection, **(store_options or dict[str, Any]()))
        self._checkpointer = PostgreSQLCheckpointer(
            pool=self._connection, **(checkpointer_options or CheckpointerOptions())
        )

    @override
    async def problems(self) -> list[str]:
        """Return the number of lost vectors, which a search does not detect."""
        await self._connection.open()
        if not self._connection.features.has_vector:
            return []
        lost = await self._connection.fetchval(LOST_VECTORS)
        return [f"postgresql: items without their vector: {lost}"] if lost else []

    @override
    async def advice(self) -> list[Advice]:
        return await advise(self._connection)

    @override
    async def outdated(self) -> list[Advice]:
        return await outdated(self._connection)

    @override
    async def compact(self) -> None:
        """Erase deleted rows from the files: each table is rewritten, and locked meanwhile."""
        await compact_parts(self)
        await self._connection.execute(REWRITE)
        if self._connection.features.has_vector:
            await self._connection.execute("VACUUM (FULL, ANALYZE) {vectors}")

    @override
    async def remains(self, search: ByteSearch) -> list[Place]:
        """Search the files of the tables and their statistics.

        Its write-ahead log, replicas and backups are named as places that are not searched.
        """
        limits = "it keeps deleted data until it is recycled or expires"
        return [
            *await find_remains(self._connection, search),
            Place(name="pg_wal, replicas and backups", how="not read", limit=limits),
        ]
