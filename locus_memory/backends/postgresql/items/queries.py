"""The statements of the store, without those of `search/`.

Variable parts are put together from the constants here, and all values of a caller are bound. Only
text, numbers, moments and `text[]` are bound: for an array of another type, asyncpg would first
query the server for the type, once per connection. The columns of a batch are one text each.
"""

# ruff: noqa: S608 - no text of a caller ever gets into a statement

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from locus_memory.backends.postgresql.items.naming import AFTER_DIGESTS, AFTER_KEYS, LONGEST

__all__ = [
    "CLEAR",
    "COLUMNS",
    "DELETE_MANY",
    "EXISTS",
    "GET",
    "GET_ITEMS",
    "GET_MANY",
    "GET_VALUE",
    "GET_VECTOR",
    "LOST_VECTORS",
    "NAMESPACES",
    "PURGE",
    "PUT_MANY",
    "PUT_MANY_OVER_VECTORS",
    "PUT_MANY_VECTORS",
    "SET_PAST",
    "VACUUM_ITEMS",
    "VACUUM_VECTORS",
    "WRITE",
    "WRITE_VECTORS",
    "count_items",
    "newest_items",
    "newest_of_each",
    "scan_items",
    "sort_items",
    "split_column",
    "split_names",
    "split_paths",
]


def split_column(number: int) -> str:
    """Return the `text[]` of a column parameter, in which empty texts are null.

    If all of them are empty, it may have fewer elements than there are rows; `unnest` adds the
    missing nulls.
    """
    return f"string_to_array(${number}::text, chr(1), '')"


def split_paths(number: int) -> str:
    """Return the `text[]` of a parameter with paths, each without the mark at its end."""
    return f"string_to_array(${number}::text, chr(1) || chr(1))"


def split_names(number: int) -> str:
    """Return the `text[]` of a parameter with names."""
    return f"string_to_array(${number}::text, chr(1) || chr(1) || chr(1))"


COLUMNS: Final = (
    "i.path, i.key, i.value, i.metadata, i.created_at, i.updated_at, i.version, i.expires_at, "
    "i.checksum"
)

# A moment is a text: `now`, which is the server's, or that of the caller's clock. A statement reads
# it once.
_LIVE_2: Final = "(i.expires_at IS NULL OR i.expires_at > (SELECT $2::text::timestamptz))"

GET: Final = f"SELECT {COLUMNS} FROM {{items}} AS i WHERE i.name = $1 AND {_LIVE_2}"
GET_VALUE: Final = f"SELECT i.value, i.checksum FROM {{items}} AS i WHERE i.name = $1 AND {_LIVE_2}"
EXISTS: Final = f"SELECT true FROM {{items}} AS i WHERE i.name = $1 AND {_LIVE_2}"
GET_MANY: Final = f"""
SELECT i.name, i.value, i.checksum FROM {{items}} AS i
WHERE i.name = ANY ({split_names(1)}) AND {_LIVE_2}
"""
GET_ITEMS: Final = f"""
SELECT i.name, {COLUMNS} FROM {{items}} AS i
WHERE i.name = ANY ({split_names(1)}) AND {_LIVE_2}
"""

_GIVEN_COLUMNS: Final = (
    "name, scope, path, key, expires_at, length, metadata, value, words, checksum"
)
_INTO: Final = (
    f"INSERT INTO {{items}} AS i ({_GIVEN_COLUMNS}, version, revision, created_at, updated_at)"
)

# An expired item counts as absent: its version and its creation time start over. A clock that was
# ahead for another write is no reason to go back.
_REPLACE: Final = """
ON CONFLICT (name) DO UPDATE SET
  version = CASE WHEN i.expires_at <= EXCLUDED.updated_at THEN 1 ELSE i.version + 1 END,
  created_at = CASE WHEN i.expires_at <= EXCLUDED.updated_at THEN EXCLUDED.created_at
    ELSE i.created_at END,
  revision = EXCLUDED.revision,
  updated_at = CASE WHEN i.expires_at <= EXCLUDED.updated_at THEN EXCLUDED.updated_at
    ELSE greatest(i.updated_at, EXCLUDED.updated_at) END,
  expires_at = EXCLUDED.expires_at, length = EXCLUDED.length, metadata = EXCLUDED.metadata,
  value = EXCLUDED.value, words = EXCLUDED.words, checksum = EXCLUDED.checksum
"""

# The columns of a batch: if all its items are in one namespace, there is one scope and path.
_NAMES_OF_COLUMNS: Final = (
    *("name", "scope", "path", "key", "expires_at", "length", "metadata", "value", "words"),
    *("checksum", "embedding", "vector_checksum"),
)
_SPLIT: Final = {"name": split_names, "path": split_paths}
_COLUMNS_OF_BATCH: Final = [
    f"unnest({_SPLIT.get(name, split_column)(n)}) AS {name}"
    for n, name in enumerate(_NAMES_OF_COLUMNS, 2)
]

# The revisions are taken in the given order, and the rows are locked in the order of their names,
# so no two batches wait for each other.
_GIVEN: Final = """(
  SELECT g.name, coalesce(g.scope::uuid, (SELECT left($3, 32)::uuid)) AS scope,
    coalesce(g.path, $4) || chr(1) AS path, g.key,
    (SELECT $1::text::timestamptz) + g.expires_at::interval AS expires_at, g.length::integer,
    coalesce(g.metadata::jsonb, '{}') AS metadata, g.value::jsonb,
    coalesce(g.words, '')::tsvector AS words, g.checksum::bigint,
    nextval('{revisions}') AS revision%s
  FROM (SELECT %s) AS g)"""
_WRITTEN: Final = f"""
written AS (
  {_INTO}
  SELECT {_GIVEN_COLUMNS}, 1, revision, $1::text::timestamptz, $1::text::timestamptz
  FROM %s AS given
  ORDER BY name COLLATE "C"
  {_REPLACE}
  RETURNING i.name, i.version, i.revision)
"""
_VERSIONS: Final = "SELECT string_agg(version::text, ' ' ORDER BY revision) FROM written"
_WRITTEN_ITEMS: Final = _WRITTEN % (_GIVEN % ("", ", ".join(_COLUMNS_OF_BATCH[:-2])))
PUT_MANY: Final = f"WITH {_WRITTEN_ITEMS} {_VERSIONS}"
# Every writer of a vector has locked its item first.
PUT_MANY_OVER_VECTORS: Final = f"""
WITH {_WRITTEN_ITEMS},
dropped AS (DELETE FROM {{vectors}} AS v USING written WHERE v.name = written.name)
{_VERSIONS}
"""
_GIVEN_VECTORS: Final = _GIVEN % (
    ", g.embedding::{vector}.vector, g.vector_checksum::bigint",
    ", ".join(_COLUMNS_OF_BATCH),
)
PUT_MANY_VECTORS: Final = f"""
WITH given AS MATERIALIZED {_GIVEN_VECTORS},
{_WRITTEN % "given"},
embedded AS (
  INSERT INTO {{vectors}} (name, scope, revision, dimension, path, embedding, checksum)
  SELECT given.name, given.scope, written.revision,
    {{vector}}.vector_dims(given.embedding), given.path, given.embedding, given.vector_checksum
  FROM written JOIN given ON given.name = written.name WHERE given.embedding IS NOT NULL
  ON CONFLICT (name) DO UPDATE SET revision = EXCLUDED.revision,
    dimension = EXCLUDED.dimension, embedding = EXCLUDED.embedding,
    checksum = EXCLUDED.checksum),
dropped AS (
  DELETE FROM {{vectors}} AS v USING written JOIN given ON given.name = written.name
  WHERE v.name = written.name AND given.embedding IS NULL)
{_VERSIONS}
"""

# The version and the moments of items that were put in the same transaction.
SET_PAST: Final = f"""
UPDATE {{items}} AS i SET
  version = g.version::bigint, created_at = g.created_at::timestamptz,
  updated_at = g.updated_at::timestamptz, expires_at = g.expires_at::timestamptz
FROM (
  SELECT unnest({split_names(1)}) AS name, unnest({split_column(2)}) AS version,
    unnest({split_column(3)}) AS created_at, unnest({split_column(4)}) AS updated_at,
    unnest({split_column(5)}) AS expires_at) AS g
WHERE i.name = g.name
"""

_PARAMETERS: Final = ", ".join(
    (
        *("$1::text::timestamptz", split_names(2), split_column(3), split_paths(4)),
        *map(split_column, (5, 6)),
        f"""ARRAY(SELECT ($1::text::timestamptz + e.ttl::interval)::text
          FROM unnest({split_column(7)}) WITH ORDINALITY AS e (ttl, n) ORDER BY e.n)""",
        *map(split_column, range(8, 13)),
    )
)
WRITE: Final = f"SELECT conflict, number, result FROM {{change_items}}({_PARAMETERS})"
_PARAMETERS_OF_VECTORS: Final = f"{_PARAMETERS}, {split_column(13)}, {split_column(14)}"
WRITE_VECTORS: Final = (
    f"SELECT conflict, number, result FROM {{change_vectors}}({_PARAMETERS_OF_VECTORS})"
)

_DELETED: Final = f"""
gone AS (
  DELETE FROM {{items}} AS i WHERE i.name = ANY (ARRAY(SELECT name FROM locked))
  RETURNING i.name, {_LIVE_2} AS live)
"""
DELETE_MANY: Final = f"""
WITH locked AS MATERIALIZED (
  SELECT i.name FROM {{items}} AS i WHERE i.name = ANY ({split_names(1)})
  ORDER BY i.name FOR UPDATE),
{_DELETED}
SELECT name FROM gone WHERE live
"""
CLEAR: Final = f"""
WITH locked AS MATERIALIZED (
  SELECT i.name FROM {{items}} AS i
  WHERE i.name >= $4 AND i.name < $5 AND i.path >= $1 AND i.path < $3
  ORDER BY i.name FOR UPDATE),
{_DELETED}
SELECT count(*) FILTER (WHERE live) FROM gone
"""

# Rows that another session is writing at the moment are skipped.
PURGE: Final = """
DELETE FROM {items} AS i WHERE i.name = ANY (ARRAY(
  SELECT e.name FROM {items} AS e WHERE e.expires_at <= (SELECT $1::text::timestamptz)
  ORDER BY e.expires_at LIMIT $2 FOR UPDATE SKIP LOCKED))
"""

VACUUM_ITEMS: Final = "VACUUM (INDEX_CLEANUP ON) {items}"
VACUUM_VECTORS: Final = "VACUUM (INDEX_CLEANUP ON) {vectors}"

# From one path to the next, whatever number of items is between them, up to the page's size. Names
# of different paths can have the same beginning only if a path has `LONGEST` characters or more.
_AFTER: Final = f"""
CASE WHEN length(%s.path) < {LONGEST} THEN %s.path || chr({ord(AFTER_KEYS)})
ELSE left(%s.path, {LONGEST}) || '{AFTER_DIGESTS}' END
"""
_AFTER_ITEM, _AFTER_FOUND = _AFTER.replace("%s", "i"), _AFTER.replace("%s", "found")
_FOLLOWING: Final = f"""
(SELECT CASE WHEN length(i.path) < {LONGEST} THEN i.path ELSE
   (SELECT min(j.path) FROM {{items}} AS j WHERE j.name >= left(i.path, {LONGEST})
      AND j.name < {_AFTER_ITEM} AND j.path >= $1::text) END
 FROM {{items}} AS i WHERE %s ORDER BY i.name LIMIT 1)
"""
_FIRST: Final = _FOLLOWING % f"i.name >= left($1, {LONGEST}) AND i.path >= $1"
_NEXT: Final = f"""
coalesce(
  CASE WHEN length(found.path) >= {LONGEST} THEN
    (SELECT min(i.path) FROM {{items}} AS i WHERE i.name >= left(found.path, {LONGEST})
       AND i.name < {_AFTER_FOUND} AND i.path > found.path) END,
  {_FOLLOWING % f"i.name >= {_AFTER_FOUND}"})
"""
_WITHIN: Final = "found.path IS NOT NULL AND ($3::text IS NULL OR found.path < $3)"
_PATHS: Final = f"""
RECURSIVE found (path) AS (
  SELECT {_FIRST}
  UNION ALL
  SELECT {_NEXT} FROM found WHERE {_WITHIN})
"""
# With a condition on the path, the planner expects one item of a namespace, and reads all of its
# items to find it. Only cut names need it.
_FROM_FOUND: Final = f"FROM {{items}} AS i WHERE i.name >= left(found.path, {LONGEST})"
_IS_CUT: Final = f"length(found.path) >= {LONGEST}"
_UNTIL_FOUND: Final = f"i.name < {_AFTER_FOUND}"
_LIVES: Final = f"""
CASE WHEN {_IS_CUT}
  THEN (SELECT true {_FROM_FOUND} AND {_UNTIL_FOUND} AND i.path = found.path AND {_LIVE_2} LIMIT 1)
  ELSE (SELECT true {_FROM_FOUND} AND {_UNTIL_FOUND} AND {_LIVE_2} LIMIT 1) END
"""
_SCOPE: Final = f"""
CASE WHEN {_IS_CUT}
  THEN (SELECT i.scope {_FROM_FOUND} AND {_UNTIL_FOUND} AND i.path = found.path LIMIT 1)
  ELSE (SELECT i.scope {_FROM_FOUND} ORDER BY i.name LIMIT 1) END
"""
NAMESPACES: Final = f"""
WITH {_PATHS}
SELECT found.path FROM found WHERE {_WITHIN} AND {_LIVES} LIMIT $4
"""


def scan_items(conditions: Iterable[str], limit: str, *, columns: str, descending: bool) -> str:
    """Return the query for a page of items in the order of their names."""
    way = "DESC" if descending else "ASC"
    return f"""
SELECT {columns} FROM {{items}} AS i WHERE {" AND ".join(conditions)}
ORDER BY i.name {way} LIMIT {limit}
"""


def sort_items(conditions: Iterable[str], limit: str, *, columns: str, descending: bool) -> str:
    """Return the query for a page of items in the order of their keys, also with cut names.

    It sorts the items of the page, and those whose names begin like the name of the last one.
    """
    where, start = " AND ".join(conditions), f"left(i.name, {LONGEST})"
    way, last = ("DESC", "min") if descending else ("ASC", "max")
    edge = f"""
(SELECT {last}(start) FROM (
  SELECT {start} AS start FROM {{items}} AS i WHERE {where}
  ORDER BY i.name {way} LIMIT {limit}) AS page)
"""
    within = f"i.name >= {edge}" if descending else f"i.name < {edge} || '{AFTER_DIGESTS}'"
    return f"""
SELECT {columns} FROM {{items}} AS i WHERE {where} AND {within}
ORDER BY i.key {way} LIMIT {limit}
"""


def newest_items(conditions: Iterable[str], limit: str, offset: str, *, recursive: bool) -> str:
    """Return the query for a page of items, the newest write first."""
    where = " AND ".join(conditions)
    page = f"LIMIT {limit} OFFSET {offset}"
    if not recursive:
        return f"""
SELECT {COLUMNS} FROM {{items}} AS i WHERE {where} ORDER BY i.revision DESC {page}
"""
    # Names first: sorting must not carry the values.
    return f"""
SELECT {COLUMNS} FROM (
  SELECT i.name, i.revision FROM {{items}} AS i WHERE {where}
  ORDER BY i.revision DESC {page}) AS hit
JOIN {{items}} AS i ON i.name = hit.name ORDER BY hit.revision DESC
"""


def newest_of_each(
    conditions: Iterable[str], limit: str, offset: str, *, first: str, most: str
) -> str:
    """Return the query for a page of a tree's items, from the newest ones of each namespace.

    It reads no more of a namespace than a page. `$1` is the first path, `$2` the moment, and `$3`
    the bound of all paths. `scopes` in each row, of which there is at least one, is the number of
    namespaces; if that is `most`, there may be more, and there is no item.

    Args:
        conditions: The conditions on an item `i`, without those of the tree.
        limit: The parameter of the page's size.
        offset: The parameter of the page's start.
        first: The parameter of the sum of both.
        most: The parameter of the largest number of namespaces, and one more.
    """
    return f"""
WITH {_PATHS},
scopes AS MATERIALIZED (
  SELECT {_SCOPE} AS scope FROM found WHERE {_WITHIN} LIMIT {most}),
hit AS MATERIALIZED (
  SELECT each.name, each.revision FROM scopes CROSS JOIN LATERAL (
    SELECT i.name, i.revision FROM {{items}} AS i
    WHERE i.scope = scopes.scope AND {" AND ".join(conditions)}
    ORDER BY i.revision DESC LIMIT {first}) AS each
  WHERE (SELECT count(*) FROM scopes) < {most}
  ORDER BY each.revision DESC LIMIT {limit} OFFSET {offset})
SELECT (SELECT count(*) FROM scopes) AS scopes, found.*
FROM (SELECT) AS one LEFT JOIN hit ON true
LEFT JOIN LATERAL (SELECT {COLUMNS} FROM {{items}} AS i WHERE i.name = hit.name LIMIT 1) AS found
  ON true
ORDER BY hit.revision DESC
"""


def count_items(scope: str, most: str) -> str:
    """Return the query for the number of items in a scope, counted up to `most`."""
    return f"""
SELECT count(*) FROM (SELECT FROM {{items}} AS i WHERE {scope} LIMIT {most}) AS counted
"""


GET_VECTOR: Final = f"""
SELECT i.checksum, {{vector}}.vector_send(v.embedding) AS sent, v.checksum AS own
FROM {{items}} AS i LEFT JOIN {{vectors}} AS v ON v.name = i.name AND v.revision = i.revision
WHERE i.name = $1 AND {_LIVE_2}
"""

# The lowest bit of a checksum tells whether the item has a vector.
LOST_VECTORS: Final = """
SELECT count(*) FROM {items} AS i WHERE i.checksum & 1 = 1 AND NOT EXISTS (
  SELECT FROM {vectors} AS v WHERE v.name = i.name AND v.revision = i.revision)
"""
