"""A checkpoint's record in the format of Redis, and the errors of a damaged record.

A head is its revision and its base (eight bytes each, all ones for no base), the length of its
checkpoint id (four bytes), the id in UTF-8, and JSON of the rest. Numbers are big-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final

import orjson

from locus_memory.backends.record_rows import damage, thread_name
from locus_memory.backends.redis.schema import name_of
from locus_memory.checkpoint.record import Record, RecordHead, fork_point

__all__ = [
    "Row",
    "pack_head",
    "pack_revision",
    "read_head",
    "read_name",
    "read_record",
]

Row = Sequence[Any]
"""A head, its sequence, and its payload or the length of it, as the scripts return them."""

_LINKS: Final = struct.Struct(">QQI")
_REVISION: Final = struct.Struct(">Q")
_NO_BASE: Final = 2**64 - 1
_SEQUENCE: Final = 8
"""Bytes before a payload."""


def pack_revision(revision: int) -> bytes:
    """Return a revision in the format of the scripts."""
    return _REVISION.pack(revision)


def pack_head(head: RecordHead) -> bytes:
    """Return the stored form of a head; its sequence and stored size are kept elsewhere."""
    name = head.checkpoint_id.encode()
    base = _NO_BASE if head.base is None else head.base
    rest: list[Any] = [head.level, head.created_at, head.metadata, head.size, head.seal()]
    if head.forked_from is not None:
        rest.append(head.forked_from)
    return _LINKS.pack(head.revision, base, len(name)) + name + orjson.dumps(rest)


def read_head(thread_id: str, row: Row) -> RecordHead:
    """Return the head of a row.

    Raises:
        CheckpointCorruptError: The row is damaged.
    """
    fields, seal = _fields(thread_id, row)
    return RecordHead(**fields, stored_size=row[2] - _SEQUENCE).verified(seal)


def read_record(thread_id: str, row: Row) -> Record:
    """Return the record of a row.

    Raises:
        CheckpointCorruptError: Its head is damaged, or it has no payload.
    """
    fields, seal = _fields(thread_id, row)
    payload: bytes = (row[2] or b"")[_SEQUENCE:]
    record = Record(**fields, stored_size=len(payload), payload=payload).verified(seal)
    if not payload:
        raise record.corrupt("its payload is missing")
    return record


def _fields(thread_id: str, row: Row) -> tuple[dict[str, Any], Any]:
    name: str | None = None
    try:
        revision, base, length = _LINKS.unpack_from(row[0])
        end = _LINKS.size + length
        name = row[0][_LINKS.size : end].decode()
        level, created_at, metadata, size, seal, *origin = orjson.loads(row[0][end:])
        fields = {
            "thread_id": thread_id,
            "checkpoint_id": name,
            "revision": revision,
            "base": None if base == _NO_BASE else base,
            "level": level,
            "sequence": int(row[1]),
            "created_at": created_at,
            "metadata": metadata,
            "size": size,
            "forked_from": fork_point(*origin) if origin else None,
        }
    except (IndexError, TypeError, ValueError, struct.error) as error:
        raise damage(thread_id, name) from error
    return fields, seal


def read_name(member: bytes) -> str:
    """Return the thread of a member of a registry.

    Raises:
        CheckpointCorruptError: The member names no thread.
    """
    return thread_name(member, name_of)
