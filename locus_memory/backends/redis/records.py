"""The keys of a thread, the format of its records, and the errors of a damaged one.

| key | type | content |
|---|---|---|
| `PREFIXthread:{SHARD}:DIGEST:heads` | sorted set | the heads, by sequence |
| `PREFIXthread:{SHARD}:DIGEST:payloads` | hash | revision -> sequence and payload |
| `PREFIXthread:{SHARD}:DIGEST:names` | hash | checkpoint id -> sequence |
| `PREFIXthreads:{SHARD}` | sorted set | name and digest of each thread, all of score 0 |

The digest of its name puts a thread into one of 64 shards. The text in braces decides the slot of
a cluster, so a thread and the registry that lists it are always on one server, and are written
together. A revision and a sequence are eight bytes each: Lua's numbers would round the revision.

A head is its revision and its base (eight bytes each, all ones for no base), the length of its
checkpoint id (four bytes), the id in UTF-8, and JSON of the rest. Numbers are big-endian.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import orjson

from locus_memory.backends.record_rows import damage, thread_name
from locus_memory.checkpoint.record import Record, RecordHead, optional_fields
from locus_memory.store.encoding import decode_text, encode_text, prefix_upper_bound

__all__ = [
    "SHARDS",
    "Row",
    "ThreadKeys",
    "bounds_of",
    "name_of",
    "pack_head",
    "pack_revision",
    "read_head",
    "read_name",
    "read_record",
    "registry_key",
    "thread_keys",
]

SHARDS: Final = 64
"""The most slots that threads use: it never changes, or threads would be lost."""

_DIGEST: Final = 16


@dataclass(frozen=True, slots=True)
class ThreadKeys:
    """The keys of one thread.

    Attributes:
        all: The keys, in the order of the scripts' arguments, the registry last.
        member: The thread's member of the registry.
    """

    all: tuple[bytes, bytes, bytes, bytes]
    member: bytes


@lru_cache(maxsize=1024)
def thread_keys(prefix: bytes, thread_id: str) -> ThreadKeys:
    """Return the keys of a thread.

    Args:
        prefix: The prefix of every key.
        thread_id: The thread.
    """
    name = encode_text(thread_id).encode()
    digest = hashlib.blake2b(name, digest_size=_DIGEST)
    named = digest.hexdigest().encode()
    shard = digest.digest()[0] % SHARDS
    stem = b"%bthread:{%02x}:%b:" % (prefix, shard, named)
    keys = (stem + b"heads", stem + b"payloads", stem + b"names", registry_key(prefix, shard))
    return ThreadKeys(keys, name + b"\0" + named)


def registry_key(prefix: bytes, shard: int) -> bytes:
    """Return the key that lists the threads of a shard."""
    return b"%bthreads:{%02x}" % (prefix, shard)


def name_of(member: bytes) -> str:
    """Return the thread of a member of a registry.

    Raises:
        ValueError: The member names no thread.
        KeyError: The same.
        StopIteration: The same.
    """
    return decode_text(member[: -2 * _DIGEST - 1].decode())


def bounds_of(prefix: str | None, after: str | None) -> tuple[bytes, bytes]:
    """Return the range of the threads that begin with `prefix` and follow `after`."""
    start = encode_text(prefix or "")
    end = prefix_upper_bound(start)
    lowest = b"[" + start.encode()
    if after:
        # A name is followed by \x00, longer names that begin with it by more than \x01.
        past = encode_text(after).encode() + b"\1"
        lowest = max(lowest, b"[" + past)
    return lowest, b"+" if end is None else b"(" + end.encode()


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
    if (optional := head.optional()) is not None:
        rest.append(optional)
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
        level, created_at, metadata, size, seal, *optional = orjson.loads(row[0][end:])
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
            **optional_fields(*(optional or [None])),
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
