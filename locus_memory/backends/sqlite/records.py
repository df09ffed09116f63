"""A checkpoint's record as a row of SQLite, and the errors of a damaged row."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from typing import Any, Final, TypeVar

import orjson

from locus_memory._internal.quoting import quote
from locus_memory.checkpoint.record import ForkPoint, Record, RecordHead, fork_point
from locus_memory.errors import BackendCorruptError, CheckpointCorruptError
from locus_memory.store.encoding import decode_text, encode_text

__all__ = [
    "HEAD",
    "blaming",
    "check_name",
    "clamped",
    "read_head",
    "read_record",
    "read_thread",
    "to_row",
    "to_text",
]

R = TypeVar("R", bound=RecordHead)

# Text as bytes: the driver does not report in which row it cannot decode a text.
HEAD: Final = """
  CAST(checkpoint_id AS BLOB), revision, base, level, sequence, created_at,
  CAST(metadata AS BLOB), size, length(payload), seal, CAST(forked_from AS BLOB)
"""
"""The first columns of rows for `read_head` and `read_record`; a payload comes last."""

_LARGEST: Final = 2**63 - 1


def clamped(number: int) -> int:
    """Return the number, or the largest that SQLite can store."""
    return min(number, _LARGEST)


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
        "forked_from": to_text(record.forked_from),
        "payload": record.payload,
    }


def to_text(forked_from: ForkPoint | None) -> str | None:
    """Return the value of the column for a fork point."""
    return None if forked_from is None else orjson.dumps(forked_from).decode()


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
    name: str | None = None
    try:
        name = decode_text(row[0].decode())
        metadata = orjson.loads(row[6])
        forked_from = None if row[10] is None else fork_point(orjson.loads(row[10]))
    except (AttributeError, KeyError, StopIteration, TypeError, ValueError) as error:
        raise CheckpointCorruptError(thread_id, name, "its head is damaged") from error
    return {
        "thread_id": thread_id,
        "checkpoint_id": name,
        "revision": row[1],
        "base": row[2],
        "level": row[3],
        "sequence": row[4],
        "created_at": row[5],
        "metadata": metadata,
        "size": row[7],
        "stored_size": row[8],
        "forked_from": forked_from,
    }


def check_name(head: R, checkpoint_id: str) -> R:
    """Return the head that an index found, if it has the requested name.

    Raises:
        CheckpointCorruptError: It has another name.
    """
    if head.checkpoint_id != checkpoint_id:
        raise head.corrupt(f"it was found as {quote(checkpoint_id)}")
    return head


def read_thread(encoded: bytes) -> str:
    """Return the name of a thread.

    Raises:
        CheckpointCorruptError: It is not a name.
    """
    try:
        return decode_text(encoded.decode())
    except (AttributeError, KeyError, StopIteration, ValueError) as error:
        raise CheckpointCorruptError(repr(encoded), None, "its name is damaged") from error


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
