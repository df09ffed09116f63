"""A checkpoint's record as a row of Oracle, and the errors of a damaged row."""

from __future__ import annotations

from typing import Any, Final

import orjson

from locus_memory.backends.oracle.connection.driver import Binds, Row
from locus_memory.backends.oracle.items.naming import cut, is_cut
from locus_memory.backends.record_rows import (
    damage,
    digest_of,
    fork_text,
    head_fields,
    thread_name,
    uuid_bytes,
)
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.store.encoding import decode_text, encode_text

__all__ = [
    "HEAD",
    "name_of",
    "read_head",
    "read_record",
    "read_thread",
    "thread_row",
    "to_rewrite",
    "to_row",
]

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
    fork = fork_text(record.forked_from)
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
    return head_fields(
        thread_id, (*known, seal, fork), read_text=_as_it_is, read_metadata=_as_it_is
    )


def _as_it_is(value: Any) -> Any:
    return value


def read_thread(name: bytes, long_name: bytes | None) -> str:
    """Return the name of a thread.

    Raises:
        CheckpointCorruptError: It is not a name.
    """
    return thread_name(long_name or name, lambda encoded: decode_text(encoded.decode()))
