"""A checkpoint's record as a row of Oracle, and the statements for records.

The names of the tables are in braces; see `locus_memory.backends.oracle.schema.Names`.
"""

# ruff: noqa: S608 - constants only

from __future__ import annotations

from typing import Any, Final

import orjson

from locus_memory.backends.oracle.connection.driver import Binds, Row
from locus_memory.backends.oracle.items.naming import cut, is_cut
from locus_memory.backends.record_rows import (
    damage,
    digest_of,
    head_fields,
    optional_text,
    thread_name,
    uuid_bytes,
)
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.store.encoding import decode_text, encode_text

__all__ = [
    "ADVANCE",
    "APPEND",
    "APPEND_LOCKED",
    "CHAIN_OF_NAMED",
    "CHAIN_OF_NEWEST",
    "CLAIM",
    "FIND_NAMED",
    "FIND_NEWEST",
    "HEAD",
    "HEADS_OF_ALL",
    "LIST",
    "LOCK",
    "NEWEST",
    "OVERWRITE",
    "RECORDS",
    "REMOVE",
    "REMOVE_ALL",
    "REMOVE_NAMED",
    "REMOVE_THREAD",
    "RENEW",
    "SEQUENCE",
    "SEQUENCES",
    "SET_LONG_NAME",
    "THREADS",
    "name_of",
    "read_head",
    "read_record",
    "read_thread",
    "thread_of",
    "thread_row",
    "to_rewrite",
    "to_row",
]

thread_of = digest_of

HEAD: Final = (
    'c."REVISION", c."BASE", c."LEVEL", c."SEQUENCE", c."CREATED_AT", c."SIZE", '
    'DBMS_LOB.GETLENGTH(c."PAYLOAD"), c."SEAL", c."HEAD"'
)
"""The first columns of rows for `read_head` and `read_record`; a payload comes last."""


def name_of(checkpoint_id: str) -> bytes:
    """Return the bytes for a checkpoint in the indexes: those of a UUID, or a digest."""
    return uuid_bytes(checkpoint_id) or digest_of(checkpoint_id)


def thread_row(thread_id: str) -> Binds:
    """Return the binds of a thread's names."""
    whole = encode_text(thread_id).encode()
    name = cut(whole)
    return {"name": name, "long_name": whole if is_cut(name) else None}


def to_row(record: Record) -> Binds:
    """Return the binds of a record that is appended, without its thread."""
    return {
        **to_rewrite(record),
        "name": name_of(record.checkpoint_id),
        "created_at": record.created_at,
    }


def to_rewrite(record: Record) -> Binds:
    """Return the binds of a record that is rewritten, without its thread."""
    fork = optional_text(record)
    head = [encode_text(record.checkpoint_id), record.metadata, fork]
    return {
        "revision": record.revision,
        "base": record.base,
        "depth": record.level,
        "json_bytes": record.size,
        "seal": record.seal(),
        "head": orjson.dumps(head),
        "payload": record.payload,
    }


def read_head(thread_id: str, row: Row) -> RecordHead:
    """Return the head of a row.

    Raises:
        CheckpointCorruptError: The row is damaged.
    """
    return RecordHead(**_fields(thread_id, row)).verified(row[7])


def read_record(thread_id: str, row: Row) -> Record:
    """Return the record of a row.

    Raises:
        CheckpointCorruptError: The head is damaged.
    """
    return Record(**_fields(thread_id, row), payload=row[9]).verified(row[7])


def _fields(thread_id: str, row: Row) -> dict[str, Any]:
    revision, base, level, sequence, created_at, size, stored, seal, head = row[:9]
    try:
        checkpoint_id, metadata, fork = orjson.loads(head)
    except (TypeError, ValueError) as error:
        raise damage(thread_id, None) from error
    known = checkpoint_id, revision, base, level, sequence, created_at, metadata, size, stored
    return head_fields(thread_id, (*known, seal, fork), read_text=str, read_metadata=dict)


def read_thread(name: bytes, long_name: bytes | None) -> str:
    """Return the name of a thread.

    Raises:
        CheckpointCorruptError: It is not a name.
    """
    return thread_name(long_name or name, lambda encoded: decode_text(encoded.decode()))


# Locks the thread, or creates it without a checkpoint. A delta has a base, so its thread exists:
# the guard of a new row is NULL then, its column refuses that, and the pipeline ends with an error.
CLAIM: Final = """
MERGE INTO {threads} t USING (
  SELECT :digest AS digest, :name AS name, :nothing AS nothing, :may_begin AS may_begin FROM dual) g
ON (t."DIGEST" = g.digest)
WHEN MATCHED THEN UPDATE SET "GUARD" = 1
WHEN NOT MATCHED THEN INSERT ("DIGEST", "NAME", "NEWEST", "GUARD")
VALUES (g.digest, g.name, g.nothing, CASE WHEN g.may_begin = 1 THEN 1 END)
"""

# Names the newest checkpoint; where the one before is not the expected one, the guard is NULL. A
# statement of its own, which begins once the row is locked, so that it sees what the last writer
# committed: a MERGE that waits for a row may go on with the values from before the wait.
ADVANCE: Final = """
UPDATE {threads} t SET "GUARD" = CASE WHEN :any_parent = 1 OR t."NEWEST" = :parent THEN 1 END,
  "NEWEST" = :newest WHERE t."DIGEST" = :digest
"""

# The base exists, or the foreign key refuses the row; the statement begins after the lock, so that
# it sees all that was done before. A second record of one name is refused by its key.
APPEND: Final = """
INSERT INTO {checkpoints} ("THREAD", "REVISION", "BASE", "SEQUENCE", "NAME", "LEVEL",
  "CREATED_AT", "SIZE", "SEAL", "HEAD", "PAYLOAD")
VALUES (:thread, :revision, :base, {sequences}.NEXTVAL, :name, :depth,
  :created_at, :json_bytes, :seal, :head, :payload)
"""

APPEND_LOCKED: Final = APPEND

SEQUENCE: Final = """
SELECT c."SEQUENCE" FROM {checkpoints} c WHERE c."THREAD" = :thread AND c."REVISION" = :revision
"""

LOCK: Final = """
SELECT t."DIGEST" FROM {threads} t WHERE t."DIGEST" = :thread FOR UPDATE
"""

OVERWRITE: Final = """
UPDATE {checkpoints} SET "BASE" = :base, "LEVEL" = :depth, "SIZE" = :json_bytes, "SEAL" = :seal,
  "HEAD" = :head, "PAYLOAD" = :payload
WHERE "THREAD" = :thread AND "REVISION" = :revision
"""

REMOVE: Final = """
DELETE FROM {checkpoints} WHERE "THREAD" = :thread AND "REVISION" = :revision
"""

REMOVE_ALL: Final = 'DELETE FROM {checkpoints} WHERE "THREAD" = :thread'

REMOVE_NAMED: Final = """
DELETE FROM {checkpoints} WHERE "THREAD" = :thread AND "NAME" = :name
"""

NEWEST: Final = """
SELECT c."NAME" FROM {checkpoints} c WHERE c."THREAD" = :thread
ORDER BY c."SEQUENCE" DESC FETCH FIRST 1 ROWS ONLY
"""

# The name of a thread that is too long for its column.
SET_LONG_NAME: Final = 'UPDATE {threads} SET "LONG_NAME" = :long_name WHERE "DIGEST" = :digest'

RENEW: Final = 'UPDATE {threads} SET "NEWEST" = :newest WHERE "DIGEST" = :digest'

REMOVE_THREAD: Final = 'DELETE FROM {threads} WHERE "DIGEST" = :digest'

FIND_NEWEST: Final = f"""
SELECT {HEAD} FROM {{checkpoints}} c WHERE c."THREAD" = :thread
ORDER BY c."SEQUENCE" DESC FETCH FIRST 1 ROWS ONLY
"""

FIND_NAMED: Final = f"""
SELECT {HEAD} FROM {{checkpoints}} c WHERE c."THREAD" = :thread AND c."NAME" = :name
"""

LIST: Final = f"""
SELECT {HEAD} FROM {{checkpoints}} c WHERE c."THREAD" = :thread AND c."SEQUENCE" < :before
ORDER BY c."SEQUENCE" DESC FETCH FIRST :most ROWS ONLY
"""

RECORDS: Final = f"""
SELECT {HEAD}, c."PAYLOAD" FROM {{checkpoints}} c
WHERE c."THREAD" = :thread AND c."SEQUENCE" > :after AND c."SEQUENCE" <= :through
ORDER BY c."SEQUENCE" FETCH FIRST :most ROWS ONLY
"""

SEQUENCES: Final = """
SELECT c."SEQUENCE" FROM {checkpoints} c WHERE c."THREAD" = :thread
ORDER BY c."SEQUENCE" DESC
"""

# A base is older than its delta, so the search ends even if links form a circle. The recursion
# carries no LOB. The clause WITH comes first, since Oracle takes it in most subqueries only.
_CHAIN: Final = """
WITH chain (revision, base, sequence) AS (
  SELECT f."REVISION", f."BASE", f."SEQUENCE" FROM {checkpoints} f
  WHERE f."THREAD" = :thread AND %s
  UNION ALL
  SELECT b."REVISION", b."BASE", b."SEQUENCE"
  FROM chain h JOIN {checkpoints} b ON b."REVISION" = h.base AND b."SEQUENCE" < h.sequence
  WHERE b."THREAD" = :thread)
SELECT %s, c."PAYLOAD" FROM chain found
JOIN {checkpoints} c ON c."REVISION" = found.revision
WHERE c."THREAD" = :thread ORDER BY c."SEQUENCE" DESC
"""

_IS_NEWEST: Final = """f."SEQUENCE" = (
    SELECT MAX(m."SEQUENCE") FROM {checkpoints} m WHERE m."THREAD" = :thread)"""

CHAIN_OF_NEWEST: Final = _CHAIN % (_IS_NEWEST, HEAD)

CHAIN_OF_NAMED: Final = _CHAIN % ('f."NAME" = :name', HEAD)

THREADS: Final = """
SELECT t."NAME", t."LONG_NAME" FROM {threads} t WHERE t."NAME" >= :low AND t."NAME" < :high
ORDER BY t."NAME" FETCH FIRST :most ROWS ONLY
"""

HEADS_OF_ALL: Final = f"""
SELECT {HEAD}, t."NAME", t."LONG_NAME"
FROM {{checkpoints}} c JOIN {{threads}} t ON t."DIGEST" = c."THREAD"
WHERE c."SEQUENCE" < :before ORDER BY c."SEQUENCE" DESC FETCH FIRST :most ROWS ONLY
"""
