"""A checkpoint's record in the format of OpenSearch: a row of its thread, and a document.

The row is the head of the record, in JSON, with the name of the document that has the payload. No
field of either is indexed or read by the server: it returns the text that it was sent.
"""

from __future__ import annotations

from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Sequence
from hashlib import blake2b
from os import urandom
from typing import Any, NamedTuple

import orjson

from locus_memory.backends.record_rows import fork_text, head_fields
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.store.encoding import encode_text
from locus_memory.store.json_values import decode_json, encode_json

__all__ = [
    "Row",
    "digest_of",
    "new_token",
    "payload_line",
    "payload_of",
    "read_head",
    "read_record",
    "read_row",
    "to_row",
]


class Row(NamedTuple):
    """The head of a record in its thread, as for `head_fields`, and the name of its payload."""

    checkpoint_id: str
    revision: int
    base: int | None
    level: int
    sequence: int
    created_at: float
    metadata: str
    size: int
    stored_size: int
    seal: int
    forked_from: str | None
    token: str


def digest_of(thread_id: str) -> str:
    """Return the 32 letters for a thread in the ids of documents, which the server limits."""
    return blake2b(thread_id.encode(), digest_size=16).hexdigest()


def new_token() -> str:
    """Return a new name for a document of a thread, or for a write."""
    return urlsafe_b64encode(urandom(9)).decode()


def to_row(head: RecordHead, sequence: int, token: str) -> Row:
    """Return the row of a record.

    Args:
        head: The record.
        sequence: Its place in the thread.
        token: The name of the document with its payload.
    """
    return Row(
        checkpoint_id=encode_text(head.checkpoint_id),
        revision=head.revision,
        base=head.base,
        level=head.level,
        sequence=sequence,
        created_at=head.created_at,
        metadata=encode_json(head.metadata).decode(),
        size=head.size,
        stored_size=head.stored_size,
        seal=head.seal(),
        forked_from=fork_text(head.forked_from),
        token=token,
    )


def read_row(stored: Sequence[Any]) -> Row:
    """Return a stored row.

    Raises:
        TypeError: It has another form.
        ValueError: As before.
    """
    row = Row(*stored)
    values: tuple[Any, ...] = row
    if not isinstance(values[4], int) or not isinstance(values[-1], str):
        raise TypeError("a row has a sequence and a token")
    return row


def read_head(thread_id: str, row: Row) -> RecordHead:
    """Return the head of a row.

    Raises:
        CheckpointCorruptError: The row is damaged.
    """
    return RecordHead(**_fields(thread_id, row)).verified(row.seal)


def read_record(thread_id: str, row: Row, payload: bytes | None) -> Record:
    """Return the record of a row and the payload of its document.

    Raises:
        CheckpointCorruptError: The row is damaged, or there is no payload.
    """
    record = Record(**_fields(thread_id, row), payload=payload or b"").verified(row.seal)
    if payload is None:
        raise record.corrupt("its payload is missing")
    return record


def _fields(thread_id: str, row: Row) -> dict[str, Any]:
    return head_fields(thread_id, row, read_text=str, read_metadata=decode_json)


def payload_line(payload: bytes) -> bytes:
    """Return the document of a payload."""
    return orjson.dumps({"body": {"payload": b64encode(payload).decode()}})


def payload_of(source: Any) -> bytes | None:
    """Return the payload of a document; `None` if it has none that can be read."""
    try:
        return b64decode(source["body"]["payload"], validate=True)
    except (KeyError, TypeError, ValueError):
        return None
