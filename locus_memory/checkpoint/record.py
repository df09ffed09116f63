"""The record of one checkpoint: what a storage keeps, and the bytes of its payload.

A payload is a version byte, a CRC-32 and a zlib stream of JSON, for which `DICTIONARY` is the
preset dictionary. The rest of a record, its head, has a CRC-32 of its own, the seal, which the
payload's goes on from. So neither a flipped byte nor a record that was moved to another name is
ever taken for the truth, whether the payload is read or not.
"""

from __future__ import annotations

import zlib
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Self

import orjson

from locus_memory.checkpoint.base import CheckpointInfo
from locus_memory.checkpoint.dictionary import DICTIONARY
from locus_memory.errors import CheckpointCorruptError
from locus_memory.store.item import timestamp

__all__ = ["FORMAT_VERSION", "Record", "RecordHead"]

FORMAT_VERSION = 1
"""Written as the first byte of every payload; a reader refuses what is newer."""

_FRAME = 5  # the version byte and four bytes of checksum


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordHead:
    """Everything of a record but its payload.

    Attributes:
        thread_id: The thread.
        checkpoint_id: The checkpoint's name in the thread, unique there.
        revision: Names the state itself, 63 random bits: a re-save of the same checkpoint id
            gets a new one, a rewrite of the same state keeps it.
        base: The revision of the record this one is a delta against; `None`: a full state.
        level: How far back the delta reaches; see `locus_memory.checkpoint.levels`.
        sequence: The storage's own order within the thread; 0 until stored.
        created_at: When it was saved, seconds since the epoch.
        metadata: The caller's.
        size: Bytes of the JSON before compression.
        stored_size: Bytes of the payload.
    """

    thread_id: str
    checkpoint_id: str
    revision: int
    base: int | None
    level: int
    sequence: int
    created_at: float
    metadata: dict[str, Any]
    size: int
    stored_size: int

    def info(self) -> CheckpointInfo:
        """Return what the checkpointer tells its caller, who may change it at will."""
        return CheckpointInfo(
            thread_id=self.thread_id,
            checkpoint_id=self.checkpoint_id,
            sequence=self.sequence,
            created_at=timestamp(self.created_at),
            metadata=deepcopy(self.metadata),
            is_full=self.base is None,
            size=self.size,
            stored_size=self.stored_size,
            revision=self.revision,
        )

    def seal(self) -> int:
        """Return the CRC-32 of the head, which a storage keeps beside it.

        It leaves out what a copy of the thread changes, and what the storage gives: the
        thread, the sequence and the stored size.
        """
        return self._crc(self.size)

    def _crc(self, size: int) -> int:
        content = (
            FORMAT_VERSION,
            self.checkpoint_id,
            self.revision,
            self.base,
            self.level,
            # A database may return a whole number as a fraction.
            self.created_at + 0.0,
            self.metadata,
            size,
        )
        return zlib.crc32(orjson.dumps(content, option=orjson.OPT_SORT_KEYS))

    def verified(self, seal: object) -> Self:
        """Return this head if `seal` is the one it was written with.

        Raises:
            CheckpointCorruptError: It is not, or a field is not even of its type.
        """
        try:
            genuine = self.seal() == seal
        except (TypeError, ValueError, OverflowError):
            genuine = False
        if not genuine:
            raise self.corrupt("its head is damaged")
        return self

    def checksum(self, body: bytes, size: int) -> int:
        """Return the CRC-32 of the head, with this size, and the compressed body."""
        return zlib.crc32(body, self._crc(size))

    def corrupt(self, reason: str) -> CheckpointCorruptError:
        """Return the error that names this record."""
        return CheckpointCorruptError(self.thread_id, self.checkpoint_id, reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(RecordHead):
    """A record with its payload."""

    payload: bytes

    @classmethod
    def pack(cls, document: bytes, head: RecordHead, compression_level: int) -> Self:
        """Return the record of a JSON document, compressed and checksummed.

        Args:
            document: A state, or a delta where `head.base` is set.
            head: The rest of the record; its sizes are ignored.
            compression_level: zlib's, from 0 to 9.
        """
        # A window no larger than what there is: zlib clears its memory first, which for a small
        # delta takes longer than the compression.
        window = min((len(DICTIONARY) + len(document)).bit_length(), zlib.MAX_WBITS)
        stream = zlib.compressobj(compression_level, wbits=window, zdict=DICTIONARY)
        body = stream.compress(document) + stream.flush()
        checksum = head.checksum(body, len(document)).to_bytes(4, "big")
        return cls(
            thread_id=head.thread_id,
            checkpoint_id=head.checkpoint_id,
            revision=head.revision,
            base=head.base,
            level=head.level,
            sequence=head.sequence,
            created_at=head.created_at,
            metadata=head.metadata,
            size=len(document),
            stored_size=_FRAME + len(body),
            payload=bytes((FORMAT_VERSION,)) + checksum + body,
        )

    def unpack(self) -> Any:
        """Return the JSON document: a whole state, or a delta where `base` is set.

        Raises:
            CheckpointCorruptError: The record is truncated, altered, moved or too new.
        """
        if self.payload[:1] != bytes((FORMAT_VERSION,)) or len(self.payload) < _FRAME:
            raise self.corrupt("unknown record format")
        body = self.payload[_FRAME:]
        if int.from_bytes(self.payload[1:_FRAME], "big") != self.checksum(body, self.size):
            raise self.corrupt("the checksum does not match")
        stream = zlib.decompressobj(zdict=DICTIONARY)
        try:
            return orjson.loads(stream.decompress(body))
        except (zlib.error, orjson.JSONDecodeError) as error:
            raise self.corrupt(str(error)) from error
