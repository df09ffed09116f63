"""The PostgreSQL backend: both contracts over one pool of connections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Unpack

from typing_extensions import override

from locus_memory._internal.options import checked
from locus_memory.backends.advice import Advice
from locus_memory.backends.base import ConnectedBackend
from locus_memory.backends.postgresql.advice import advise, outdated
from locus_memory.backends.postgresql.checkpoints import PostgreSQLCheckpointer
from locus_memory.backends.postgresql.connection.connection import (
    PostgreSQLPool,
)
from locus_memory.backends.postgresql.connection.driver import Pool
from locus_memory.backends.postgresql.items.queries import LOST_VECTORS
from locus_memory.backends.postgresql.options import (
    PostgreSQLKeywords,
    PostgreSQLOptions,
)
from locus_memory.backends.postgresql.store import PostgreSQLStore
from locus_memory.backends.remains import ByteSearch, Place
from locus_memory.checkpoint.chain import CheckpointerOptions
from locus_memory.errors import BackendError

__all__ = ["PostgreSQLBackend"]

_PIECE: Final = 8 * 2**20
_SEGMENT: Final = 2**30
"""Bytes of a file; a longer relation has several."""

_OVERLAP: Final = 2**16

REWRITE: Final = "VACUUM (FULL, ANALYZE) {items}, {threads}, {checkpoints}"
"""A vacuum alone leaves deleted rows in the free space of pages."""

_RELATIONS: Final = """
    WITH own AS (
      SELECT c.oid, c.reltoastrelid FROM pg_class c
      WHERE c.relkind IN ('r', 'i', 'm')
        AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = '{items}'::regclass))
    SELECT oid::regclass::text, pg_relation_filepath(oid), pg_relation_size(oid) FROM own
    UNION ALL
    SELECT t.oid::regclass::text, pg_relation_filepath(t.oid), pg_relation_size(t.oid)
    FROM own JOIN pg_class t ON t.oid = own.reltoastrelid
      OR t.oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = own.reltoastrelid)
    ORDER BY 1"""

_STATISTICS: Final = """
    SELECT coalesce(most_common_vals::text, '') || coalesce(histogram_bounds::text, '')
        || coalesce(most_common_elems::text, '')
    FROM pg_stats WHERE schemaname = (
      SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE c.oid = '{items}'::regclass)"""

_READ: Final = "SELECT pg_read_binary_file($1, $2, $3, true)"
_REFUSED: Final = (
    "the role may not read the server's files: a superuser can GRANT pg_read_server_files, "
    "pg_checkpoint, and GRANT EXECUTE ON FUNCTION pg_read_binary_file(text,bigint,bigint,boolean)"
)


async def find_remains(pool: PostgreSQLPool, search: ByteSearch) -> list[Place]:
    """Return the files of all tables and indexes of the schema, and what cannot be looked at."""
    await pool.open()
    relations = await pool.fetch(_RELATIONS)
    places = [await _relation(pool, search, row) for row in relations]
    rows: list[Any] = await pool.fetch(_STATISTICS)
    places.append(
        Place(
            name="pg_stats",
            how=f"the values of {len(rows)} columns",
            bytes=sum(len(row[0]) for row in rows),
            found=sum(search.count_text(row[0]) for row in rows),
        )
    )
    return places


async def _relation(pool: PostgreSQLPool, search: ByteSearch, row: Any) -> Place:
    path, size = row[1], row[2]
    name, found, tail = f"{row[0]} ({path})", 0, b""
    try:
        # The files on the disk are older than the pages in memory.
        await pool.execute("CHECKPOINT")
        for start in range(0, size, _PIECE):
            number, offset = divmod(start, _SEGMENT)
            segment = f"{path}.{number}" if number else path
            piece = await pool.fetchval(_READ, segment, offset, _PIECE)
            found += search.count(tail + (piece or b""))
            tail = (piece or b"")[-_OVERLAP:]
    except BackendError:
        return Place(name=name, how="not read", problem=_REFUSED)
    return Place(name=name, how="every byte", bytes=size, found=found)


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
        self._connect(PostgreSQLPool, PostgreSQLOptions, database, options, keywords, pool=pool)
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
        await super().compact()
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
