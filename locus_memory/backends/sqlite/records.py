"""A checkpoint's record as a row of SQLite, and the errors of a damaged row."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from typing import Any, Final

import orjson

from locus_memory.backends.record_rows import fork_text, head_fields, thread_name
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.errors import BackendCorruptError, CheckpointCorruptError
from locus_memory.store.encoding import decode_text, encode_text

__all__ = [
    "HEAD",
    "blaming",
    "read_head",
    "read_record",
    "read_thread",
    "to_row",
]

# Text as bytes: the driver does not report in which row it cannot decode a text.
HEAD: Final = """
  CAST(checkpoint_id AS BLOB), revision, base, level, sequence, created_at,
  CAST(metadata AS BLOB), size, length(payload), seal, CAST(forked_from AS BLOB)
"""
"""The first columns of rows for `read_head` and `read_record`; a payload comes last."""


def to_row(record: Record) -> dict[str, Any]:
    """Return the parameters of the statements that write a record."""
    return {
        "thread": encode_text(record.thread_id),
        "name": encode_text(record.checkpoint_id),
        "revision": record.revision,
        "base": record.base,
        "level": record.level,
        "created_at": record.created_at,
        "metadata": orjson.dumps(record.metadata).decode(),
        "size": record.size,
        "seal": record.seal(),
        "forked_from": fork_text(record.forked_from),
        "payload": record.payload,
    }


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
def blaming(thread_id: str, checkpoint_id: str | None = None) -> Generator[None]:
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
        if not in_rows or "database schema" in reason:
            raise
        raise CheckpointCorruptError(thread_id, checkpoint_id, reason) from error
