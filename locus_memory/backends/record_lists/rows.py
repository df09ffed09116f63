"""The list of a thread's records, and its changes; pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, Self, TypeVar, cast

from locus_memory.backends.record_rows import head_fields, optional_text
from locus_memory.checkpoint.base import Unset
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.checkpoint.storage import StaleChainError, check_parent, check_replacement
from locus_memory.store.encoding import decode_text, encode_text
from locus_memory.store.json_values import decode_json

__all__ = [
    "COLUMNS",
    "Change",
    "ChooseRows",
    "ListT",
    "RecordList",
    "Row",
    "links_of",
    "read_head",
    "read_record",
    "removed",
    "row_of",
    "saved",
]

COLUMNS: Final = 11
"""The fields of a row that every document has."""


class Row(NamedTuple):
    """The row of a record: its head, and the place of its payload.

    Attributes:
        checkpoint_id: The id, encoded.
        metadata: The metadata, as an object or as JSON.
        seal: The seal of the head.
        forked_from: The optional fields, as JSON.
        place: Where the payload is, in the terms of the database.
        payload: The payload, while it has no place, or is in the document itself.
    """

    checkpoint_id: str
    revision: int
    base: int | None
    level: int
    sequence: int
    created_at: float
    metadata: Any
    size: int
    stored_size: int
    seal: int
    forked_from: str | None
    place: Any = None
    payload: bytes | None = None


ChooseRows = Callable[[list[Row]], Sequence[Row]]


def read_head(thread_id: str, row: Row) -> RecordHead:
    """Return the head of a row.

    Raises:
        CheckpointCorruptError: It is damaged.
    """
    return RecordHead(**_fields(thread_id, row)).verified(row.seal)


def read_record(thread_id: str, row: Row, payload: bytes | None) -> Record:
    """Return the record of a row.

    Raises:
        CheckpointCorruptError: The row is damaged, or there is no payload.
    """
    record = Record(**_fields(thread_id, row), payload=payload or b"").verified(row.seal)
    if not payload:
        raise record.corrupt("its payload is missing")
    return record


def _fields(thread_id: str, row: Row) -> dict[str, Any]:
    return head_fields(thread_id, row, read_text=str, read_metadata=_metadata)


def _metadata(value: Any) -> Any:
    return decode_json(value) if isinstance(value, str) else value


def row_of(rows: Sequence[Row], checkpoint_id: str | None) -> Row | None:
    """Return the row of a checkpoint, the newest by default."""
    if checkpoint_id is None:
        return rows[-1] if rows else None
    name = encode_text(checkpoint_id)
    return next((row for row in reversed(rows) if row.checkpoint_id == name), None)


def links_of(rows: Sequence[Row], checkpoint_id: str | None) -> list[Row]:
    """Return the rows of a checkpoint's chain, the newest first."""
    by_revision = {row.revision: row for row in rows}
    chain: dict[int, Row] = {}
    row = row_of(rows, checkpoint_id)
    while row is not None and row.revision not in chain:
        chain[row.revision] = row
        row = None if row.base is None else by_revision.get(row.base)
    return list(chain.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordList:
    """The list of a thread's records, as far as it is read.

    Attributes:
        thread_id: The thread.
        tag: What a write of the document is conditional on; `None`: there is no document.
        following: The sequence of the next record; no sequence is used twice.
        marks: Of the last writes.
    """

    thread_id: str
    tag: Any = None
    following: int = 1
    marks: tuple[str, ...] = ()

    @property
    def rows(self) -> list[Row]:
        """The rows, the newest last."""
        raise NotImplementedError

    def appended(self, row: Row) -> Self:
        """Return the list with one more row."""
        raise NotImplementedError

    def rewritten(self, rows: Sequence[Row]) -> Self:
        """Return the list with these rows in place of all."""
        raise NotImplementedError

    def row(self, record: Record, sequence: int) -> Row:
        """Return the row of a record that is not written yet."""
        return Row(
            checkpoint_id=encode_text(record.checkpoint_id),
            revision=record.revision,
            base=record.base,
            level=record.level,
            sequence=sequence,
            created_at=record.created_at,
            metadata=record.metadata,
            size=record.size,
            stored_size=len(record.payload),
            seal=record.seal(),
            forked_from=optional_text(record),
            payload=record.payload,
        )

    @property
    def newest(self) -> str | None:
        """The id of the newest checkpoint."""
        row = row_of(self.rows, None)
        return None if row is None else decode_text(row.checkpoint_id)


ListT = TypeVar("ListT", bound=RecordList)


class Change(NamedTuple, Generic[ListT]):
    """A change of a thread.

    Attributes:
        after: The list after it.
        result: What the verb returns: a sequence, or how many records were removed.
        removes: Whether a record was removed or overwritten.
    """

    after: ListT
    result: int
    removes: bool = False


def saved(
    before: ListT,
    record: Record,
    expected_parent: str | Unset | None,
    rebased: Sequence[Record],
) -> Change[ListT]:
    """Return the change of a save; see `DeltaStorage.store`.

    Raises:
        CheckpointConflictError: `expected_parent` is not the newest.
        StaleChainError: A base would be missing.
    """
    check_parent(before.thread_id, expected_parent, before.newest)
    rows, name, after = before.rows, encode_text(record.checkpoint_id), before
    gone = {row.revision for row in rows if row.checkpoint_id == name}
    if gone or rebased:
        after = _edited(before, gone, rebased, record.base)
    elif record.base is not None and all(row.revision != record.base for row in rows):
        raise StaleChainError
    row = before.row(record, before.following)
    return Change(after.appended(row), row.sequence, bool(gone or rebased))


def removed(
    before: ListT, revisions: Collection[int] | None, rebased: Sequence[Record]
) -> Change[ListT] | None:
    """Return the change of a removal, or `None` if it changes nothing; see `DeltaStorage.delete`.

    Raises:
        StaleChainError: A record that stays would lose its base, or a rebased one is gone.
    """
    known = {row.revision for row in before.rows}
    gone = known if revisions is None else known & set(revisions)
    if not gone and not rebased:
        return None
    return Change(_edited(before, gone, rebased), len(gone), removes=True)


def _edited(
    before: ListT, gone: Collection[int], rebased: Sequence[Record], base: int | None = None
) -> ListT:
    """Return a list without some rows, and with new ones in the places of others."""
    rows = before.rows
    heads = cast("list[RecordHead]", rows)
    check_replacement(heads, removed=gone, rebased=rebased, base=base)
    new = {record.revision: record for record in rebased}
    kept = (row for row in rows if row.revision not in gone)
    return before.rewritten(
        [before.row(new[r.revision], r.sequence) if r.revision in new else r for r in kept]
    )
