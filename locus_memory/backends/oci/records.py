"""A thread as the content of objects; pure.

The newest state of a thread is one object: JSON of the heads of the last checkpoints, then the
payloads that are inline, then a CRC-32 of all. An index is an object of the same form with the
heads of the older checkpoints, and a pack is payloads one after another. Both never change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final
from zlib import crc32

import orjson

from locus_memory.backends.oci.schema import FORMAT
from locus_memory.backends.record_rows import damage, fork_text, head_fields
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.errors import CheckpointCorruptError
from locus_memory.store.encoding import encode_text

__all__ = [
    "Entry",
    "Index",
    "State",
    "decode_index",
    "decode_state",
    "encode_index",
    "encode_state",
]

_DAMAGED: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError)
_CHECKSUM: Final = 4


@dataclass(frozen=True, slots=True)
class Entry:
    """A checkpoint of a thread.

    Attributes:
        head: Its head.
        seal: The seal of the head.
        pack: The name of the object with its payload; `None`: the payload is inline.
        offset: The place of the payload in the pack.
        payload: The inline payload.
    """

    head: RecordHead
    seal: int
    pack: str | None = None
    offset: int = 0
    payload: bytes | None = field(default=None, repr=False)

    @classmethod
    def of(cls, record: Record, sequence: int) -> Entry:
        """Return the entry of a record, with its payload inline."""
        head = RecordHead(
            thread_id=record.thread_id,
            checkpoint_id=record.checkpoint_id,
            revision=record.revision,
            base=record.base,
            level=record.level,
            sequence=sequence,
            created_at=record.created_at,
            metadata=record.metadata,
            size=record.size,
            stored_size=len(record.payload),
            forked_from=record.forked_from,
        )
        return cls(head, record.seal(), payload=record.payload)

    def verified(self) -> RecordHead:
        """Return the head.

        Raises:
            CheckpointCorruptError: It is damaged.
        """
        return self.head.verified(self.seal)

    def record(self, packs: Mapping[str, bytes]) -> Record:
        """Return the record; `packs` has the content of its pack, by name.

        Raises:
            CheckpointCorruptError: The head is damaged, or the payload is missing.
        """
        head = self.verified()
        payload = self.payload
        if payload is None:
            content = packs.get(self.pack or "", b"")
            payload = content[self.offset : self.offset + head.stored_size]
        if len(payload) != head.stored_size or not payload:
            raise head.corrupt("its payload is missing")
        fields = {name: getattr(head, name) for name in RecordHead.__slots__}
        return Record(**fields, payload=payload)


@dataclass(frozen=True)
class Index:
    """The older checkpoints of a thread.

    Attributes:
        name: The name of the object.
        entries: The checkpoints by revision, oldest first; none has its payload inline.
    """

    name: str
    entries: Mapping[int, Entry]

    @cached_property
    def names(self) -> Mapping[str, int]:
        """The revisions by checkpoint id."""
        return {entry.head.checkpoint_id: revision for revision, entry in self.entries.items()}

    @cached_property
    def newest(self) -> Entry | None:
        """The last checkpoint."""
        return max(self.entries.values(), key=_sequence, default=None)


@dataclass(frozen=True)
class State:
    """A thread at one moment.

    Attributes:
        thread_id: The thread.
        sequence: The highest sequence that was ever given.
        tail: The last checkpoints, oldest first.
        index: The older ones, or `None`.
        life: The mark of the write that created the thread.
        marks: The marks of the last writes.
        garbage: The names of objects that nothing refers to any more.
    """

    thread_id: str
    sequence: int = 0
    tail: tuple[Entry, ...] = ()
    index: Index | None = None
    life: str = ""
    marks: tuple[str, ...] = ()
    garbage: tuple[str, ...] = ()

    def find(self, checkpoint_id: str | None) -> Entry | None:
        """Return a checkpoint by its id, the newest by default."""
        if checkpoint_id is None:
            older = None if self.index is None else self.index.newest
            return max((*self.tail, *filter(None, [older])), key=_sequence, default=None)
        for entry in self.tail:
            if entry.head.checkpoint_id == checkpoint_id:
                return entry
        revision = None if self.index is None else self.index.names.get(checkpoint_id)
        return None if revision is None else self.of_revision(revision)

    def of_revision(self, revision: int) -> Entry | None:
        """Return a checkpoint by its revision."""
        for entry in self.tail:
            if entry.head.revision == revision:
                return entry
        return None if self.index is None else self.index.entries.get(revision)

    def entries(self) -> list[Entry]:
        """Return all checkpoints, oldest first."""
        older = () if self.index is None else self.index.entries.values()
        return sorted((*older, *self.tail), key=_sequence)

    def objects(self) -> set[str]:
        """Return the names of all objects of the thread but the newest state's."""
        named = {entry.pack for entry in self.entries() if entry.pack is not None}
        index = set() if self.index is None else {self.index.name}
        return named | index | set(self.garbage)

    @property
    def weight(self) -> int:
        """An estimate of its size in memory, in bytes."""
        older = 0 if self.index is None else len(self.index.entries)
        inline = sum(len(entry.payload or b"") for entry in self.tail)
        return 1000 * (1 + older + len(self.tail)) + inline


def _sequence(entry: Entry) -> int:
    return entry.head.sequence


def _rows(entries: Iterable[Entry], packs: list[str]) -> list[list[Any]]:
    """Return the JSON of entries; the names of their packs are added to a list."""
    places = {name: place for place, name in enumerate(packs)}
    rows: list[list[Any]] = []
    for entry in entries:
        pack = None
        if entry.pack is not None:
            pack = places.setdefault(entry.pack, len(places))
            if pack == len(packs):
                packs.append(entry.pack)
        head = entry.head
        rows.append(
            [
                encode_text(head.checkpoint_id),
                head.revision,
                head.base,
                head.level,
                head.sequence,
                head.created_at,
                head.metadata,
                head.size,
                head.stored_size,
                entry.seal,
                fork_text(head.forked_from),
                pack,
                entry.offset,
            ]
        )
    return rows


def encode_state(state: State) -> bytes:
    """Return the content of the object of a thread's newest state."""
    packs: list[str] = []
    document = {
        "f": FORMAT,
        "t": state.thread_id,
        "q": state.sequence,
        "i": None if state.index is None else state.index.name,
        "l": state.life,
        "o": state.marks,
        "g": state.garbage,
        "e": _rows(state.tail, packs),
        "p": packs,
    }
    inline = b"".join(entry.payload or b"" for entry in state.tail)
    return _sealed(orjson.dumps(document) + b"\n" + inline)


def encode_index(thread_id: str, entries: Iterable[Entry]) -> bytes:
    """Return the content of the object of an index."""
    packs: list[str] = []
    rows = _rows(entries, packs)
    document = {"f": FORMAT, "t": thread_id, "e": rows, "p": packs}
    return _sealed(orjson.dumps(document) + b"\n")


def decode_state(
    thread_id: str | None, body: bytes, index: Index | None = None
) -> tuple[State, str | None]:
    """Return the state of a thread, and the name of its index if it is another than `index`.

    Args:
        thread_id: The thread that it must be; `None`: any.
        body: The content of the object.
        index: An index that is known.

    Raises:
        CheckpointCorruptError: The content is damaged, of a newer format or of another thread.
    """
    document, inline = _opened(thread_id, body)
    try:
        name: str | None = document["i"]
        state = State(
            thread_id=document["t"],
            sequence=document["q"],
            tail=tuple(_entries(document, inline)),
            index=index if index is not None and index.name == name else None,
            life=document["l"],
            marks=tuple(document["o"]),
            garbage=tuple(document["g"]),
        )
    except _DAMAGED as error:
        raise damage(thread_id or "", None) from error
    return state, None if name is None or state.index is not None else name


def decode_index(thread_id: str, name: str, body: bytes) -> Index:
    """Return an index.

    Raises:
        CheckpointCorruptError: The content is damaged, of a newer format or of another thread.
    """
    document, _ = _opened(thread_id, body)
    try:
        return Index(name, {entry.head.revision: entry for entry in _entries(document, b"")})
    except _DAMAGED as error:
        raise damage(thread_id, None) from error


def _entries(document: dict[str, Any], inline: bytes) -> Iterable[Entry]:
    place = 0
    for row in document["e"]:
        fields = head_fields(document["t"], row, read_text=_same, read_metadata=_same)
        head = RecordHead(**fields)
        if row[11] is None:
            payload = inline[place : place + head.stored_size]
            place += head.stored_size
            yield Entry(head, row[9], payload=payload)
        else:
            yield Entry(head, row[9], document["p"][row[11]], row[12])


def _same(value: Any) -> Any:
    return value


def _sealed(content: bytes) -> bytes:
    return content + crc32(content).to_bytes(_CHECKSUM, "big")


def _opened(thread_id: str | None, body: bytes) -> tuple[dict[str, Any], bytes]:
    content, checksum = body[:-_CHECKSUM], body[-_CHECKSUM:]
    name = thread_id or ""
    if crc32(content).to_bytes(_CHECKSUM, "big") != checksum:
        raise damage(name, None)
    try:
        line, _, inline = content.partition(b"\n")
        document: dict[str, Any] = orjson.loads(line)
        is_newer, found = document["f"] > FORMAT, document["t"]
    except _DAMAGED as error:
        raise damage(name, None) from error
    if is_newer:
        raise CheckpointCorruptError(name, None, "a newer version of the library wrote it")
    if thread_id not in (None, found):
        raise CheckpointCorruptError(name, None, "another thread is in its place")
    return document, inline


def without(state: State, removed: Iterable[int]) -> State:
    """Return a state without some revisions; an index that had one is dissolved into the tail."""
    gone = set(removed)
    tail = tuple(entry for entry in state.tail if entry.head.revision not in gone)
    index = state.index
    if index is not None and gone & index.entries.keys():
        older = (entry for revision, entry in index.entries.items() if revision not in gone)
        tail = tuple(sorted((*older, *tail), key=_sequence))
        index = None
    return replace(state, tail=tail, index=index)
