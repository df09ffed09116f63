"""The operations on a tree: frozen values, checked when they are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError
from locus_memory.resources.uri import MemoryURI
from locus_memory.store.item import check_limit, check_text, need_text

__all__ = [
    "LEVELS",
    "Level",
    "MemoryOp",
    "MemoryOpCommit",
    "MemoryOpDelete",
    "MemoryOpFind",
    "MemoryOpHistory",
    "MemoryOpList",
    "MemoryOpMove",
    "MemoryOpRead",
    "MemoryOpResource",
    "MemoryOpSearch",
    "MemoryOpTree",
    "MemoryOpWrite",
    "WriteMode",
]

Level = Literal["abstract", "overview", "detail"]
"""How much of an entry to read: at most 100 tokens, at most 1,000 tokens, or all of it."""

WriteMode = Literal["replace", "append", "create"]

LEVELS: Final[tuple[Level, ...]] = get_args(Level)

_MODES: Final[tuple[WriteMode, ...]] = get_args(WriteMode)


class MemoryOp:
    """The base class of all operations; a backend tells by their classes which it supports.

    A `uri` is a text or a `MemoryURI`; a text is parsed by the backend, so a wrong one is a
    failure and no error. All other fields are checked when the operation is made.
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class MemoryOpWrite(MemoryOp):
    """Write the text of an entry.

    Attributes:
        uri: The entry; missing folders come into being.
        content: The text.
        mode: `replace` replaces the text, `append` adds it after a line break, and `create`
            fails if the entry exists.
        wait: Whether to return only once the levels and vectors are made.
        timeout_seconds: The most seconds to wait; `None`: any time.
        metadata: Texts by name; `None`: those that the entry has.

    Raises:
        InvalidArgumentError: A field is invalid.
    """

    uri: str | MemoryURI
    content: str = field(repr=False)
    mode: WriteMode = "replace"
    wait: bool = False
    timeout_seconds: float | None = None
    metadata: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        need_text(self.content, "content")
        _check_choice(self.mode, "mode", _MODES)
        _check_seconds(self.timeout_seconds)
        if not isinstance(self.metadata, Mapping | None):
            raise InvalidArgumentError("metadata are texts by name")
        for name, text in (self.metadata or {}).items():
            need_text(name, "a name of metadata")
            need_text(text, name)


@dataclass(frozen=True, slots=True)
class MemoryOpRead(MemoryOp):
    """Read one entry at a level, or the summary of a folder.

    Attributes:
        uri: The entry, or a folder for its `abstract` or `overview`.
        level: How much to read.
        encoding: `"utf-8"`: a text; `None`: its bytes in UTF-8.
        version: A past version of the detail, as `history` numbers it; `None`: the current one.

    Raises:
        InvalidArgumentError: A field is invalid.
    """

    uri: str | MemoryURI
    level: Level = "detail"
    encoding: str | None = "utf-8"
    version: int | None = None

    def __post_init__(self) -> None:
        _check_choice(self.level, "level", LEVELS)
        if self.encoding is not None and str(self.encoding).lower() not in ("utf-8", "utf8"):
            raise InvalidArgumentError(f"encoding is 'utf-8' or None, not {quote(self.encoding)}")
        if self.version is not None:
            check_limit(self.version, "version")
            if self.level != "detail":
                raise InvalidArgumentError("only the detail of a past version is kept")


@dataclass(frozen=True, slots=True)
class MemoryOpList(MemoryOp):
    """List the direct children of a folder: folders first, then by name in code point order.

    Attributes:
        uri: The folder.
        limit: At most this many; `None`: all.
        after: The cursor: the URI of the last entry of the page before.

    Raises:
        InvalidArgumentError: A field is invalid.
    """

    uri: str | MemoryURI
    limit: int | None = field(default=None, kw_only=True)
    after: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _check_page(self.limit, self.after)


@dataclass(frozen=True, slots=True)
class MemoryOpTree(MemoryOp):
    """List what is below a folder: each folder is followed by its children.

    Attributes:
        uri: The folder.
        depth: 1 for the direct children, 2 for theirs as well, and so on.
        limit: At most this many; `None`: all.
        after: The cursor: the URI of the last entry of the page before.

    Raises:
        InvalidArgumentError: A field is invalid.
    """

    uri: str | MemoryURI
    depth: int = 2
    limit: int | None = field(default=None, kw_only=True)
    after: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if check_limit(self.depth, "depth") < 1:
            raise InvalidArgumentError("depth is at least 1")
        _check_page(self.limit, self.after)


@dataclass(frozen=True, slots=True)
class MemoryOpFind(MemoryOp):
    """Find entries by their words, and by meaning if the tree has an embedder.

    Attributes:
        query: A question, or any words.
        target_uri: Only entries here and below; `None`: anywhere.
        top_k: At most this many.
        without: No entry here and below; `None`: all count.

    Raises:
        InvalidArgumentError: A field is invalid.
    """

    query: str
    target_uri: str | MemoryURI | None = None
    top_k: int = 8
    without: str | MemoryURI | None = None

    def __post_init__(self) -> None:
        _check_query(self.query, self.top_k)


@dataclass(frozen=True, slots=True)
class MemoryOpSearch(MemoryOp):
    """Find entries, with regard to what a session is about.

    Attributes:
        query: A question, or any words.
        session_id: A session that was committed before; its last messages steer the ranking.
        target_uri: Only entries here and below; `None`: anywhere.
        top_k: At most this many.

    Raises:
        InvalidArgumentError: A field is invalid.
    """

    query: str
    session_id: str | None = None
    target_uri: str | MemoryURI | None = None
    top_k: int = 8

    def __post_init__(self) -> None:
        _check_query(self.query, self.top_k)


@dataclass(frozen=True, slots=True)
class MemoryOpResource(MemoryOp):
    """Ingest a file, a folder or a page of the web below `memory://resources/`, one entry a file.

    Attributes:
        source: A path, or a URL of http or https; see `FetchOptions`.
        target_uri: The folder; `None`: `memory://resources/` and the name of the source, or the
            host, with an unusual port, and the folders of the URL.
        reason: Why it is read, for the model that makes the levels; at most 500 characters.
        instruction: What to look at, as `reason`.
        wait: Whether to return only once everything is searchable.
        timeout_seconds: The most seconds to wait; `None`: any time.

    Raises:
        InvalidArgumentError: A field is invalid.
    """

    source: str
    target_uri: str | MemoryURI | None = None
    reason: str = ""
    instruction: str = ""
    wait: bool = True
    timeout_seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("source", "reason", "instruction"):
            need_text(getattr(self, name), name)
        if not self.source:
            raise InvalidArgumentError("source is a path, and it is empty")
        _check_seconds(self.timeout_seconds)


@dataclass(frozen=True, slots=True)
class MemoryOpCommit(MemoryOp):
    """Archive a session, and take memories from it.

    Attributes:
        session_id: The session, such as the id of a thread.
        messages: `Message`s, or dicts with `role`, and `content` or `parts`; a commit of the same
            session takes those that are new.
        used_uris: The entries that helped; searches for this session rank them higher.
        wait: Whether to return only once the memories are extracted.
        timeout_seconds: The most seconds to wait; `None`: any time.

    Raises:
        InvalidArgumentError: A field is invalid.
    """

    session_id: str
    messages: Sequence[Any] = field(repr=False)
    used_uris: Sequence[str] = ()
    wait: bool = False
    timeout_seconds: float | None = None

    def __post_init__(self) -> None:
        if not check_text(self.session_id, "session_id"):
            raise InvalidArgumentError("session_id is a non-empty string")
        _check_seconds(self.timeout_seconds)


@dataclass(frozen=True, slots=True)
class MemoryOpDelete(MemoryOp):
    """Delete an entry with its history, or a folder with everything below it.

    Attributes:
        uri: The entry or folder.
        recursive: Whether a folder may be deleted; its entries go one after another.
    """

    uri: str | MemoryURI
    recursive: bool = False


@dataclass(frozen=True, slots=True)
class MemoryOpMove(MemoryOp):
    """Move an entry with its history, or a folder entry by entry.

    Attributes:
        uri: The entry or folder.
        target_uri: Its new URI, at which there is nothing yet.
    """

    uri: str | MemoryURI
    target_uri: str | MemoryURI


@dataclass(frozen=True, slots=True)
class MemoryOpHistory(MemoryOp):
    """List the versions of an entry that can be read: the current one and the last 10 before it.

    Attributes:
        uri: The entry.
    """

    uri: str | MemoryURI


def _check_choice(value: object, name: str, known: Sequence[str]) -> None:
    if value not in known:
        raise InvalidArgumentError(f"{name} is one of {', '.join(known)}, not {quote(value)}")


def _check_seconds(seconds: object) -> None:
    if seconds is None:
        return
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        raise InvalidArgumentError(
            f"timeout_seconds is a positive number or None, not {quote(seconds)}"
        )


def _check_page(limit: int | None, after: str | None) -> None:
    if limit is not None:
        check_limit(limit)
    check_text(after, "after")


def _check_query(query: object, top_k: int) -> None:
    need_text(query, "a query")
    check_limit(top_k, "top_k")
