"""A thread as documents: its own, its pages and the payloads of its records; pure.

The document of a thread is the only one that is ever changed, and it decides what belongs to the
thread. It has the newest rows itself, and the names of the pages that have the older ones. Payloads
and pages are written under new names, and never changed.

So a write is one bulk request, in this order: new payloads, a new page if the rows have become too
many, and last the document of the thread, on the condition that it is still the one that was read.
All of them are in one shard, which runs them in this order.

- Two writers who read the same document: the second one is refused, and reads it again.
- A crash in between leaves documents that no thread names. They belong to nothing, and no later
  write has their names.
- An answer that is lost: the document has the marks of its last writes, so that a write that is
  sent again is recognised.
- A reader who does not find a payload reads the document again: the record was removed meanwhile.

A read of a document by its id sees every acknowledged write, without a refresh.

A row is the head of a record, in JSON, with the name of the document that has the payload. No field
is indexed or read by the server: it returns the text that it was sent.
"""

from __future__ import annotations

from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from os import urandom
from typing import Any, Final, NamedTuple

import orjson

from locus_memory.backends.record_rows import fork_text, head_fields
from locus_memory.checkpoint.base import Unset
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.checkpoint.storage import StaleChainError, check_parent, check_replacement
from locus_memory.errors import CheckpointCorruptError
from locus_memory.store.encoding import decode_text, encode_text
from locus_memory.store.json_values import decode_json, encode_json

__all__ = [
    "LONGEST_KEY",
    "Change",
    "Page",
    "Row",
    "Thread",
    "digest_of",
    "document",
    "links_of",
    "new_token",
    "payload_of",
    "read_head",
    "read_page",
    "read_record",
    "read_thread",
    "removal",
    "removed",
    "row_of",
    "saved",
    "to_row",
]

_ROWS: Final = 32
"""The most rows in the document of a thread, and in a page."""

_BYTES: Final = 8 * 1024
"""The size from which rows move to a page, in bytes of JSON."""

_MARKS: Final = 8
"""How many writes a document remembers."""

LONGEST_KEY: Final = 8000
"""The most characters of a name that are indexed; the server takes 32,766 bytes."""


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


def _read_row(stored: Sequence[Any]) -> Row:
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


def payload_of(source: Any) -> bytes | None:
    """Return the payload of a document; `None` if it has none that can be read."""
    try:
        return b64decode(source["body"]["payload"], validate=True)
    except (KeyError, TypeError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class Page:
    """The rows of a page, oldest first, which never change."""

    token: str
    rows: tuple[Row, ...]
    names: frozenset[str]
    revisions: frozenset[int]

    @classmethod
    def of(cls, token: str, rows: Iterable[Row]) -> Page:
        """Return the page of some rows."""
        kept = tuple(rows)
        names = frozenset(row.checkpoint_id for row in kept)
        return cls(token, kept, names, frozenset(row.revision for row in kept))


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """The document of a thread, with those of its pages that were read.

    Attributes:
        thread_id: The thread.
        place: The sequence number and the primary term of the document, by which the server knows
            that it is unchanged; `None`: there is no document.
        following: The sequence of the next record.
        marks: The marks of its last writes.
        pages: The tokens of the pages with its older rows, oldest first, each with the number of
            its rows.
        rows: Its newest rows, oldest first.
        older: The pages that were read, by their tokens.
    """

    thread_id: str
    place: tuple[int, int] | None = None
    following: int = 1
    marks: tuple[str, ...] = ()
    pages: tuple[tuple[str, int], ...] = ()
    rows: tuple[Row, ...] = ()
    older: Mapping[str, Page] = field(default_factory=dict[str, Page])

    @property
    def is_empty(self) -> bool:
        """Whether it has no records."""
        return not self.rows and not self.pages

    @property
    def all_rows(self) -> list[Row]:
        """All rows, oldest first; all pages were read."""
        pages = (self.older[token].rows for token, _ in self.pages)
        return [*(row for rows in pages for row in rows), *self.rows]

    @property
    def newest(self) -> str | None:
        """The newest checkpoint; all pages were read."""
        rows = self.rows or (self.older[self.pages[-1][0]].rows if self.pages else ())
        return decode_text(rows[-1].checkpoint_id) if rows else None

    def missing(self) -> list[str]:
        """Return the tokens of the pages that were not read."""
        return [token for token, _ in self.pages if token not in self.older]

    def appended(self, row: Row) -> Thread:
        """Return the thread with one more row, and perhaps one more page."""
        pages, rows, older = self.pages, self.rows, self.older
        if len(rows) >= _ROWS or (rows and len(orjson.dumps(_plain(rows))) > _BYTES):
            token = new_token()
            older = {**older, token: Page.of(token, rows)}
            pages, rows = (*pages, (token, len(rows))), ()
        following = max(self.following, row.sequence + 1)
        return replace(self, pages=pages, rows=(*rows, row), older=older, following=following)

    def rewritten(self, rows: Iterable[Row]) -> Thread:
        """Return the thread with other rows."""
        thread = replace(self, pages=(), rows=(), older={})
        for row in rows:
            thread = thread.appended(row)
        return thread

    def line(self) -> bytes:
        """Return its document; one without records is in no list."""
        body = {
            "name": self.thread_id,
            "following": self.following,
            "marks": self.marks,
            "pages": self.pages,
            "rows": _plain(self.rows),
        }
        shown = {} if self.is_empty else {"thread": self.thread_id[:LONGEST_KEY]}
        return orjson.dumps({**shown, "body": body})


def read_thread(thread_id: str | None, found: Any) -> Thread:
    """Return the thread of the server's answer to a read of its document.

    Args:
        thread_id: The thread that it must be; `None`: any.
        found: The answer.

    Raises:
        CheckpointCorruptError: The document is damaged, or of another thread.
    """
    if not found["found"]:
        return Thread(thread_id=thread_id or "")
    try:
        body = found["_source"]["body"]
        thread = Thread(
            thread_id=body["name"],
            place=(found["_seq_no"], found["_primary_term"]),
            following=int(body["following"]),
            marks=tuple(body["marks"]),
            pages=tuple((str(token), int(count)) for token, count in body["pages"]),
            rows=tuple(_read_row(row) for row in body["rows"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        reason = "its list of records is damaged"
        raise CheckpointCorruptError(thread_id or "", None, reason) from error
    if thread_id not in (None, thread.thread_id):
        reason = "its document is that of another thread"
        raise CheckpointCorruptError(thread_id or "", None, reason)
    return thread


def read_page(thread_id: str, token: str, found: Any) -> Page:
    """Return the page of the server's answer to a read of its document.

    Raises:
        CheckpointCorruptError: The document is damaged.
    """
    try:
        return Page.of(token, [_read_row(row) for row in found["_source"]["body"]["rows"]])
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointCorruptError(thread_id, None, "a part of its list is damaged") from error


def _plain(rows: Iterable[Row]) -> list[tuple[Any, ...]]:
    """Return rows as orjson takes them."""
    return [tuple(row) for row in rows]


def row_of(rows: Sequence[Row], checkpoint_id: str | None) -> Row | None:
    """Return the row of a checkpoint, the newest by default."""
    if checkpoint_id is None:
        return rows[-1] if rows else None
    name = encode_text(checkpoint_id)
    return next((row for row in reversed(rows) if row.checkpoint_id == name), None)


def links_of(rows: Sequence[Row], newest: Row) -> list[Row]:
    """Return the rows of a chain, the newest first, as far as there are rows."""
    by_revision = {row.revision: row for row in rows}
    chain = {newest.revision: newest}
    base = newest.base
    while base in by_revision and base not in chain:
        chain[base] = by_revision[base]
        base = chain[base].base
    return list(chain.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of a thread.

    Attributes:
        before: The thread as it was read.
        after: The thread as it will be.
        payloads: The new payloads by their tokens.
        result: The result of the verb.
        removes: Whether records were removed or rewritten.
    """

    before: Thread
    after: Thread
    payloads: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    result: int = 0
    removes: bool = False

    def marked(self, mark: str) -> Change:
        """Return the change with the mark of its write."""
        marks = (*self.before.marks, mark)[-_MARKS:]
        return replace(self, after=replace(self.after, marks=marks))

    def gone(self) -> list[str]:
        """Return the tokens of the documents that it makes superfluous."""
        left = {row.token for row in self.after.all_rows} | dict(self.after.pages).keys()
        tokens = [*dict(self.before.pages), *(row.token for row in self.before.all_rows)]
        return [token for token in tokens if token not in left]

    def operations(self) -> Iterator[bytes]:
        """Return the operations of the bulk request, the document of the thread last."""
        thread, known = self.after, dict(self.before.pages)
        for token, payload in self.payloads.items():
            body = {"payload": b64encode(payload).decode()}
            yield _operation("index", thread, token, orjson.dumps({"body": body}))
        for token, _ in thread.pages:
            if token not in known:
                source = {"body": {"rows": _plain(thread.older[token].rows)}}
                yield _operation("index", thread, token, orjson.dumps(source))
        kind = "create" if self.before.place is None else "index"
        yield _operation(kind, thread, "", thread.line(), place=self.before.place)


def document(digest: str, token: str = "") -> dict[str, Any]:
    """Return the name of a document of a thread; the token of the thread's own is empty."""
    return {"_id": digest + token, "routing": digest}


def _operation(
    kind: str,
    thread: Thread,
    token: str,
    source: bytes | None = None,
    *,
    place: tuple[int, int] | None = None,
) -> bytes:
    """Return the lines of an operation, on the condition that the document is unchanged."""
    condition = {} if place is None else {"if_seq_no": place[0], "if_primary_term": place[1]}
    name = document(digest_of(thread.thread_id), token)
    action = orjson.dumps({kind: {**name, **condition}}) + b"\n"
    return action if source is None else action + source + b"\n"


def removal(thread: Thread, token: str = "") -> bytes:
    """Return the lines that delete a document: one that a token names, or the thread's own.

    The thread's own is only deleted if it is unchanged, unless its place is unknown.
    """
    return _operation("delete", thread, token, place=None if token else thread.place)


def saved(
    thread: Thread,
    record: Record,
    token: str,
    *,
    expected_parent: str | Unset | None,
    rebased: Sequence[Record],
) -> Change:
    """Return the change that stores a record in a thread whose pages were all read.

    Args:
        thread: The thread.
        record: The record.
        token: The name of the document with its payload.
        expected_parent: See `DeltaStorage.store`.
        rebased: See `DeltaStorage.store`.

    Raises:
        CheckpointConflictError: `expected_parent` is not the newest.
        StaleChainError: A base does not exist, or would be missing.
    """
    check_parent(thread.thread_id, expected_parent, thread.newest)
    row, name = to_row(record, thread.following, token), encode_text(record.checkpoint_id)
    payloads = {token: record.payload}
    pages = [thread.older[each] for each, _ in thread.pages]
    is_there = any(each.checkpoint_id == name for each in thread.rows)
    if is_there or rebased or any(name in page.names for page in pages):
        gone = {each.revision for each in thread.all_rows if each.checkpoint_id == name}
        change = _edited(thread, gone, rebased, record.base)
        after, payloads = change.after.appended(row), {**change.payloads, **payloads}
        return replace(change, after=after, payloads=payloads, result=row.sequence)
    if record.base is not None and not (
        any(each.revision == record.base for each in thread.rows)
        or any(record.base in page.revisions for page in pages)
    ):
        raise StaleChainError
    after = thread.appended(row)
    return Change(before=thread, after=after, payloads=payloads, result=row.sequence)


def removed(
    thread: Thread, revisions: Collection[int] | None, rebased: Sequence[Record]
) -> Change | None:
    """Return the change that removes records, all by default; `None`: there is nothing to do.

    Raises:
        StaleChainError: A base would be missing.
    """
    known = {row.revision for row in thread.all_rows}
    gone = known if revisions is None else known & set(revisions)
    if not gone and (not rebased or thread.place is None):
        return None
    return replace(_edited(thread, gone, rebased), result=len(gone))


def _edited(
    thread: Thread, gone: Collection[int], rebased: Sequence[Record], base: int | None = None
) -> Change:
    """Return the change that removes rows, and rewrites others."""
    rows = thread.all_rows
    heads = [read_head(thread.thread_id, row) for row in rows]
    check_replacement(heads, removed=gone, rebased=rebased, base=base)
    new = {record.revision: (record, new_token()) for record in rebased}
    kept = [row for row in rows if row.revision not in gone]
    after = thread.rewritten(
        to_row(new[row.revision][0], row.sequence, new[row.revision][1])
        if row.revision in new
        else row
        for row in kept
    )
    payloads = {token: record.payload for record, token in new.values()}
    return Change(before=thread, after=after, payloads=payloads, removes=True)
