"""The record of one checkpoint: its fields in a storage, and the bytes of its payload.

A payload is a version byte, a CRC-32 and a zlib stream with a preset dictionary. The stream is
JSON, or in `FRAMED_VERSION` a frame of JSON and bytes; see `encoding.frames`. The kind of the state
follows the end of the stream, where older readers ignore it. The rest of a record, its head, has a
CRC-32, which the payload's CRC-32 continues.

The seal of a record is the CRC-32 of its head, XOR those of its thread and of the checkpoint that
it was forked from. So a flipped byte, or a record that was moved to another id or thread, is always
detected, whether the payload is read or not. A database that copies a thread changes the seals by
a XOR with `moved`, without reading a record.
"""

from __future__ import annotations

import zlib
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import orjson
from typing_extensions import override

from locus_memory._internal.quoting import quote
from locus_memory._internal.sameness import own_copy
from locus_memory.checkpoint.base import CheckpointInfo
from locus_memory.checkpoint.encoding.dictionary import BYTES_DICTIONARY, DICTIONARY
from locus_memory.checkpoint.encoding.frames import is_frame, loads
from locus_memory.errors import CheckpointCorruptError, EncryptionError
from locus_memory.store.item import timestamp

__all__ = [
    "ENCRYPTED_VERSION",
    "FORMAT_VERSION",
    "FRAMED_VERSION",
    "ForkPoint",
    "Record",
    "RecordHead",
    "moved",
    "optional_fields",
]

FORMAT_VERSION = 2
"""The version of every seal, and the first byte of a payload of JSON."""

FRAMED_VERSION = 3
"""The first byte of a payload of JSON and bytes; a reader refuses newer versions."""

ENCRYPTED_VERSION = 0xE0
"""The first byte of an encrypted payload, which `locus_memory.encryption` writes and reads.

No flipped bit turns it into another version, or another version into it.
"""

_WITHOUT_THREAD = 1
"""The version whose seals do not cover the thread; its records are read and copied as is."""

_LATER = range(FRAMED_VERSION + 1, FRAMED_VERSION + 16)
"""The versions that a reader recognises in order to say so."""

_NEWER = "a newer locus_memory wrote it; upgrade locus-memory to read it"

_FRAME = 5  # the version byte and four bytes of checksum

ForkPoint = tuple[str, str]
"""A thread, and the checkpoint of it that another thread was forked from."""


def moved(source: str, target: str, before: ForkPoint | None, after: ForkPoint | None) -> int:
    """Return the change of a seal, as a XOR, when its record is copied to another thread.

    Args:
        source: The thread it is copied from.
        target: The thread it is copied to.
        before: The fork point that it names.
        after: The fork point that the copy names.
    """
    return _crc_of(source) ^ _crc_of(target) ^ _crc_of(before) ^ _crc_of(after)


def optional_fields(stored: Any) -> dict[str, Any]:
    """Return the fields of a `RecordHead` that `optional` returned, by name.

    Raises:
        TypeError: It is something else.
        ValueError: It is something else.
    """
    if stored is None:
        return {}
    thread_id, checkpoint_id = stored
    return {"forked_from": (thread_id, checkpoint_id)}


def _dictionary(version: int) -> bytes:
    return BYTES_DICTIONARY if version == FRAMED_VERSION else DICTIONARY


def _crc_of(place: str | ForkPoint | None) -> int:
    """Return the CRC-32 of a thread or a fork point; 0: there is none."""
    return 0 if place is None else zlib.crc32(orjson.dumps(place))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordHead:
    """A record without its payload.

    Attributes:
        thread_id: The thread.
        checkpoint_id: The checkpoint's id, unique in the thread.
        revision: The id of the state itself, 63 random bits: a new save of the same checkpoint id
            gets a new one, a rewrite of the same state keeps it.
        base: The revision of the record that this delta is against; `None`: a full state.
        level: How far back the delta reaches; see `locus_memory.checkpoint.encoding.levels`.
        sequence: The storage's own order within the thread; 0 until stored.
        created_at: When it was saved, seconds since the epoch.
        metadata: The caller's metadata.
        size: Bytes of the state or the delta before compression.
        stored_size: Bytes of the payload.
        forked_from: The checkpoint of another thread that a fork copied this one from. If that
            copy was removed, the nearest record that stays names the source.
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
    forked_from: ForkPoint | None = None

    @classmethod
    def unsaved(cls, thread_id: str, checkpoint_id: str, **fields: Any) -> Self:
        """Return the head of a full state that is neither drafted nor stored yet."""
        return cls(
            thread_id=thread_id,
            checkpoint_id=checkpoint_id,
            revision=0,
            base=None,
            level=0,
            sequence=0,
            size=0,
            stored_size=0,
            **fields,
        )

    def info(self) -> CheckpointInfo:
        """Return the information for the caller of the checkpointer, who may change it."""
        return CheckpointInfo(
            thread_id=self.thread_id,
            checkpoint_id=self.checkpoint_id,
            sequence=self.sequence,
            created_at=timestamp(self.created_at),
            metadata=own_copy(self.metadata),
            is_full=self.base is None,
            size=self.size,
            stored_size=self.stored_size,
            revision=self.revision,
            forked_from=self.forked_from,
        )

    def optional(self) -> Any:
        """Return the fields that most records have not, as JSON that every storage keeps whole.

        A new field of this kind changes no storage. `None`: the record has none of them.
        """
        return self.forked_from

    def seal(self) -> int:
        """Return the checksum of the head and its thread, which a storage keeps beside it.

        It does not cover the fields that the storage sets: the sequence and the stored size.
        """
        return self._seal_of(FORMAT_VERSION)

    def _seal_of(self, version: int) -> int:
        place = _crc_of(self.thread_id) ^ _crc_of(self.forked_from)
        return self._crc(self.size, version) ^ place

    def _crc(self, size: int, version: int) -> int:
        content = (
            version,
            self.checkpoint_id,
            self.revision,
            self.base,
            self.level,
            # A database may return an integer as a float.
            self.created_at + 0.0,
            self.metadata,
            size,
        )
        return zlib.crc32(orjson.dumps(content, option=orjson.OPT_SORT_KEYS))

    def verified(self, seal: object) -> Self:
        """Return this head if `seal` is the one it was written with.

        Raises:
            CheckpointCorruptError: The seal differs, a field has the wrong type, or a newer version
                wrote it.
        """
        reason = "its head is damaged"
        with suppress(TypeError, ValueError, OverflowError):
            if RecordHead.seal(self) == seal or self._sealed_before(seal):
                return self
            if any(self._seal_of(version) == seal for version in _LATER):
                reason = _NEWER
        raise self.corrupt(reason)

    def _sealed_before(self, seal: object) -> bool:
        """Whether it is the seal of a record written before seals covered the thread."""
        return self._crc(self.size, _WITHOUT_THREAD) == seal

    def checksum(self, body: bytes, size: int, version: int = FORMAT_VERSION) -> int:
        """Return the CRC-32 of the head, with this size, and the compressed body."""
        return zlib.crc32(body, self._crc(size, version))

    def corrupt(self, reason: str) -> CheckpointCorruptError:
        """Return the error that names this record."""
        return CheckpointCorruptError(self.thread_id, self.checkpoint_id, reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(RecordHead):
    """A record with its payload."""

    payload: bytes

    @override
    def seal(self) -> int:
        """Return the checksum of the head, in the version of the payload.

        So a database that copies a thread sees in the payload whether a seal covers the thread.
        """
        if self.payload[:1] == bytes((_WITHOUT_THREAD,)):
            return self._crc(self.size, _WITHOUT_THREAD)
        return RecordHead.seal(self)

    @classmethod
    def pack(
        cls, document: bytes, head: RecordHead, compression_level: int, *, kind: bytes = b""
    ) -> Self:
        """Return the record of a document, compressed and checksummed.

        Args:
            document: A state, or a delta if `head.base` is set, as `frames.dumps` returns it.
            head: The rest of the record; its sizes are ignored.
            compression_level: The level of zlib, from 0 to 9.
            kind: The kind of the state; see `locus_memory.checkpoint.states`.
        """
        # The window is no larger than the document: zlib clears its memory first, which takes
        # longer than the compression of a small delta.
        version = FRAMED_VERSION if is_frame(document) else FORMAT_VERSION
        dictionary = _dictionary(version)
        window = min((len(dictionary) + len(document)).bit_length(), zlib.MAX_WBITS)
        stream = zlib.compressobj(compression_level, wbits=window, zdict=dictionary)
        body = stream.compress(document) + stream.flush() + kind
        checksum = head.checksum(body, len(document), version).to_bytes(4, "big")
        fields: dict[str, Any] = {name: getattr(head, name) for name in RecordHead.__slots__}
        fields |= {"size": len(document), "stored_size": _FRAME + len(body)}
        return cls(**fields, payload=bytes((version,)) + checksum + body)

    def unpack(self) -> tuple[Any, bytes]:
        """Return the document, a whole state or the delta on `base`, and its kind.

        Raises:
            CheckpointCorruptError: The record is truncated, altered, moved or too new.
            EncryptionError: The record is encrypted.
        """
        version = self.payload[0] if len(self.payload) >= _FRAME else 0
        if version == ENCRYPTED_VERSION:
            raise EncryptionError(
                f"checkpoint {quote(self.checkpoint_id)} of thread {quote(self.thread_id)} is "
                "encrypted: open it with its keys"
            )
        body, given = self.payload[_FRAME:], int.from_bytes(self.payload[1:_FRAME], "big")
        genuine = given == self.checksum(body, self.size, version)
        if version not in (_WITHOUT_THREAD, FORMAT_VERSION, FRAMED_VERSION):
            is_newer = genuine and version in _LATER
            raise self.corrupt(_NEWER if is_newer else "unknown record format")
        if not genuine:
            raise self.corrupt("the checksum does not match")
        stream = zlib.decompressobj(zdict=_dictionary(version))
        try:
            return loads(stream.decompress(body)), stream.unused_data
        except (zlib.error, ValueError) as error:
            raise self.corrupt(str(error)) from error
