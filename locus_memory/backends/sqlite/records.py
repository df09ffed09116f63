"""A checkpoint's record as a row of SQLite, and the errors of a damaged row."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from typing import Any, Final

import orjson

from locus_memory.backends.record_rows import head_fields, optional_text, thread_name
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.errors import BackendCorruptError, CheckpointCorruptError
from locus_memory.store.encoding import decode_text, encode_text

__all__ = [
    "APPEND",
    "APPEND_LOCKED",
    "CHAIN_OF_NAMED",
    "CHAIN_OF_NEWEST",
    "CLAIM",
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
    "REMOVE_EMPTY_THREAD",
    "REMOVE_NAMED",
    "SEQUENCES",
    "THREADS",
    "blaming",
    "name_of",
    "read_head",
    "read_record",
    "read_thread",
    "thread_of",
    "to_rewrite",
    "to_row",
]

# Text as bytes: the driver does not report in which row it cannot decode a text.
HEAD: Final = """
  CAST(checkpoint_id AS BLOB), revision, base, level, sequence, created_at,
  CAST(metadata AS BLOB), size, length(payload), seal, CAST(forked_from AS BLOB)
"""
"""The first columns of rows for `read_head` and `read_record`; a payload comes last."""

_THREAD: Final = "SELECT id FROM threads WHERE thread_id = :thread"

CLAIM: Final = "INSERT INTO threads (thread_id) VALUES (:thread) ON CONFLICT DO NOTHING"

LOCK: Final = "SELECT thread_id FROM threads WHERE thread_id = :thread"

APPEND: Final = """
INSERT INTO checkpoints
  (thread, checkpoint_id, revision, base, level, created_at, metadata, size, seal, forked_from,
   payload)
SELECT id, :name, :revision, :base, :level, :created_at, :metadata, :size, :seal, :forked_from,
  :payload
FROM threads
WHERE thread_id = :thread
  AND (:base IS NULL OR EXISTS (
    SELECT 1 FROM checkpoints WHERE thread = threads.id AND revision = :base))
  AND (:unchecked OR :parent IS (
    SELECT checkpoint_id FROM checkpoints WHERE thread = threads.id
    ORDER BY sequence DESC LIMIT 1))
"""

APPEND_LOCKED: Final = APPEND

OVERWRITE: Final = """
UPDATE checkpoints
SET base = :base, level = :level, size = :size, seal = :seal, forked_from = :forked_from,
  payload = :payload
WHERE thread = (SELECT id FROM threads WHERE thread_id = :thread) AND revision = :revision
"""

REMOVE_ALL: Final = f"DELETE FROM checkpoints WHERE thread = ({_THREAD})"  # noqa: S608 - constants only

REMOVE: Final = f"{REMOVE_ALL} AND revision = :revision"

REMOVE_NAMED: Final = f"{REMOVE_ALL} AND checkpoint_id = :name"

REMOVE_EMPTY_THREAD: Final = """
DELETE FROM threads WHERE thread_id = :thread
  AND NOT EXISTS (SELECT 1 FROM checkpoints WHERE thread = threads.id)
"""

_NEWEST: Final = f"thread = ({_THREAD}) ORDER BY sequence DESC LIMIT 1"
_NAMED: Final = f"thread = ({_THREAD}) AND checkpoint_id = :name"

_FIND: Final = f"SELECT {HEAD} FROM checkpoints WHERE "  # noqa: S608
FIND_NEWEST: Final = _FIND + _NEWEST
FIND_NAMED: Final = _FIND + _NAMED

LIST: Final = f"""
SELECT {HEAD} FROM checkpoints WHERE thread = ({_THREAD}) AND sequence < :before
ORDER BY sequence DESC LIMIT :most
"""  # noqa: S608

SEQUENCES: Final = f"""
SELECT sequence FROM checkpoints WHERE thread = ({_THREAD}) ORDER BY sequence DESC
"""  # noqa: S608

_CHAIN: Final = f"""
WITH RECURSIVE chain (thread, sequence, base) AS (
  SELECT * FROM (SELECT thread, sequence, base FROM checkpoints WHERE %s)
  UNION
  SELECT c.thread, c.sequence, c.base
  FROM chain JOIN checkpoints AS c ON c.thread = chain.thread AND c.revision = chain.base)
SELECT {HEAD}, payload FROM checkpoints WHERE sequence IN (SELECT sequence FROM chain)
ORDER BY sequence DESC
"""  # noqa: S608

CHAIN_OF_NEWEST: Final = _CHAIN % _NEWEST
CHAIN_OF_NAMED: Final = _CHAIN % _NAMED

MATCHING: Final = f"""
SELECT {HEAD}, CAST(thread_id AS BLOB)
FROM checkpoints JOIN threads ON threads.id = checkpoints.thread
WHERE %s ORDER BY sequence DESC LIMIT :most
"""  # noqa: S608

THREADS: Final = """
SELECT CAST(thread_id AS BLOB) FROM threads
WHERE thread_id > :after AND thread_id >= :start AND (:bound IS NULL OR thread_id < :bound)
ORDER BY thread_id LIMIT :most
"""

# A XOR transfers a seal with its record to another thread; see `record.moved`. The first byte of a
# payload tells whether its seal is of an earlier version, which does not cover the thread.
COPY: Final = """
INSERT INTO checkpoints
  (thread, checkpoint_id, revision, base, level, created_at, metadata, size, seal, forked_from,
   payload)
SELECT
  (SELECT id FROM threads WHERE thread_id = :target),
  checkpoint_id, revision, base, level, created_at, metadata, size,
  CASE substr(payload, 1, 1) WHEN x'01' THEN seal ELSE (seal | mask) - (seal & mask) END,
  CASE sequence WHEN :fork THEN :forked_from ELSE forked_from END,
  payload
FROM (
  SELECT *, CASE sequence WHEN :fork THEN :fork_mask ELSE :mask END AS mask
  FROM checkpoints WHERE thread = (SELECT id FROM threads WHERE thread_id = :source)
    AND sequence <= :through)
ORDER BY sequence
"""


def to_row(record: Record) -> dict[str, Any]:
    """Return the binds of a record that is appended, whatever the newest one is."""
    return {
        "unchecked": True,
        "parent": None,
        "name": encode_text(record.checkpoint_id),
        "revision": record.revision,
        "base": record.base,
        "level": record.level,
        "created_at": record.created_at,
        "metadata": orjson.dumps(record.metadata).decode(),
        "size": record.size,
        "seal": record.seal(),
        "forked_from": optional_text(record),
        "payload": record.payload,
    }


to_rewrite = to_row
thread_of = name_of = encode_text


def read_head(thread_id: str, row: Sequence[Any]) -> RecordHead:
    """Return the head of a row.

    Raises:
        CheckpointCorruptError: The row is damaged.
    """
    return RecordHead(**_fields(thread_id, row)).verified(row[9])


def read_record(thread_id: str, row: Sequence[Any]) -> Record:
    """Return the record of a row.

    Raises:
        CheckpointCorruptError: The head is damaged.
    """
    record = Record(**_fields(thread_id, row), payload=row[-1]).verified(row[9])
    if type(row[-1]) is not bytes:
        raise record.corrupt("its payload is damaged")
    return record


def _fields(thread_id: str, row: Sequence[Any]) -> dict[str, Any]:
    return head_fields(thread_id, row, read_text=bytes.decode, read_metadata=orjson.loads)


def read_thread(encoded: bytes) -> str:
    """Return the name of a thread.

    Raises:
        CheckpointCorruptError: It is not a name.
    """
    return thread_name(encoded, lambda stored: decode_text(stored.decode()))


@contextlib.contextmanager
def blaming(thread_id: str | None = None, checkpoint_id: str | None = None) -> Generator[None]:
    """Name the requested checkpoint if its pages or texts are damaged.

    Raises:
        CheckpointCorruptError: The rows are damaged.
        BackendCorruptError: The file as a whole is damaged.
    """
    try:
        yield
    except BackendCorruptError as error:
        reason = str(error)
        in_rows = "SQLITE_CORRUPT" in reason or "not UTF-8" in reason
        if thread_id is None or not in_rows or "database schema" in reason:
            raise
        raise CheckpointCorruptError(thread_id, checkpoint_id, reason) from error
