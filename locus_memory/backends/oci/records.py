"""A thread as the content of objects; pure.

The newest state of a thread is one object: JSON of the heads of the last checkpoints, then the
payloads that are inline, then a CRC-32 of all. An index is an object of the same form with the
heads of the older checkpoints, and a pack is payloads one after another. Both never change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Final, NamedTuple, Self
from zlib import crc32

import orjson
from typing_extensions import override

from locus_memory.backends.oci.schema import FORMAT
from locus_memory.backends.record_lists.rows import COLUMNS, RecordList, Row
from locus_memory.backends.record_rows import damage
from locus_memory.errors import CheckpointCorruptError

__all__ = [
    "Index",
    "State",
    "decode_index",
    "decode_state",
    "encode_index",
    "encode_state",
    "pack_of",
    "payload_of",
]

_DAMAGED: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError)
_CHECKSUM: Final = 4


def pack_of(row: Row | None) -> str | None:
    """Return the name of the object with the payload of a row; `None`: it is inline."""
    return None if row is None or row.place is None else row.place[0]


def payload_of(row: Row, pack: bytes) -> bytes | None:
    """Return the payload of a row, inline or from the content of its pack, if it is whole."""
    if row.place is None:
        return row.payload
    start = row.place[1]
    payload = pack[start : start + row.stored_size]
    return payload if len(payload) == row.stored_size else None


class Index(NamedTuple):
    """The older checkpoints of a thread.

    Attributes:
        name: The name of the object.
        rows: The checkpoints, oldest first; none has its payload inline.
    """

    name: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class State(RecordList):
    """A thread at one moment.

    The place of a payload is the name of its pack and its offset there; `None`: it is inline.

    Attributes:
        tail: The last checkpoints, oldest first.
        index: The older ones, or `None`.
        life: The mark of the write that created the thread.
        garbage: The names of objects that nothing refers to any more.
    """

    tail: tuple[Row, ...] = ()
    index: Index | None = None
    life: str = ""
    garbage: tuple[str, ...] = ()

    @property
    @override
    def rows(self) -> list[Row]:
        older = () if self.index is None else self.index.rows
        return sorted((*older, *self.tail), key=attrgetter("sequence"))

    @override
    def appended(self, row: Row) -> Self:
        return replace(self, tail=(*self.tail, row), following=row.sequence + 1)

    @override
    def rewritten(self, rows: Sequence[Row]) -> Self:
        index, older = self.index, set[Any]()
        if index is not None:
            older = {(row.revision, row.place) for row in index.rows}
        if not older <= {(row.revision, row.place) for row in rows}:
            # It is dissolved into the tail.
            index, older = None, set[Any]()
        tail = tuple(row for row in rows if (row.revision, row.place) not in older)
        last = max((row.sequence for row in rows), default=0)
        return replace(self, tail=tail, index=index, following=max(self.following, last + 1))

    def objects(self) -> set[str]:
        """Return the names of all objects of the thread but the newest state's."""
        named = {pack for row in self.rows if (pack := pack_of(row)) is not None}
        index = set() if self.index is None else {self.index.name}
        return named | index | set(self.garbage)

    @property
    def weight(self) -> int:
        """An estimate of its size in memory, in bytes."""
        inline = sum(len(row.payload or b"") for row in self.tail)
        return 1000 * (1 + len(self.rows)) + inline


def _listed(rows: Iterable[Row]) -> dict[str, Any]:
    """Return the members of a document for rows, and for the names of their packs."""
    found: list[list[Any]] = []
    packs: dict[str, int] = {}
    for row in rows:
        pack, offset = row.place or (None, 0)
        number = None if pack is None else packs.setdefault(pack, len(packs))
        found.append([*row[:COLUMNS], number, offset])
    return {"e": found, "p": list(packs)}


def encode_state(state: State) -> bytes:
    """Return the content of the object of a thread's newest state."""
    document = {
        "f": FORMAT,
        "t": state.thread_id,
        "q": state.following - 1,
        "i": None if state.index is None else state.index.name,
        "l": state.life,
        "o": state.marks,
        "g": state.garbage,
        **_listed(state.tail),
    }
    inline = b"".join(row.payload or b"" for row in state.tail)
    return _sealed(orjson.dumps(document) + b"\n" + inline)


def encode_index(thread_id: str, older: Iterable[Row]) -> bytes:
    """Return the content of the object of an index."""
    document = {"f": FORMAT, "t": thread_id, **_listed(older)}
    return _sealed(orjson.dumps(document) + b"\n")


def decode_state(
    thread_id: str | None, body: bytes, tag: str | None = None, index: Index | None = None
) -> tuple[State, str | None]:
    """Return the state of a thread, and the name of its index if it is another than `index`.

    Args:
        thread_id: The thread that it must be; `None`: any.
        body: The content of the object.
        tag: Its entity tag.
        index: An index that is known.

    Raises:
        CheckpointCorruptError: The content is damaged, of a newer format or of another thread.
    """
    document, inline = _opened(thread_id, body)
    try:
        name: str | None = document["i"]
        state = State(
            thread_id=document["t"],
            tag=tag,
            following=document["q"] + 1,
            tail=tuple(_rows(document, inline)),
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
        return Index(name, tuple(_rows(document, b"")))
    except _DAMAGED as error:
        raise damage(thread_id, None) from error


def _rows(document: dict[str, Any], inline: bytes) -> Iterable[Row]:
    start = 0
    for *columns, pack, offset in document["e"]:
        row = Row(*columns)
        if pack is None:
            end = start + row.stored_size
            yield row._replace(payload=inline[start:end])
            start = end
        else:
            yield row._replace(place=(document["p"][pack], offset))


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
