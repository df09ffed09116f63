"""The results of operations, and their failures: frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from locus_memory.resources.operations import Level

__all__ = [
    "FailureKind",
    "MemoryCommitResult",
    "MemoryDeleteResult",
    "MemoryEntry",
    "MemoryExecutionFailure",
    "MemoryFindResult",
    "MemoryHistoryResult",
    "MemoryHit",
    "MemoryListResult",
    "MemoryMoveResult",
    "MemoryReadResult",
    "MemoryResourceResult",
    "MemoryResult",
    "MemoryVersion",
    "MemoryWriteResult",
]

FailureKind = Literal[
    "not_found",
    "unsupported",
    "transport",
    "extraction_failed",
    "store_closed",
    "unauthorized",
    "timeout",
    "invalid_uri",
    "conflict",
    "internal",
]
"""The kinds of failures; there are no others."""


@dataclass(frozen=True, slots=True)
class MemoryResult:
    """The base class of all results."""


@dataclass(frozen=True, slots=True)
class MemoryWriteResult(MemoryResult):
    """What was written.

    Attributes:
        uri: The entry.
        bytes_written: The size of the content of the operation, in UTF-8.
    """

    uri: str
    bytes_written: int


@dataclass(frozen=True, slots=True)
class MemoryReadResult(MemoryResult):
    """What was read.

    Attributes:
        uri: The entry or folder.
        data: A text, or bytes if the encoding was `None`.
        level: The level.
        metadata: The texts that were written with the entry; for a summary also `made_by`, which
            is `rules` or `model`.
        version: The version of the entry; `None` for a folder and for a memory.
    """

    uri: str
    data: str | bytes = field(repr=False)
    level: Level = "detail"
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    version: int | None = None


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """A child in a listing.

    Attributes:
        name: Its last segment, decoded.
        uri: Its URI; that of a folder ends in a slash.
        is_dir: Whether it is a folder.
        size: The bytes of its detail in UTF-8; `None` for a folder.
    """

    name: str
    uri: str
    is_dir: bool
    size: int | None = None


@dataclass(frozen=True, slots=True)
class MemoryListResult(MemoryResult):
    """A listing.

    Attributes:
        entries: The children, in order.
    """

    entries: tuple[MemoryEntry, ...]


@dataclass(frozen=True, slots=True)
class MemoryHit:
    """An entry that was found.

    Attributes:
        uri: The entry.
        score: From 0 to 1, comparable between queries and backends.
        snippet: At most 300 characters around the best passage, neutralised.
        level: The level of the best passage.
    """

    uri: str
    score: float
    snippet: str | None = None
    level: Level | None = None


@dataclass(frozen=True, slots=True)
class MemoryFindResult(MemoryResult):
    """What was found.

    Attributes:
        hits: One hit an entry, the best first.
    """

    hits: tuple[MemoryHit, ...]


@dataclass(frozen=True, slots=True)
class MemoryResourceResult(MemoryResult):
    """What was ingested; all numbers count entries but `chunks`.

    Attributes:
        uri: The folder.
        added: Files that were not there.
        updated: Files that were there with another text.
        unchanged: Files that were there.
        skipped: Files that cannot be read, with the reason.
        chunks: The chunks of the added and updated entries.
    """

    uri: str
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    skipped: tuple[tuple[str, str], ...] = ()
    chunks: int = 0


@dataclass(frozen=True, slots=True)
class MemoryCommitResult(MemoryResult):
    """What a commit did.

    Attributes:
        task_id: The extraction in the background; `None` if the commit waited for it.
        archived_uri: The archived messages; `None` if there were no new ones.
        extracted_count: How many memories were written; -1 if the commit did not wait.
    """

    task_id: str | None
    archived_uri: str | None
    extracted_count: int


@dataclass(frozen=True, slots=True)
class MemoryDeleteResult(MemoryResult):
    """What was deleted.

    Attributes:
        uri: The entry or folder.
        deleted: How many entries were deleted.
    """

    uri: str
    deleted: int


@dataclass(frozen=True, slots=True)
class MemoryMoveResult(MemoryResult):
    """What was moved.

    Attributes:
        uri: The new URI.
        moved: How many entries were moved.
    """

    uri: str
    moved: int


@dataclass(frozen=True, slots=True)
class MemoryVersion:
    """A version of an entry.

    Attributes:
        version: Its number, from 1.
        size: The bytes of its detail in UTF-8.
        written_at: The moment of its write, UTC.
    """

    version: int
    size: int
    written_at: datetime


@dataclass(frozen=True, slots=True)
class MemoryHistoryResult(MemoryResult):
    """The versions of an entry.

    Attributes:
        uri: The entry.
        versions: The newest first; the first one is current.
    """

    uri: str
    versions: tuple[MemoryVersion, ...]


@dataclass(frozen=True, slots=True)
class MemoryExecutionFailure:
    """What went wrong in the world; a backend returns it in place of a result.

    Attributes:
        kind: The kind.
        message: One sentence, without stored text and without secrets.
        detail: More, such as the name of an error's class.
        cause: The error behind it, if there is one.
    """

    kind: FailureKind
    message: str
    detail: str | None = None
    cause: BaseException | None = field(default=None, repr=False, compare=False)
