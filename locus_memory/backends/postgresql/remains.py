"""Deleted words in the files of PostgreSQL's tables, and in its statistics."""

from __future__ import annotations

from typing import Any, Final

from locus_memory.backends.postgresql.connection.connection import PostgreSQLPool
from locus_memory.backends.remains import ByteSearch, Place
from locus_memory.errors import BackendError

__all__ = ["REWRITE", "find_remains"]

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
        problem = "the role may not read the server's files: use one of pg_read_server_files"
        return Place(
            name=f"{name} ({path})", how="not read", problem=f"{problem} and pg_checkpoint"
        )
    return Place(name=f"{name} ({path})", how="every byte", bytes=size, found=found)
