"""A thread as documents: its own, its pages and the payloads of its records; pure.

The document of a thread is the only one that is ever changed, and it decides what belongs to the
thread. It has the newest rows itself, and the names of the pages that have the older ones. Payloads
and pages are written under new names, and never changed.

So a write is one bulk request, in this order: new payloads, a new page if the rows have become too
many, and last the document of the thread, on the condition that it is still the one that was read.
All of them are in one shard, which runs them in this order.

- Two writers who read the same document: the second one is refused, and reads it again.
- A crash in between leaves documents that no thread names. They belong to nothing, and no later
  write has their names. `vacuum` deletes them.
- An answer that is lost: the document has the marks of its last writes, so that a write that is
  sent again is recognised.
- A reader who does not find a payload reads the document again: the record was removed meanwhile.

A read of a document by its id sees every acknowledged write, without a refresh.

A row is the head of a record, in JSON, with the name of the document that has the payload. No field
is indexed or read by the server: it returns the text that it was sent.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from secrets import token_urlsafe
from typing import Any, Final, Self

import orjson
from typing_extensions import override

from locus_memory.backends.record_lists.rows import COLUMNS, RecordList, Row
from locus_memory.checkpoint.record import Record
from locus_memory.errors import CheckpointCorruptError
from locus_memory.store.json_values import encode_json

__all__ = [
    "DIGEST",
    "LONGEST_KEY",
    "Thread",
    "digest_of",
    "document",
    "payload_of",
    "read_page",
    "read_thread",
    "removal",
    "written",
]

_ROWS: Final = 32
"""The most rows in the document of a thread, and in a page."""

_BYTES: Final = 8 * 1024
"""The size from which rows move to a page, in bytes of JSON."""

LONGEST_KEY: Final = 8000
"""The most characters of a name that are indexed; the server takes 32,766 bytes."""


DIGEST: Final = 32
"""The length of the id of a thread's document, with which the ids of the others begin."""


def digest_of(thread_id: str) -> str:
    """Return the id of a thread's document."""
    return blake2b(thread_id.encode(), digest_size=DIGEST // 2).hexdigest()


def _new_token() -> str:
    return token_urlsafe(9)


def _read_rows(stored: Iterable[Sequence[Any]]) -> tuple[Row, ...]:
    """Return the rows of a document.

    Raises:
        TypeError: One is damaged.
    """
    rows = tuple(Row(*columns) for columns in stored)
    for row in rows:
        sequence: Any = row.sequence
        if not isinstance(sequence, int) or not isinstance(row.place, str):
            raise TypeError("a row has a sequence and a token")
    return rows


def payload_of(source: Any) -> bytes | None:
    """Return the payload of a document, if it has one."""
    try:
        return b64decode(source["body"]["payload"], validate=True)
    except (KeyError, TypeError, ValueError):
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread(RecordList):
    """The document of a thread. The place of a payload is its token.

    Attributes:
        tag: The document's `_seq_no` and `_primary_term`.
        pages: The token of each page, and the number of its rows, the oldest first.
        tail: The rows after those of the pages.
        older: The rows of the pages by token, as far as they are read.
    """

    pages: tuple[tuple[str, int], ...] = ()
    tail: tuple[Row, ...] = ()
    older: Mapping[str, tuple[Row, ...]] = field(default_factory=dict[str, tuple[Row, ...]])

    @property
    def is_empty(self) -> bool:
        """Whether it has no records."""
        return not self.tail and not self.pages

    @property
    @override
    def rows(self) -> list[Row]:
        older = (self.older.get(token, ()) for token, _ in self.pages)
        return [*(row for rows in older for row in rows), *self.tail]

    def missing(self) -> list[str]:
        """Return the tokens of the pages that are not read."""
        return [token for token, _ in self.pages if token not in self.older]

    def tokens(self) -> set[str]:
        """Return the tokens of all documents but its own."""
        return {row.place for row in self.rows} | dict(self.pages).keys()

    @override
    def row(self, record: Record, sequence: int) -> Row:
        # Not by `super()`: a dataclass with slots is another class than the one in this body.
        row = RecordList.row(self, record, sequence)
        metadata = encode_json(record.metadata).decode()
        return row._replace(metadata=metadata, place=_new_token())

    @override
    def appended(self, row: Row) -> Self:
        # The tail becomes a page once it is long.
        pages, tail, older = self.pages, self.tail, self.older
        if len(tail) >= _ROWS or (tail and len(orjson.dumps(_plain(tail))) > _BYTES):
            token = _new_token()
            older = {**older, token: tail}
            pages, tail = (*pages, (token, len(tail))), ()
        following = max(self.following, row.sequence + 1)
        return replace(self, pages=pages, tail=(*tail, row), older=older, following=following)

    @override
    def rewritten(self, rows: Sequence[Row]) -> Self:
        thread = replace(self, pages=(), tail=(), older={})
        for row in rows:
            thread = thread.appended(row)
        return thread

    def as_written(self, tag: tuple[int, int]) -> Self:
        """Return it with the tag of a write, and without the payloads, which were written."""
        older = {token: _light(rows) for token, rows in self.older.items()}
        return replace(self, tag=tag, tail=_light(self.tail), older=older)

    def line(self) -> bytes:
        """Return the content of its document; that of an empty one is in no list of threads."""
        body = {
            "name": self.thread_id,
            "following": self.following,
            "marks": self.marks,
            "pages": self.pages,
            "rows": _plain(self.tail),
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
            tag=(found["_seq_no"], found["_primary_term"]),
            following=int(body["following"]),
            marks=tuple(body["marks"]),
            pages=tuple((str(token), int(count)) for token, count in body["pages"]),
            tail=_read_rows(body["rows"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        reason = "its list of records is damaged"
        raise CheckpointCorruptError(thread_id or "", None, reason) from error
    if thread_id not in (None, thread.thread_id):
        reason = "its document is that of another thread"
        raise CheckpointCorruptError(thread_id or "", None, reason)
    return thread


def read_page(thread_id: str, found: Any) -> tuple[Row, ...]:
    """Return the rows of the server's answer to a read of a page.

    Raises:
        CheckpointCorruptError: The document is missing or damaged.
    """
    try:
        return _read_rows(found["_source"]["body"]["rows"])
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointCorruptError(thread_id, None, "a part of its list is damaged") from error


def _plain(rows: Iterable[Row]) -> list[tuple[Any, ...]]:
    return [(*row[:COLUMNS], row.place) for row in rows]


def _light(rows: Iterable[Row]) -> tuple[Row, ...]:
    return tuple(row if row.payload is None else row._replace(payload=None) for row in rows)


def written(before: Thread, after: Thread) -> Iterator[bytes]:
    """Yield the lines of a bulk request that writes a thread; its own document is the last."""
    known = dict(before.pages)
    for row in after.rows:
        if row.payload is not None:
            body = {"payload": b64encode(row.payload).decode()}
            yield _operation("index", after, row.place, orjson.dumps({"body": body}))
    for token, _ in after.pages:
        if token not in known:
            source = {"body": {"rows": _plain(after.older[token])}}
            yield _operation("index", after, token, orjson.dumps(source))
    kind = "create" if before.tag is None else "index"
    yield _operation(kind, after, "", after.line(), tag=before.tag)


def document(digest: str, token: str = "") -> dict[str, Any]:
    """Return the name of a document of a thread; the token of the thread's own is empty."""
    return {"_id": digest + token, "routing": digest}


def _operation(
    kind: str,
    thread: Thread,
    token: str,
    source: bytes | None = None,
    *,
    tag: tuple[int, int] | None = None,
) -> bytes:
    """Return the lines of an operation, on the condition that the document is unchanged."""
    condition = {} if tag is None else {"if_seq_no": tag[0], "if_primary_term": tag[1]}
    name = document(digest_of(thread.thread_id), token)
    action = orjson.dumps({kind: {**name, **condition}}) + b"\n"
    return action if source is None else action + source + b"\n"


def removal(thread: Thread, token: str = "") -> bytes:
    """Return the lines that delete a document: one that a token names, or the thread's own.

    The thread's own is only deleted if it is unchanged, unless its tag is unknown.
    """
    return _operation("delete", thread, token, tag=None if token else thread.tag)
