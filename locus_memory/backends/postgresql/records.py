"""A checkpoint's record as a row of PostgreSQL, and the statements for records."""

from __future__ import annotations

from typing import Any, Final

from locus_memory.backends.postgresql.connection.driver import Record as Row
from locus_memory.backends.postgresql.items.documents import decode_document, encode_document
from locus_memory.backends.record_rows import (
    digest_of,
    head_fields,
    optional_text,
    thread_name,
    uuid_bytes,
)
from locus_memory.backends.sql.storage import Binds
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.store.encoding import decode_text, encode_text

__all__ = [
    "APPEND",
    "APPEND_LOCKED",
    "BEGIN",
    "CHAIN_OF_NAMED",
    "CHAIN_OF_NEWEST",
    "CLAIM",
    "COLUMNS",
    "COPY",
    "FIND_NAMED",
    "FIND_NEWEST",
    "HEAD",
    "LIST",
    "LOCK",
    "MATCHING",
    "OVERWRITE",
    "REMOVE",
    "REMOVE_ALL",
    "REMOVE_NAMED",
    "REMOVE_THREAD",
    "RENEW",
    "SEQUENCES",
    "THREADS",
    "VACUUM",
    "name_of",
    "read_head",
    "read_record",
    "read_thread",
    "thread_of",
    "to_mask",
    "to_rewrite",
    "to_row",
]

thread_of = digest_of

HEAD: Final = """
  CASE checkpoint_id WHEN '' THEN encode(substr(digest, 2), 'hex')::uuid::text
    ELSE checkpoint_id END AS checkpoint_id,
  revision, base, level, sequence, created_at, metadata::text, size, octet_length(payload), seal,
  forked_from
"""
"""The first columns of rows for `read_head` and `read_record`; a payload comes last."""

COLUMNS: Final = """
  digest, checkpoint_id, revision, base, level, created_at, metadata, size, seal, payload,
  forked_from
"""
"""The columns of the values of `to_row`, in this order; the thread comes before them."""

_DIGEST: Final = 16
"""Bytes of a digest; those of a UUID are one more."""

_HALF: Final = 2**31
"""Subtracted from a seal, an unsigned number, since PostgreSQL has only signed ones."""


def name_of(checkpoint_id: str) -> bytes:
    """Return the bytes for a checkpoint in the indexes.

    A UUID is completely in the bytes, which keep the order of time-ordered UUIDs. For any
    other name they are a digest, of another length.
    """
    return uuid_bytes(checkpoint_id) or digest_of(checkpoint_id)


def to_row(record: Record) -> Binds:
    """Return the values of `COLUMNS`, in this order."""
    name = name_of(record.checkpoint_id)
    return {
        "name": name,
        # That of a UUID is completely in the bytes.
        "text": encode_text(record.checkpoint_id) if len(name) == _DIGEST else "",
        "revision": record.revision,
        "base": record.base,
        "level": record.level,
        "created_at": record.created_at,
        "metadata": encode_document(record.metadata),
        "size": record.size,
        "seal": record.seal() - _HALF,
        "payload": record.payload,
        "forked_from": optional_text(record),
    }


def to_rewrite(record: Record) -> Binds:
    """Return what a rewrite changes of the record with a revision, behind the revision."""
    kept = ("revision", "base", "level", "size", "seal", "payload", "forked_from")
    row = to_row(record)
    return {name: row[name] for name in kept}


def to_mask(change: int) -> int:
    """Return the change of a seal as an operand of PostgreSQL's `#` for the signed column."""
    return change - 2 * _HALF if change >= _HALF else change


def read_head(thread_id: str, row: Row) -> RecordHead:
    """Return the head of a row.

    Raises:
        CheckpointCorruptError: The row is damaged.
    """
    return RecordHead(**_fields(thread_id, row)).verified(row[9] + _HALF)


def read_record(thread_id: str, row: Row) -> Record:
    """Return the record of a row.

    Raises:
        CheckpointCorruptError: The head is damaged.
    """
    return Record(**_fields(thread_id, row), payload=row[11]).verified(row[9] + _HALF)


def _fields(thread_id: str, row: Row) -> dict[str, Any]:
    return head_fields(thread_id, row, read_text=str, read_metadata=decode_document)


def read_thread(encoded: str) -> str:
    """Return the name of a thread.

    Raises:
        CheckpointCorruptError: It is not a name.
    """
    return thread_name(encoded, decode_text)


_THREAD: Final = "SELECT id FROM {threads} WHERE digest = $1"

# The base of a record is nearly always the newest record of its thread, which two indexes find;
# else it is searched among all. There is no index by revision: links use sequences.
_BASED: Final = """
newest AS (
  SELECT sequence, revision FROM {checkpoints} WHERE thread = %(id)s AND digest = %(name)s),
based AS (
  SELECT sequence FROM newest WHERE revision = $5
  UNION ALL (
    SELECT sequence FROM {checkpoints}
    WHERE $5::bigint IS NOT NULL AND thread = %(id)s AND revision = $5
    ORDER BY sequence DESC LIMIT 1)
  LIMIT 1)"""

_BASED_ON_KNOWN: Final = _BASED % {
    "id": "(SELECT id FROM known)",
    "name": "(SELECT newest FROM known)",
}

_INSERT: Final = f"""
INSERT INTO {{checkpoints}} (thread, base_sequence, {COLUMNS})
SELECT id, %s, $2, $3::text, $4::bigint, $5::bigint, $6::smallint, $7::float8, $8::text::json,
  $9::bigint, $10::integer, $11::bytea, $12::text
FROM thread RETURNING sequence
"""  # noqa: S608 - constants only, here and below

_INSERT_DELTA: Final = _INSERT % "(SELECT sequence FROM based)"

# The part `thread` locks the thread's row, and checks what other sessions may have changed while
# it waited for the lock: the newest checkpoint, and whether records were deleted since the
# statement began, so that the base it sees may be gone. The thread's number is looked up first, so
# that the planner can only use the indexes, even if it has no statistics of new tables.
APPEND: Final = f"""
WITH known AS (SELECT id, removals, newest FROM {{threads}} WHERE digest = $1),
{_BASED_ON_KNOWN},
thread AS (
  UPDATE {{threads}} SET newest = $2
  WHERE digest = $1 AND ($13::boolean OR newest = $14::bytea)
    AND removals = (SELECT removals FROM known)
    AND ($5::bigint IS NULL OR EXISTS (SELECT FROM based))
    AND NOT EXISTS (
      SELECT 1 FROM {{checkpoints}} WHERE thread = (SELECT id FROM known) AND digest = $2)
  RETURNING id)
{_INSERT_DELTA}
"""  # noqa: S608

# A record that is not a delta may be the first of its thread.
BEGIN: Final = f"""
WITH known AS (SELECT id, removals FROM {{threads}} WHERE digest = $1),
thread AS (
  INSERT INTO {{threads}} AS t (digest, thread_id, newest) SELECT $1, $14, $2
  ON CONFLICT (digest) DO UPDATE SET newest = EXCLUDED.newest
  WHERE $13::boolean AND t.removals = (SELECT removals FROM known)
    AND NOT EXISTS (
      SELECT 1 FROM {{checkpoints}} WHERE thread = (SELECT id FROM known) AND digest = $2)
  RETURNING id)
{_INSERT % "NULL::bigint"}
"""  # noqa: S608

APPEND_LOCKED: Final = f"""
WITH thread AS (SELECT id FROM {{threads}} WHERE id = $1),
based AS (SELECT sequence FROM {{checkpoints}} WHERE thread = $1 AND revision = $5)
{_INSERT_DELTA}
"""  # noqa: S608

CLAIM: Final = """
INSERT INTO {threads} AS t (digest, thread_id) VALUES ($1, $2)
ON CONFLICT (digest) DO UPDATE SET removals = t.removals + 1
RETURNING id
"""

LOCK: Final = "UPDATE {threads} SET removals = removals + 1 WHERE digest = $1 RETURNING id"

OVERWRITE: Final = """
UPDATE {checkpoints} AS c
SET base = n.base, base_sequence = b.sequence, level = n.level, size = n.size,
  seal = n.seal, payload = n.payload, forked_from = n.forked_from
FROM unnest(
  $2::bigint[], $3::bigint[], $4::smallint[], $5::bigint[], $6::integer[], $7::bytea[], $8::text[])
  AS n (revision, base, level, size, seal, payload, forked_from)
LEFT JOIN {checkpoints} AS b ON b.thread = ($1::bigint[])[1] AND b.revision = n.base
WHERE c.thread = ($1::bigint[])[1] AND c.revision = n.revision
"""

REMOVE_NAMED: Final = "DELETE FROM {checkpoints} WHERE thread = $1 AND digest = $2"

REMOVE: Final = """
DELETE FROM {checkpoints} WHERE thread = ($1::bigint[])[1] AND revision = ANY ($2::bigint[])
"""

REMOVE_ALL: Final = """
WITH gone AS (DELETE FROM {checkpoints} WHERE thread = $1 RETURNING 1)
SELECT count(*) FROM gone
"""

RENEW: Final = """
UPDATE {threads} SET newest = (
  SELECT digest FROM {checkpoints} WHERE thread = $1 ORDER BY sequence DESC LIMIT 1)
WHERE id = $1 RETURNING newest
"""

REMOVE_THREAD: Final = "DELETE FROM {threads} WHERE id = $1"

FIND_NEWEST: Final = f"""
SELECT {HEAD} FROM {{checkpoints}} WHERE thread = ({_THREAD}) ORDER BY sequence DESC LIMIT 1
"""  # noqa: S608

FIND_NAMED: Final = f"""
SELECT {HEAD} FROM {{checkpoints}} WHERE thread = ({_THREAD}) AND digest = $2
"""  # noqa: S608

LIST: Final = f"""
SELECT {HEAD} FROM {{checkpoints}} WHERE thread = ({_THREAD}) AND sequence < $2
ORDER BY sequence DESC LIMIT $3
"""  # noqa: S608

SEQUENCES: Final = f"""
SELECT sequence FROM {{checkpoints}} WHERE thread = ({_THREAD}) ORDER BY sequence DESC
"""  # noqa: S608

# A base is older than its delta, so the search ends even if links form a circle.
# `LATERAL` and `LIMIT` make it look each base up by its index, whatever the planner estimates.
_CHAIN: Final = f"""
WITH RECURSIVE chain AS (
  (SELECT * FROM {{checkpoints}} WHERE thread = ({_THREAD}) %s)
  UNION ALL
  SELECT found.* FROM chain CROSS JOIN LATERAL (
    SELECT * FROM {{checkpoints}} AS c
    WHERE c.thread = chain.thread AND c.sequence = chain.base_sequence
      AND c.revision = chain.base LIMIT 1) AS found
  WHERE found.sequence < chain.sequence)
SELECT {HEAD}, payload FROM chain ORDER BY sequence DESC
"""  # noqa: S608

CHAIN_OF_NEWEST: Final = _CHAIN % "ORDER BY sequence DESC LIMIT 1"

CHAIN_OF_NAMED: Final = _CHAIN % "AND digest = $2"

# Each row's metadata is parsed once, however many conditions a filter has.
MATCHING: Final = f"""
SELECT {HEAD}, thread_id
FROM {{checkpoints}} AS c JOIN (SELECT id, thread_id FROM {{threads}}) AS t ON t.id = c.thread
CROSS JOIN LATERAL (SELECT c.metadata::jsonb AS document OFFSET 0) AS parsed
WHERE %s ORDER BY sequence DESC LIMIT $1
"""  # noqa: S608

THREADS: Final = """
SELECT thread_id FROM {threads}
WHERE left(thread_id, 500) >= left($1, 500) AND thread_id > $1
  AND left(thread_id, 500) >= left($2, 500) AND thread_id >= $2
  AND ($3::text IS NULL OR (left(thread_id, 500) <= left($3, 500) AND thread_id < $3))
ORDER BY left(thread_id, 500), thread_id LIMIT $4
"""

# A thread that does not exist, or has no such record, has no newest one to begin a copy with.
# A XOR transfers a seal to another thread; see `record.moved`. The first byte of a payload tells
# whether its seal is of an earlier version, which does not cover the thread.
_COPIED: Final = {
    "seal": """CASE substr(source.payload, 1, 1) WHEN '\\x01'::bytea THEN source.seal
    ELSE source.seal # CASE source.sequence WHEN $6 THEN $7::integer ELSE $5::integer END END""",
    "forked_from": "CASE source.sequence WHEN $6 THEN $8::text ELSE source.forked_from END",
}

_OF_SOURCE: Final = ", ".join(
    _COPIED.get(name.strip(), f"source.{name.strip()}") for name in COLUMNS.split(",")
)

# A copy is numbered before it is written, so that each record can name its base. The record with
# the sequence $6 is where a fork begins.
COPY: Final = f"""
WITH source AS MATERIALIZED (
  SELECT nextval(pg_get_serial_sequence('{{checkpoints}}', 'sequence')) AS number, found.*
  FROM (
    SELECT * FROM {{checkpoints}} WHERE thread = ({_THREAD}) AND sequence <= $4
    ORDER BY sequence) AS found),
target AS (
  INSERT INTO {{threads}} (digest, thread_id, newest)
  SELECT $2, $3, digest FROM source ORDER BY sequence DESC LIMIT 1
  ON CONFLICT DO NOTHING RETURNING id),
copied AS (
  INSERT INTO {{checkpoints}} (sequence, thread, base_sequence, {COLUMNS})
  OVERRIDING SYSTEM VALUE
  SELECT source.number, target.id, base.number, {_OF_SOURCE}
  FROM target CROSS JOIN source
  LEFT JOIN (SELECT number, revision FROM source) AS base ON base.revision = source.base
  ORDER BY source.number RETURNING 1)
SELECT count(*) FROM copied
"""  # noqa: S608

VACUUM: Final = "VACUUM {threads}, {checkpoints}"
