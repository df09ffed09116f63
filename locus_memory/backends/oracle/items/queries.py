"""All statements of the store.

Variable parts are put together from the constants here, and all values of a caller are bound. The
names of the tables are in braces; see `locus_memory.backends.oracle.schema.Names`.

Large values come last in a statement: Oracle takes no long bind before a short one (ORA-24816),
and none in MERGE's USING clause or in INSERT ... SELECT (ORA-01461).
"""

# ruff: noqa: S608 - no text of a caller ever gets into a statement

from __future__ import annotations

from typing import Any, Final

__all__ = [
    "ADD_WORDS",
    "CLEAR",
    "CLEAR_EXPIRED",
    "COLUMNS",
    "DELETE",
    "DELETE_EXPIRED",
    "DROP_VECTOR",
    "DROP_WORDS",
    "EXPIRED",
    "GET",
    "GET_VECTOR",
    "INSERT",
    "INSERT_VECTOR",
    "LOST_VECTORS",
    "NAMESPACES",
    "SET_STEMS",
    "UPDATE",
    "WHOLE_NAME",
    "Arguments",
    "all_names",
    "get_many",
    "lock_many",
    "names_in",
    "nearest",
    "newest",
    "other_dimension",
    "ranked",
    "ranked_by_oracle_text",
    "scan",
]

COLUMNS: Final = (
    'i."NAME", i."LONG_NAME", i."VERSION", i."CREATED_AT", i."UPDATED_AT", i."EXPIRES_AT", '
    'i."CHECKSUM", i."DOCUMENT"'
)

_LIVE: Final = 'i."EXPIRES_AT" > :now'

GET: Final = f'SELECT {COLUMNS} FROM {{items}} i WHERE i."NAME" = :name AND {_LIVE}'

GET_VECTOR: Final = f"""
SELECT i."NAME", i."LONG_NAME", v."CHECKSUM", i."CHECKSUM", v."EMBEDDING"
FROM {{items}} i JOIN {{vectors}} v ON v."NAME" = i."NAME" WHERE i."NAME" = :name AND {_LIVE}
"""

INSERT: Final = """
INSERT INTO {items} ("NAME", "SCOPE", "VERSION", "REVISION", "CREATED_AT", "UPDATED_AT",
  "EXPIRES_AT", "WORDS", "CHECKSUM", "LONG_NAME", "FIELDS", "DOCUMENT")
VALUES (:name, :scope, :version, {revisions}.NEXTVAL, :created_at, :updated_at,
  :expires_at, :words, :checksum, :long_name, :fields, :document)
"""

UPDATE: Final = """
UPDATE {items} SET "VERSION" = :version, "REVISION" = {revisions}.NEXTVAL,
  "CREATED_AT" = :created_at, "UPDATED_AT" = :updated_at, "EXPIRES_AT" = :expires_at,
  "WORDS" = :words, "CHECKSUM" = :checksum, "FIELDS" = :fields, "DOCUMENT" = :document
WHERE "NAME" = :name
"""

SET_STEMS: Final = 'UPDATE {items} SET "STEMS" = :stems WHERE "NAME" = :name'

DELETE: Final = 'DELETE FROM {items} WHERE "NAME" = :name'

DROP_WORDS: Final = 'DELETE FROM {words} WHERE "NAME" = :name'

ADD_WORDS: Final = """
INSERT INTO {words} ("WORD", "NAME", "TIMES") VALUES (:word, :name, :times)
"""

DROP_VECTOR: Final = 'DELETE FROM {vectors} WHERE "NAME" = :name'

INSERT_VECTOR: Final = """
INSERT INTO {vectors} ("NAME", "DIMENSION", "CHECKSUM", "EMBEDDING")
VALUES (:name, :dimension, :checksum, :embedding)
"""

EXPIRED: Final = """
SELECT i."NAME" FROM {items} i WHERE i."EXPIRES_AT" <= :now
ORDER BY i."EXPIRES_AT" FETCH FIRST :most ROWS ONLY
"""

MOMENT: Final = "SELECT TO_CHAR(SYSTIMESTAMP AT TIME ZONE 'UTC', 'J SSSSS.FF6') FROM DUAL"
"""The day and the second of the server, which read the same whatever the session's zone is."""

DELETE_EXPIRED: Final = 'DELETE FROM {items} WHERE "NAME" = :name AND "EXPIRES_AT" <= :now'

CLEAR_EXPIRED: Final = """
DELETE FROM {items} WHERE "SCOPE" >= :low AND "SCOPE" < :high AND "EXPIRES_AT" <= :now
"""

CLEAR: Final = 'DELETE FROM {items} WHERE "SCOPE" >= :low AND "SCOPE" < :high'

NAMESPACES: Final = f"""
SELECT DISTINCT i."SCOPE" FROM {{items}} i
WHERE i."SCOPE" >= :low AND i."SCOPE" < :high AND {_LIVE}
ORDER BY i."SCOPE" FETCH FIRST :most ROWS ONLY
"""

WHOLE_NAME: Final = """
SELECT i."LONG_NAME" FROM {items} i WHERE i."SCOPE" = :scope FETCH FIRST 1 ROWS ONLY
"""

LOST_VECTORS: Final = """
SELECT COUNT(*) FROM {items} i WHERE MOD(i."CHECKSUM", 2) <> 0 AND NOT EXISTS (
  SELECT 1 FROM {vectors} v WHERE v."NAME" = i."NAME")
"""


class Arguments:
    """The binds of a statement; the same value is bound once."""

    def __init__(self) -> None:
        self.binds: dict[str, Any] = {}
        self._names: dict[tuple[type, Any], str] = {}

    def bind(self, value: str | bytes | float) -> str:
        """Return the placeholder of a value."""
        key = type(value), value
        if key not in self._names:
            name = f"b{len(self.binds)}"
            self.binds[name] = value
            self._names[key] = f":{name}"
        return self._names[key]

    def bind_new(self, value: Any) -> str:
        """Return the placeholder of a value that cannot be compared."""
        name = f"b{len(self.binds)}"
        self.binds[name] = value
        return f":{name}"


def names_in(count: int) -> str:
    """Return the placeholders `:n0, :n1, ...` of a list of names."""
    return ", ".join(f":n{number}" for number in range(count))


def get_many(count: int) -> str:
    """Return the query for the items of `count` names."""
    return f'SELECT {COLUMNS} FROM {{items}} i WHERE i."NAME" IN ({names_in(count)}) AND {_LIVE}'


def lock_many(count: int) -> str:
    """Return the query that locks the items of `count` names."""
    return f"""
SELECT i."NAME", i."VERSION", i."CREATED_AT", i."UPDATED_AT", i."EXPIRES_AT" FROM {{items}} i
WHERE i."NAME" IN ({names_in(count)}) ORDER BY i."NAME" FOR UPDATE
"""


def scan(conditions: str, most: str, *, columns: str, descending: bool) -> str:
    """Return the query for a page of items in the order of their names."""
    way = "DESC" if descending else "ASC"
    return f"""
SELECT {columns} FROM {{items}} i WHERE {conditions}
ORDER BY i."NAME" {way} FETCH FIRST {most} ROWS ONLY
"""


def all_names(conditions: str) -> str:
    """Return the query for the names of all items that meet the conditions."""
    return f'SELECT i."NAME", i."LONG_NAME" FROM {{items}} i WHERE {conditions}'


def newest(conditions: str, *, offset: str, most: str) -> str:
    """Return the query for a page of items, the newest write first, with their revisions."""
    # Names first: sorting must not carry the values.
    return f"""
SELECT {COLUMNS}, i."REVISION" FROM (
  SELECT i."NAME" AS name, i."REVISION" AS revision FROM {{items}} i WHERE {conditions}
  ORDER BY i."REVISION" DESC OFFSET {offset} ROWS FETCH NEXT {most} ROWS ONLY) hit
JOIN {{items}} i ON i."NAME" = hit.name ORDER BY hit.revision DESC
"""


def ranked(scope: str, live: str, *, fits: str, words: str, offset: str, most: str) -> str:
    """Return the query for items with any of the words, the best first, with their scores.

    It computes Okapi BM25 with the usual k1 and b.

    Args:
        scope: The condition that the item `i` is in the scope.
        live: The condition that it has not expired.
        fits: The condition of the filter.
        words: The placeholders of the words.
        offset: The placeholder of the number of hits to skip.
        most: The placeholder of the size of the page.
    """
    return f"""
WITH matched AS (
  SELECT w."NAME" AS name, w."TIMES" AS times, i."WORDS" AS length,
    COUNT(*) OVER (PARTITION BY w."WORD") AS frequency
  FROM {{words}} w JOIN {{items}} i ON i."NAME" = w."NAME"
  WHERE w."WORD" IN ({words}) AND {scope} AND {live}),
totals AS (
  SELECT COUNT(*) AS items, AVG(i."WORDS") AS average FROM {{items}} i
  WHERE {scope} AND {live} AND i."WORDS" > 0),
scored AS (
  SELECT m.name AS name, SUM(
    LN(1 + (t.items - m.frequency + 0.5) / (m.frequency + 0.5)) * m.times * 2.2
      / (m.times + 1.2 * (0.25 + 0.75 * m.length / t.average))) AS score
  FROM matched m CROSS JOIN totals t GROUP BY m.name),
hit AS (
  SELECT s.name AS name, s.score AS score, i."REVISION" AS revision
  FROM scored s JOIN {{items}} i ON i."NAME" = s.name WHERE {fits}
  ORDER BY s.score DESC, i."REVISION" DESC OFFSET {offset} ROWS FETCH NEXT {most} ROWS ONLY)
SELECT {COLUMNS}, hit.score FROM hit JOIN {{items}} i ON i."NAME" = hit.name
ORDER BY hit.score DESC, hit.revision DESC
"""


def ranked_by_oracle_text(conditions: str, *, query: str, offset: str, most: str) -> str:
    """Return the query for items that Oracle Text finds, the best first, with their scores.

    Args:
        conditions: The conditions on the item `i`.
        query: The placeholder of a text of CONTAINS.
        offset: The placeholder of the number of hits to skip.
        most: The placeholder of the size of the page.
    """
    return f"""
SELECT {COLUMNS}, hit.score FROM (
  SELECT i."NAME" AS name, i."REVISION" AS revision, SCORE(1) AS score FROM {{items}} i
  WHERE CONTAINS(i."STEMS", {query}, 1) > 0 AND {conditions}
  ORDER BY SCORE(1) DESC, i."REVISION" DESC OFFSET {offset} ROWS FETCH NEXT {most} ROWS ONLY) hit
JOIN {{items}} i ON i."NAME" = hit.name ORDER BY hit.score DESC, hit.revision DESC
"""


def nearest(
    conditions: str, *, dimension: str, query: str, offset: str, most: str, approximate: bool
) -> str:
    """Return the query for the items with the nearest vectors, with their distances.

    Args:
        conditions: The conditions on the item `i`.
        dimension: The placeholder of the length of the vectors.
        query: The placeholder of the vector to compare with.
        offset: The placeholder of the number of hits to skip.
        most: The placeholder of the size of the page; for the index, a number.
        approximate: Whether the index of all vectors may answer.
    """
    page = (
        f"FETCH APPROX FIRST {most} ROWS ONLY"
        if approximate
        else f"OFFSET {offset} ROWS FETCH NEXT {most} ROWS ONLY"
    )
    # The index answers only a query that is in the order of the distance alone.
    order = "distance" if approximate else 'distance, i."REVISION" DESC'
    return f"""
SELECT {COLUMNS}, hit.distance FROM (
  SELECT i."NAME" AS name, i."REVISION" AS revision,
    VECTOR_DISTANCE(v."EMBEDDING", {query}, COSINE) AS distance
  FROM {{vectors}} v JOIN {{items}} i ON i."NAME" = v."NAME"
  WHERE v."DIMENSION" = {dimension} AND {conditions} ORDER BY {order} {page}) hit
JOIN {{items}} i ON i."NAME" = hit.name ORDER BY hit.distance, hit.revision DESC
"""


def other_dimension(conditions: str, dimension: str) -> str:
    """Return the query for the dimension of the scope's vectors, if none has this one."""
    return f"""
SELECT MIN(v."DIMENSION") FROM {{vectors}} v JOIN {{items}} i ON i."NAME" = v."NAME"
WHERE {conditions} HAVING COUNT(CASE WHEN v."DIMENSION" = {dimension} THEN 1 END) = 0
"""
