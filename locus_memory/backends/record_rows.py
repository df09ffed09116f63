"""The parts of a checkpoint's record that several databases keep and read alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, Final, Protocol, TypeVar

import orjson

from locus_memory._internal.quoting import quote
from locus_memory.checkpoint.record import Record, RecordHead, optional_fields
from locus_memory.checkpoint.storage import chain_of
from locus_memory.errors import CheckpointCorruptError
from locus_memory.store.encoding import decode_text

__all__ = [
    "LARGEST",
    "chain_from",
    "check_name",
    "clamped",
    "damage",
    "digest_of",
    "head_fields",
    "optional_text",
    "thread_name",
    "uuid_bytes",
]

R = TypeVar("R", bound=RecordHead)


class _Row(Protocol):
    """A row, by the number of a column."""

    def __getitem__(self, column: int, /) -> Any: ...


LARGEST: Final = 2**63 - 1
"""The largest integer of a column."""

_UUID: Final = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

_DAMAGED: Final = (AttributeError, KeyError, StopIteration, TypeError, ValueError)
"""The errors of reading a value that is not the one that was written."""


def clamped(number: int | None) -> int:
    """Return the number, or the largest that a column can store; `None` is that as well."""
    return LARGEST if number is None else min(number, LARGEST)


def optional_text(head: RecordHead) -> str | None:
    """Return the value of the column `forked_from`, which has all of `RecordHead.optional`."""
    return None if (stored := head.optional()) is None else orjson.dumps(stored).decode()


def head_fields(
    thread_id: str,
    row: _Row,
    *,
    read_text: Callable[[Any], str],
    read_metadata: Callable[[Any], Any],
) -> dict[str, Any]:
    """Return the fields of a `RecordHead` from a row of a table.

    Args:
        thread_id: The thread of the row.
        row: The checkpoint id, revision, base, level, sequence, creation time, metadata, size,
            stored size, seal and optional fields, in this order.
        read_text: Returns the text of a column; it is a name by `decode_text` then.
        read_metadata: Returns the metadata of a column.

    Raises:
        CheckpointCorruptError: The row is damaged.
    """
    name: str | None = None
    try:
        name = decode_text(read_text(row[0]))
        metadata = read_metadata(row[6])
        optional = {} if row[10] is None else optional_fields(orjson.loads(row[10]))
    except _DAMAGED as error:
        raise damage(thread_id, name) from error
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
        **optional,
    }


def damage(thread_id: str, checkpoint_id: str | None) -> CheckpointCorruptError:
    """Return the error of a head that cannot be read."""
    return CheckpointCorruptError(thread_id, checkpoint_id, "its head is damaged")


def check_name(head: R, checkpoint_id: str | None) -> R:
    """Return the head that an index found, if it has the requested name; `None`: any name.

    Raises:
        CheckpointCorruptError: It has another name.
    """
    if checkpoint_id not in (None, head.checkpoint_id):
        raise head.corrupt(f"it was found as {quote(checkpoint_id)}")
    return head


def chain_from(records: Sequence[Record], checkpoint_id: str | None) -> list[Record]:
    """Return the chain of the first record, the full record first; none of no record.

    Args:
        records: The record that was asked for, and those that it builds on, in any order.
        checkpoint_id: The name that it was found as; `None`: any.

    Raises:
        CheckpointCorruptError: It has another name, a base is missing, or the links form a circle.
    """
    if not records:
        return []
    known = {record.revision: record for record in records}
    return chain_of(known.get, check_name(records[0], checkpoint_id))


def digest_of(name: str) -> bytes:
    """Return the 16 bytes for a name in the indexes, however long it is."""
    return blake2b(name.encode(), digest_size=16).digest()


def uuid_bytes(checkpoint_id: str) -> bytes | None:
    """Return the 17 bytes for a UUID, which keep the order of time-ordered ones; else `None`.

    No digest is as long.
    """
    if _UUID.fullmatch(checkpoint_id):
        return b"\0" + bytes.fromhex(checkpoint_id.replace("-", ""))
    return None


def thread_name(encoded: Any, read_text: Callable[[Any], str]) -> str:
    """Return the name of a thread from a column or a member.

    Raises:
        CheckpointCorruptError: It is not a name.
    """
    try:
        return read_text(encoded)
    except _DAMAGED as error:
        raise CheckpointCorruptError(repr(encoded), None, "its name is damaged") from error
