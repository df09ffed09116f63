"""The statements for the indexes of the vectors; see `search/indexes.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from locus_memory.backends.postgresql.connection.driver import (
    Connection,
    LockNotAvailableError,
    Record,
)

__all__ = [
    "DEAD",
    "INDEXES",
    "LARGE_DIMENSIONS",
    "LOCKED",
    "LOCK_VECTORS",
    "SIZE_OF_VECTORS",
    "TRY_LOCK",
    "FoundIndex",
    "drop_index",
    "index_names",
    "locked_at_once",
    "make_index",
    "rename_index",
]

DEAD: Final = "dead_index_"
"""After the prefix, how the name of an index begins that is to be dropped."""

# Vectors of up to this length had an index of `vector` before, and it goes on.
_LONGEST_VECTOR: Final = 2_000

INDEXES: Final = """
SELECT c.relname::text AS name, i.indisvalid AS is_valid, c.oid::bigint AS number
FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
WHERE i.indrelid = '{vectors}'::regclass
"""

SIZE_OF_VECTORS: Final = "SELECT pg_catalog.pg_table_size('{vectors}'::regclass)"

# Without parameters and rows, it is sent as a simple query. Any other leaves a portal open until
# the transaction ends, and the build would wait for the snapshot of that portal.
TRY_LOCK: Final = """
SELECT WHERE pg_catalog.pg_try_advisory_xact_lock(
  pg_catalog.hashtextextended('index of {vectors}', 0))
"""

LOCKED: Final = "SELECT 1"
"""The tag of `TRY_LOCK` if the lock was free."""

# The build of an index holds this lock from the beginning to the end.
LOCK_VECTORS: Final = "LOCK TABLE {vectors} IN SHARE UPDATE EXCLUSIVE MODE NOWAIT"

LARGE_DIMENSIONS: Final = """
SELECT DISTINCT dimension FROM (
  SELECT dimension FROM {vectors} GROUP BY scope, dimension HAVING count(*) >= $1::bigint) AS large
"""


@dataclass(frozen=True, slots=True)
class FoundIndex:
    """An index of the table of vectors.

    Attributes:
        name: Its name, with the prefix.
        is_valid: Whether its build is finished.
        number: Its `oid`.
    """

    name: str
    is_valid: bool
    number: int

    @classmethod
    def of(cls, row: Record) -> Self:
        """Return the index of a row of `INDEXES`."""
        return cls(row["name"], row["is_valid"], row["number"])


def index_names(prefix: str, dimension: int) -> list[tuple[str, str]]:
    """Return the names of the index of a length, the one to build first, with their types.

    The others are those of earlier versions.
    """
    earlier = "vector" if dimension <= _LONGEST_VECTOR else "halfvec"
    return [
        (f"{prefix}vectors_by_halves_{dimension}", "halfvec"),
        (f"{prefix}vectors_by_direction_{dimension}", earlier),
    ]


def make_index(name: str, dimension: int, kind: str) -> str:
    """Return the statement that builds the index of all vectors of one length.

    It has more links than the default of pgvector: with the default, no search reaches some
    clusters of vectors.
    """
    return f"""
CREATE INDEX CONCURRENTLY IF NOT EXISTS "{name}" ON {{vectors}} USING hnsw (
  (embedding::{{vector}}.{kind}({dimension})) {{vector}}.{kind}_ip_ops)
WITH (m = 24, ef_construction = 200) WHERE dimension = {dimension}
"""


def rename_index(name: str, new: str) -> str:
    """Return the statement that renames an index."""
    return f'ALTER INDEX {{schema}}."{name}" RENAME TO "{new}"'


def drop_index(name: str) -> str:
    """Return the statement that drops an index without blocking a writer."""
    return f'DROP INDEX CONCURRENTLY IF EXISTS {{schema}}."{name}"'


async def locked_at_once(connection: Connection, statement: str) -> bool:
    """Return whether a lock was free."""
    try:
        await connection.execute(statement)
    except LockNotAvailableError:
        return False
    return True
