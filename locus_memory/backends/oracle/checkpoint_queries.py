"""The statements of checkpoints, with the reasons for their form.

The names of the tables are in braces; see `locus_memory.backends.oracle.schema.Names`.
"""

# ruff: noqa: S608 - constants only

from __future__ import annotations

from typing import Final

from locus_memory.backends.oracle.records import HEAD

__all__ = [
    "ADVANCE",
    "APPEND",
    "CHAIN_OF_NAMED",
    "CHAIN_OF_NEWEST",
    "CLAIM",
    "FIND_NAMED",
    "FIND_NEWEST",
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
]

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

SEQUENCE: Final = """
SELECT c."SEQUENCE" FROM {checkpoints} c WHERE c."THREAD" = :thread AND c."REVISION" = :revision
"""

LOCK: Final = """
SELECT t."NEWEST" FROM {threads} t WHERE t."DIGEST" = :digest FOR UPDATE
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
