"""The names of threads and records as files, and the format of a record's file.

A thread is a folder, and a record is a file in it, named
`<sequence>-<revision>-<digest of the checkpoint id>.ckpt`, so a listing of the folder shows the
order of the checkpoints, the ends of their chain links and the place of each. A file is one line
of JSON (the head) and the payload.

Thread names are encoded injectively, also for file systems that ignore case: `a-z`, `0-9`,
`_` and `-` are kept, and any other byte of the UTF-8 is `%xx`; a name that would be
too long is `~` and its SHA-256.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import orjson

from locus_memory.backends.file.folders import open_file
from locus_memory.checkpoint.record import Record, optional_fields
from locus_memory.errors import CheckpointCorruptError

__all__ = [
    "Entry",
    "decode_record",
    "digest",
    "encode_record",
    "folder_name",
    "hashed_name",
    "thread_name",
]

_PLAIN: Final = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_-")
_LONGEST: Final = 200
_ENTRY: Final = re.compile(r"([0-9]{16})-([0-9a-f]{16})-([0-9a-f]{32})\.ckpt")
_HASHED: Final = re.compile("~([0-9a-f]{64})")
_HEAD: Final = (
    "thread_id",
    "checkpoint_id",
    "revision",
    "base",
    "level",
    "created_at",
    "metadata",
    "size",
)


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """The parts of a record's file name; entries sort by sequence.

    Attributes:
        aside: The file that a journal renames to this name.
    """

    sequence: int
    revision: int
    digest: str
    aside: str | None = field(default=None, compare=False)

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """Return the entry of a file name, or `None` if it is not a record's."""
        found = _ENTRY.fullmatch(name)
        return None if found is None else cls(int(found[1]), int(found[2], 16), found[3])

    @property
    def name(self) -> str:
        """The file name."""
        return f"{self.sequence:016d}-{self.revision:016x}-{self.digest}.ckpt"


def digest(checkpoint_id: str) -> str:
    """Return the digest of a checkpoint id in a file name."""
    return hashlib.sha256(checkpoint_id.encode()).hexdigest()[:32]


def folder_name(thread_id: str) -> str:
    """Return the name of a thread's folder."""
    encoded = "".join(
        chr(byte) if byte in _PLAIN else f"%{byte:02x}" for byte in thread_id.encode()
    )
    if len(encoded) > _LONGEST:
        return "~" + hashlib.sha256(thread_id.encode()).hexdigest()
    return f"t-{encoded}"


def thread_name(folder: str) -> str | None:
    """Return the thread of a folder's name; `None`: the name does not contain it."""
    if not folder.startswith("t-"):
        return None
    raw = re.sub("%([0-9a-f]{2})", lambda found: chr(int(found[1], 16)), folder[2:])
    try:
        name = raw.encode("latin-1").decode()
    except UnicodeError:
        return None
    return name if folder_name(name) == folder else None


def hashed_name(folder: str) -> str | None:
    """Return the SHA-256 in a folder's name; `None`: it has none."""
    found = _HASHED.fullmatch(folder)
    return None if found is None else found[1]


def encode_record(record: Record) -> bytes:
    """Return the content of a record's file."""
    head = {name: getattr(record, name) for name in _HEAD}
    if (optional := record.optional()) is not None:
        head["forked_from"] = optional
    return orjson.dumps({**head, "seal": record.seal()}) + b"\n" + record.payload


def decode_record(
    path: Path, entry: Entry, thread_id: str | None, *, whole: bool = False
) -> Record:
    """Return the record of a file, with an empty payload unless `whole` is true.

    Args:
        path: The file.
        entry: The parts of its name.
        thread_id: The thread to which it must belong; `None`: any.
        whole: Whether to read the payload.

    Raises:
        CheckpointCorruptError: The file is damaged.
        OSError: It cannot be read.
    """
    with open_file(path) as file:
        line = file.readline()
        payload = file.read() if whole else b""
        stored = file.seek(0, 2) - len(line)
    try:
        head: Any = orjson.loads(line)
        fields = {name: head[name] for name in _HEAD}
        fields |= optional_fields(head.get("forked_from"))
        seal = head["seal"]
    except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise _damaged(path, thread_id) from error
    if not _genuine(fields, entry, path.parent.name, thread_id):
        raise _damaged(path, thread_id)
    record = Record(**fields, sequence=entry.sequence, stored_size=stored, payload=payload)
    return record.verified(seal)


def _genuine(head: dict[str, Any], entry: Entry, folder: str, thread_id: str | None) -> bool:
    """Return whether a head belongs to the file from which it was read."""
    thread, name = head["thread_id"], head["checkpoint_id"]
    return (
        isinstance(thread, str)
        and isinstance(name, str)
        and (thread == thread_id if thread_id else folder_name(thread) == folder)
        and head["revision"] == entry.revision
        and digest(name) == entry.digest
    )


def _damaged(path: Path, thread_id: str | None) -> CheckpointCorruptError:
    thread = path.parent.name if thread_id is None else thread_id
    return CheckpointCorruptError(thread, None, f"{path.name} is damaged or was moved")
