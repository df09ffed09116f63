"""A thread as documents: its own, its pages and the payloads of its records.

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
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from locus_memory.backends.opensearch.records import Row, new_token, read_row
from locus_memory.errors import CheckpointCorruptError

__all__ = ["LONGEST_KEY", "Page", "PageName", "Thread", "read_page", "read_thread"]

_ROWS: Final = 32
"""The most rows in the document of a thread, and in a page."""

_BYTES: Final = 8 * 1024
"""The size from which rows move to a page, in bytes of JSON."""

_MARKS: Final = 8
"""How many writes a document remembers."""

LONGEST_KEY: Final = 8000
"""The most characters of a name that are indexed; the server takes 32,766 bytes."""

PageName = tuple[str, int]
"""The token of a page, and the number of its rows."""


class Page:
    """The rows of a page, oldest first, which never change."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = tuple(rows)
        self._names = frozenset(row.checkpoint_id for row in rows)
        self._revisions = frozenset(row.revision for row in rows)

    def has_name(self, encoded: str) -> bool:
        """Return whether a row is of this checkpoint."""
        return encoded in self._names

    def has_revision(self, revision: int) -> bool:
        """Return whether a row is of this revision."""
        return revision in self._revisions

    def line(self) -> bytes:
        """Return its document."""
        return orjson.dumps({"body": {"rows": _plain(self.rows)}})


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """The document of a thread.

    Attributes:
        thread_id: The thread.
        place: The sequence number and the primary term of the document, by which the server knows
            that it is unchanged; `None`: there is no document.
        following: The sequence of the next record.
        marks: The marks of its last writes.
        pages: The pages with its older rows, oldest first.
        rows: Its newest rows, oldest first.
    """

    thread_id: str
    place: tuple[int, int] | None = None
    following: int = 1
    marks: tuple[str, ...] = ()
    pages: tuple[PageName, ...] = ()
    rows: tuple[Row, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it has no records."""
        return not self.rows and not self.pages

    def appended(self, row: Row) -> tuple[Thread, dict[str, Page]]:
        """Return the thread with one more row, and the new page by its token if there is one."""
        new: dict[str, Page] = {}
        pages, rows = self.pages, self.rows
        if len(rows) >= _ROWS or (rows and len(orjson.dumps(_plain(rows))) > _BYTES):
            token = new_token()
            new[token] = Page(rows)
            pages, rows = (*pages, (token, len(rows))), ()
        changed = replace(self, pages=pages, rows=(*rows, row), following=row.sequence + 1)
        return changed, new

    def rewritten(self, rows: Iterable[Row]) -> tuple[Thread, dict[str, Page]]:
        """Return the thread with other rows, and its new pages by their tokens."""
        thread = replace(self, pages=(), rows=())
        new: dict[str, Page] = {}
        for row in rows:
            thread, added = thread.appended(row)
            new |= added
        return replace(thread, following=max(self.following, thread.following)), new

    def marked(self, mark: str) -> Thread:
        """Return the thread with the mark of one more write."""
        return replace(self, marks=(*self.marks, mark)[-_MARKS:])

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


def read_thread(thread_id: str, found: Any) -> Thread:
    """Return the thread of the server's answer to a read of its document.

    Raises:
        CheckpointCorruptError: The document is damaged, or of another thread.
    """
    if not found["found"]:
        return Thread(thread_id=thread_id)
    try:
        body = found["_source"]["body"]
        thread = Thread(
            thread_id=body["name"],
            place=(found["_seq_no"], found["_primary_term"]),
            following=int(body["following"]),
            marks=tuple(body["marks"]),
            pages=tuple((str(token), int(count)) for token, count in body["pages"]),
            rows=tuple(read_row(row) for row in body["rows"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointCorruptError(thread_id, None, "its list of records is damaged") from error
    if thread.thread_id != thread_id:
        raise CheckpointCorruptError(thread_id, None, "its document is that of another thread")
    return thread


def read_page(thread_id: str, found: Any) -> Page:
    """Return the page of the server's answer to a read of its document.

    Raises:
        CheckpointCorruptError: The document is damaged.
    """
    try:
        return Page([read_row(row) for row in found["_source"]["body"]["rows"]])
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointCorruptError(thread_id, None, "a part of its list is damaged") from error


def _plain(rows: Iterable[Row]) -> list[tuple[Any, ...]]:
    """Return rows as orjson takes them."""
    return [tuple(row) for row in rows]
