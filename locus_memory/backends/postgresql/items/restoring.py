"""Items that are restored: a put of many items, each with a version and moments of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from locus_memory.backends.postgresql.connection.connection import PostgreSQLPool
from locus_memory.backends.postgresql.items import queries
from locus_memory.backends.postgresql.items.queries import split_column
from locus_memory.backends.postgresql.items.rows import (
    Row,
    addresses_of,
    contents_of,
    embeddings_of,
    join_column,
)
from locus_memory.store.item import Restored

__all__ = ["RESTORE", "RESTORE_OVER_VECTORS", "RESTORE_VECTORS", "restore"]

_COLUMNS: Final = 11
"""The number of the last parameter of a put without vectors."""

_COLUMNS_WITH_VECTORS: Final = 13

_VERSION: Final = "CASE WHEN i.expires_at <= EXCLUDED.updated_at THEN 1 ELSE i.version + 1 END"
_UPDATED: Final = """CASE WHEN i.expires_at <= EXCLUDED.updated_at THEN EXCLUDED.updated_at
    ELSE greatest(i.updated_at, EXCLUDED.updated_at) END"""
_CREATED: Final = """CASE WHEN i.expires_at <= EXCLUDED.updated_at THEN EXCLUDED.created_at
    ELSE i.created_at END"""


def _restoring(put: str, last: int) -> str:
    """Return the statement that restores items, from the one that puts them.

    The first parameter, the moment of a put, is the column of versions, and two columns follow the
    others.

    Raises:
        ValueError: A part of the statement is not found.
    """
    numbers = ((1, "version"), (last + 1, "created_at"), (last + 2, "updated_at"))
    past = ", ".join(f"unnest({split_column(number)}) AS {name}" for number, name in numbers)
    given = "g.version::bigint, g.created_at::timestamptz, g.updated_at::timestamptz"
    for old, new in (
        ("nextval('{revisions}') AS revision", f"nextval('{{revisions}}') AS revision, {given}"),
        ("FROM (SELECT unnest", f"FROM (SELECT {past}, unnest"),
        (
            "(SELECT $1::text::timestamptz) + g.expires_at::interval AS expires_at",
            "g.expires_at::timestamptz AS expires_at",
        ),
        (
            "1, revision, $1::text::timestamptz, $1::text::timestamptz",
            "version, revision, created_at, updated_at",
        ),
        (_VERSION, "EXCLUDED.version"),
        (_CREATED, "EXCLUDED.created_at"),
        (_UPDATED, "EXCLUDED.updated_at"),
    ):
        if put.count(old) != 1:
            raise ValueError(f"the statement of a put has no {old!r}")
        put = put.replace(old, new)
    return put


RESTORE: Final = _restoring(queries.PUT_MANY, _COLUMNS)
RESTORE_OVER_VECTORS: Final = _restoring(queries.PUT_MANY_OVER_VECTORS, _COLUMNS)
RESTORE_VECTORS: Final = _restoring(queries.PUT_MANY_VECTORS, _COLUMNS_WITH_VECTORS)


async def restore(pool: PostgreSQLPool, rows: Sequence[Row], given: Sequence[Restored]) -> None:
    """Write items with their versions and moments, in one round trip.

    Args:
        pool: The database.
        rows: The items, encoded; at least one, and no two of the same name.
        given: The same items.
    """
    _, *contents = contents_of(rows)
    expiries = join_column("" if e.expires_at is None else str(e.expires_at) for e in given)
    moments = [
        join_column(str(each.created_at) for each in given),
        join_column(str(each.updated_at) for each in given),
    ]
    statement = RESTORE_OVER_VECTORS if pool.features.has_vector else RESTORE
    vectors: Sequence[str] = ()
    if any(row.embedding is not None for row in rows):
        statement, vectors = RESTORE_VECTORS, embeddings_of(rows)
    versions = join_column(str(each.version) for each in given)
    arguments = versions, *addresses_of(rows), expiries, *contents, *vectors, *moments
    await pool.fetchval(statement, *arguments)
