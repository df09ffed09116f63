"""A checkpoint's record as a row of PostgreSQL, and the errors of a damaged row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from locus_memory.backends.postgresql.connection.driver import Record as Row
from locus_memory.backends.postgresql.items.documents import decode_document, encode_document
from locus_memory.backends.record_rows import (
    digest_of,
    fork_text,
    head_fields,
    thread_name,
    uuid_bytes,
)
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.store.encoding import decode_text, encode_text

__all__ = [
    "COLUMNS",
    "HEAD",
    "name_of",
    "read_head",
    "read_record",
    "read_thread",
    "to_columns",
    "to_mask",
    "to_row",
]

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

_HALF: Final = 2**31
"""Subtracted from a seal, an unsigned number, since PostgreSQL has only signed ones."""


def name_of(checkpoint_id: str) -> tuple[bytes, str]:
    """Return the bytes for a checkpoint in the indexes, and the rest of its name.

    A UUID is completely in the bytes, which keep the order of time-ordered UUIDs. For any
    other name they are a digest, of another length.
    """
    known = uuid_bytes(checkpoint_id)
    return (known, "") if known else (digest_of(checkpoint_id), encode_text(checkpoint_id))


def to_row(record: Record) -> tuple[Any, ...]:
    """Return the values of `COLUMNS`."""
    return (
        *name_of(record.checkpoint_id),
        record.revision,
        record.base,
        record.level,
        record.created_at,
        encode_document(record.metadata),
        record.size,
        record.seal() - _HALF,
        record.payload,
        fork_text(record.forked_from),
    )


def to_columns(records: Sequence[Record]) -> tuple[list[Any], ...]:
    """Return the columns that a rewrite changes, as an array each.

    These are the revisions, which stay, the bases, the levels, the sizes, the seals, the
    payloads and the fork points.
    """
    return (
        [record.revision for record in records],
        [record.base for record in records],
        [record.level for record in records],
        [record.size for record in records],
        [record.seal() - _HALF for record in records],
        [record.payload for record in records],
        [fork_text(record.forked_from) for record in records],
    )


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
    return head_fields(thread_id, row, read_text=_text, read_metadata=decode_document)


def _text(stored: str) -> str:
    return stored


def read_thread(encoded: str) -> str:
    """Return the name of a thread.

    Raises:
        CheckpointCorruptError: It is not a name.
    """
    return thread_name(encoded, decode_text)
