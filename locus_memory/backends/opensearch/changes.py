"""Changes of a thread: a record that is appended, records that are removed or rewritten."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from locus_memory.backends.opensearch.records import Row, new_token, to_row
from locus_memory.backends.opensearch.thread_documents import Commit
from locus_memory.backends.opensearch.threads import Page, Thread
from locus_memory.checkpoint.base import Unset
from locus_memory.checkpoint.record import Record
from locus_memory.checkpoint.storage import StaleChainError, check_parent
from locus_memory.store.encoding import decode_text, encode_text

__all__ = ["Rewriting", "Save", "links_of", "newest_name", "row_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Save:
    """The arguments of a call of `store`, and the names of what it writes.

    Attributes:
        record: The record.
        expected_parent: See `store`.
        rebased: See `store`.
        token: The name of the document with the payload.
        mark: The mark of the write.
    """

    record: Record
    expected_parent: str | Unset | None
    rebased: Sequence[Record]
    token: str = field(default_factory=new_token)
    mark: str = field(default_factory=new_token)

    def appended_to(self, thread: Thread, pages: Sequence[Page]) -> Commit | None:
        """Return the change that appends the record; `None` if it replaces another.

        Raises:
            CheckpointConflictError: `expected_parent` is not the newest.
            StaleChainError: Its base does not exist.
        """
        newest = thread.rows or (pages[-1].rows if pages else ())
        check_parent(thread.thread_id, self.expected_parent, newest_name(newest))
        record, name = self.record, encode_text(self.record.checkpoint_id)
        if any(row.checkpoint_id == name for row in thread.rows):
            return None
        if any(page.has_name(name) for page in pages):
            return None
        base = record.base
        if base is not None and not (
            any(row.revision == base for row in thread.rows)
            or any(page.has_revision(base) for page in pages)
        ):
            raise StaleChainError
        after, new = thread.appended(to_row(record, thread.following, self.token))
        payloads = {self.token: record.payload}
        return Commit(before=thread, after=after.marked(self.mark), payloads=payloads, pages=new)


class Rewriting:
    """A change that removes or rewrites records.

    Args:
        thread: The thread.
        rows: All of its rows, oldest first.
        removed: The revisions to remove.
        rebased: The records to rewrite.

    Attributes:
        gone: The documents that the change makes superfluous.
    """

    def __init__(
        self,
        thread: Thread,
        rows: Sequence[Row],
        removed: Collection[int],
        rebased: Sequence[Record],
    ) -> None:
        self._thread = thread
        self._tokens = {record.revision: new_token() for record in rebased}
        self._rebased = {record.revision: record for record in rebased}
        self._rows = [self._kept(row) for row in rows if row.revision not in removed]
        self.gone = [token for token, _ in thread.pages]
        self.gone += [r.token for r in rows if r.revision in removed or r.revision in self._tokens]

    def _kept(self, row: Row) -> Row:
        record = self._rebased.get(row.revision)
        if record is None:
            return row
        return to_row(record, row.sequence, self._tokens[row.revision])

    def change(
        self,
        mark: str,
        appended: Row | None = None,
        payloads: Mapping[str, bytes] | None = None,
    ) -> Commit:
        """Return the change.

        Args:
            mark: The mark of the write.
            appended: The row of a record to append.
            payloads: Its payload.
        """
        rows = self._rows if appended is None else [*self._rows, appended]
        after, pages = self._thread.rewritten(rows)
        new = {self._tokens[r.revision]: r.payload for r in self._rebased.values()}
        return Commit(
            before=self._thread,
            after=after.marked(mark),
            payloads={**new, **(payloads or {})},
            pages=pages,
        )


def newest_name(rows: Sequence[Row]) -> str | None:
    """Return the checkpoint of the last row."""
    return decode_text(rows[-1].checkpoint_id) if rows else None


def row_of(rows: Sequence[Row], checkpoint_id: str | None) -> Row | None:
    """Return the row of a checkpoint, the newest by default."""
    if checkpoint_id is None:
        return rows[-1] if rows else None
    name = encode_text(checkpoint_id)
    return next((row for row in reversed(rows) if row.checkpoint_id == name), None)


def links_of(rows: Sequence[Row], newest: Row) -> list[Row]:
    """Return the rows of a chain, the newest first, as far as there are rows."""
    by_revision = {row.revision: row for row in rows}
    chain = [newest]
    while (base := chain[-1].base) is not None and base in by_revision:
        link = by_revision[base]
        if link in chain:
            break
        chain.append(link)
    return chain
