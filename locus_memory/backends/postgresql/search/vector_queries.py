"""The statements for vectors and their indexes; see `vectors.py` and `indexes.py`."""

# ruff: noqa: S608 - no text of a caller ever gets into a statement

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final
from uuid import UUID

from locus_memory.backends.postgresql.items.queries import COLUMNS

__all__ = [
    "COUNT_SCOPE",
    "DEAD",
    "INDEXES",
    "LARGE_DIMENSIONS",
    "LARGE_SCOPES",
    "LOCKED",
    "LOCK_VECTORS",
    "OWN_KIND",
    "SETTINGS",
    "SIZE_OF_VECTORS",
    "TRY_LOCK",
    "count_vectors",
    "drop_index",
    "index_names",
    "make_index",
    "nearest_by_index",
    "nearest_exactly",
    "other_dimension",
    "own_index_name",
    "rename_index",
    "scope_of_index",
]

DEAD: Final = "dead_index_"
"""After the prefix, how the name of an index begins that is to be dropped."""

OWN_KIND: Final = "halfvec"
"""The type of the vectors in the index of one namespace."""

_OWN: Final = "own_"

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

LARGE_SCOPES: Final = """
SELECT scope::text AS scope, dimension FROM {vectors}
GROUP BY scope, dimension HAVING count(*) >= $1::bigint ORDER BY count(*) DESC LIMIT $2::bigint
"""

# The number of all vectors is the server's estimate, -1 before the first analysis.
COUNT_SCOPE: Final = """
SELECT count(*) AS here, (
  SELECT reltuples::bigint FROM pg_catalog.pg_class WHERE oid = '{vectors}'::regclass) AS everywhere
FROM {vectors} AS v WHERE v.scope = $1::text::uuid AND v.dimension = $2::bigint
"""


def index_names(prefix: str, dimension: int) -> list[tuple[str, str]]:
    """Return the names of the index of a length, the one to build first, with their types.

    The others are those of earlier versions.
    """
    earlier = "vector" if dimension <= _LONGEST_VECTOR else "halfvec"
    return [
        (f"{prefix}vectors_by_halves_{dimension}", "halfvec"),
        (f"{prefix}vectors_by_direction_{dimension}", earlier),
    ]


def own_index_name(prefix: str, dimension: int, scope: str) -> str:
    """Return the name of the index of one namespace, in at most 63 characters.

    Args:
        prefix: The beginning of every name.
        dimension: The length of the vectors.
        scope: The digest of the namespace, a UUID.
    """
    # 22 characters, without the padding.
    digest = urlsafe_b64encode(UUID(scope).bytes)[:22].decode()
    return f"{prefix}{_OWN}{digest}_{dimension}"


def scope_of_index(prefix: str, name: str) -> tuple[str, int] | None:
    """Return the scope and the dimension of the index of one namespace; `None`: of any other."""
    match = re.fullmatch(re.escape(prefix + _OWN) + r"([\w-]{22})_([0-9]+)", name, re.ASCII)
    if match is None:
        return None
    return str(UUID(bytes=urlsafe_b64decode(match[1] + "=="))), int(match[2])


def make_index(name: str, dimension: int, kind: str, scope: str | None = None) -> str:
    """Return the statement that builds the index of the vectors of one length.

    It has more links than the default of pgvector: with the default, no search reaches some
    clusters of vectors.

    Args:
        name: The name of the index.
        dimension: The length of the vectors.
        kind: Their type in the index.
        scope: The digest of the only namespace in it, or `None` for all.
    """
    inside = "" if scope is None else f" AND scope = '{scope}'"
    return f"""
CREATE INDEX CONCURRENTLY IF NOT EXISTS "{name}" ON {{vectors}} USING hnsw (
  (embedding::{{vector}}.{kind}({dimension})) {{vector}}.{kind}_ip_ops)
WITH (m = 24, ef_construction = 200) WHERE dimension = {dimension}{inside}
"""


def rename_index(name: str, new: str) -> str:
    """Return the statement that renames an index."""
    return f'ALTER INDEX {{schema}}."{name}" RENAME TO "{new}"'


def drop_index(name: str) -> str:
    """Return the statement that drops an index without blocking a writer."""
    return f'DROP INDEX CONCURRENTLY IF EXISTS {{schema}}."{name}"'


# The limits of the index, and its use: the planner overestimates the cost of an index that may be
# read for long.
SETTINGS: Final = """
SELECT pg_catalog.set_config(name, value, true) FROM (VALUES
  ('hnsw.iterative_scan', 'relaxed_order'), ('hnsw.ef_search', $1),
  ('hnsw.max_scan_tuples', $2), ('enable_sort', 'off'), ('max_parallel_workers_per_gather', '0')
) AS setting (name, value)
"""


def count_vectors(scope: str, dimension: int, most: str) -> str:
    """Return the query for the number of vectors in a scope, counted up to `most`."""
    return f"""
SELECT count(*) FROM (
  SELECT FROM {{vectors}} AS v WHERE {scope} AND v.dimension = {dimension} LIMIT {most}) AS counted
"""


# The vectors come in order, and the item of each is looked up until there are enough hits. OFFSET 0
# keeps the planner from looking up all items first.
_VALID: Final = """CROSS JOIN LATERAL (
      SELECT FROM {{items}} AS i
      WHERE i.name = near.name AND i.revision = near.revision AND {live} OFFSET 0) AS item"""
_DISTANCE: Final = "v.embedding OPERATOR({{vector}}.<=>) (SELECT {query}::{{vector}}.vector)"


def nearest_exactly(
    scope: str, live: str, dimension: int, *, query: str, first: str, limit: str, offset: str
) -> str:
    """Return the query for a page of the nearest vectors, which compares all of them.

    Args:
        scope: The condition that the vector `v` is in the scope.
        live: The conditions on the item `i`.
        dimension: The length of the vectors.
        query: The text of the vector to compare with.
        first: A `text[]` with the names that come before all others, or `""`.
        limit: The parameter of the page's size.
        offset: The parameter of the page's start.
    """
    ranks = f"array_position({first}, v.name) AS rank, " if first else ""
    order = f"{'rank, ' if first else ''}distance, revision DESC"
    return f"""
SELECT hit.name, hit.distance, {COLUMNS} FROM (
  SELECT valid.*, row_number() OVER () AS place FROM (
    SELECT near.name, near.distance FROM (
      SELECT v.name, v.revision, {ranks}{_DISTANCE.format(query=query)} AS distance
      FROM {{vectors}} AS v WHERE v.dimension = {dimension} AND {scope}
      ORDER BY {order} OFFSET 0) AS near
    {_VALID.format(live=live)}
    ORDER BY {order} LIMIT {limit} OFFSET {offset}) AS valid) AS hit
JOIN {{items}} AS i ON i.name = hit.name ORDER BY hit.place
"""


def nearest_by_index(
    scope: str, live: str, dimension: int, *, kind: str, query: str, most: int, page: str
) -> str:
    """Return the query for the `most` nearest vectors, by the index of their length.

    Args:
        scope: The condition that the vector `v` is in the scope.
        live: The conditions on the item `i`.
        dimension: The length of the vectors.
        kind: The type of the vectors in the index.
        query: The text of the vector to compare with.
        most: The number of vectors.
        page: The condition on `hit.place` of the hits that come with their items.
    """
    typed = f"{{vector}}.{kind}({dimension})"
    return f"""
SELECT hit.name, hit.distance, hit.place, {COLUMNS} FROM (
  SELECT valid.*, row_number() OVER (ORDER BY distance, revision DESC) AS place FROM (
    SELECT near.name, near.revision, near.distance FROM (
      SELECT v.name, v.revision, {_DISTANCE.format(query=query)} AS distance
      FROM {{vectors}} AS v WHERE v.dimension = {dimension} AND {scope}
      ORDER BY (v.embedding::{typed}) OPERATOR({{vector}}.<#>) (SELECT {query}::{typed})
      OFFSET 0) AS near
    {_VALID.format(live=live)}
    LIMIT {most}) AS valid) AS hit
LEFT JOIN {{items}} AS i ON i.name = hit.name AND {page} ORDER BY hit.place
"""


def other_dimension(scope: str, live: str, dimension: int) -> str:
    """Return the query for the dimension of the scope's vectors, if none has this one."""
    return f"""
SELECT v.dimension
FROM {{vectors}} AS v JOIN {{items}} AS i ON i.name = v.name AND i.revision = v.revision
WHERE {scope} AND {live} AND NOT EXISTS (
  SELECT FROM {{vectors}} AS v WHERE {scope} AND v.dimension = {dimension})
LIMIT 1
"""
