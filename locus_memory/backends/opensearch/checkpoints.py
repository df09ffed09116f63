"""Checkpoints in OpenSearch: a save is one bulk request, and no verb waits for a refresh.

`threads.py` describes the documents of a thread. Saves of several threads at the same moment share
a request.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, Generic, Unpack

from typing_extensions import override

from locus_memory._internal.options import Keywords, checked
from locus_memory._internal.quoting import quote
from locus_memory.backends.base import OverConnection
from locus_memory.backends.grouping import Grouping
from locus_memory.backends.loops import LoopLocal
from locus_memory.backends.opensearch.changes import (
    Rewriting,
    Save,
    links_of,
    newest_name,
    row_of,
)
from locus_memory.backends.opensearch.connection.connection import (
    OpenSearchConnection,
    connection_for,
)
from locus_memory.backends.opensearch.connection.driver import Client
from locus_memory.backends.opensearch.options import OpenSearchKeywords, OpenSearchOptions
from locus_memory.backends.opensearch.records import (
    Row,
    new_token,
    read_head,
    read_record,
    to_row,
)
from locus_memory.backends.opensearch.schema import CHECKPOINTS
from locus_memory.backends.opensearch.thread_documents import Commit, ThreadDocuments
from locus_memory.backends.opensearch.threads import Thread
from locus_memory.backends.record_rows import check_name
from locus_memory.checkpoint.base import UNSET, StateT, Unset
from locus_memory.checkpoint.chain import CheckpointerOptions, DeltaCheckpointer
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.checkpoint.storage import (
    DeltaStorage,
    StaleChainError,
    chain_of,
    check_parent,
    check_range,
    check_replacement,
    copied,
    newest_first,
)
from locus_memory.errors import (
    BackendError,
    BackendUnavailableError,
    CheckpointConflictError,
    CheckpointCorruptError,
)
from locus_memory.events import emit
from locus_memory.store.encoding import encode_text

__all__ = ["OpenSearchCheckpointer", "OpenSearchDeltaStorage"]

_ATTEMPTS: Final = 64
"""How often a write is tried while other writers keep changing the thread."""

_PAUSE: Final = 0.005
_LONGEST_PAUSE: Final = 0.2
"""Seconds before the second attempt, and before the later ones at most."""

_COPIED_BYTES: Final = 4 * 2**20
_COPIED_RECORDS: Final = 200
"""The most payloads that a copy reads and writes at once."""


class OpenSearchDeltaStorage(OverConnection[OpenSearchConnection], DeltaStorage):
    """Records in an OpenSearch cluster, safe for many tasks, event loops and processes.

    Args:
        hosts: See `OpenSearchConnection`.
        client: A client, or a connection to share, which the storage does not close.
        options: How to connect, and the prefix of the indexes; ignored with a connection.
        **keywords: The fields of `OpenSearchOptions` by name, in place of `options`.

    Raises:
        ConfigurationError: An option is invalid.
    """

    _threads_at_once = 1000

    @checked
    def __init__(
        self,
        hosts: str | None = None,
        *,
        client: Client | OpenSearchConnection | None = None,
        options: OpenSearchOptions | None = None,
        **keywords: Unpack[OpenSearchKeywords],
    ) -> None:
        options = Keywords(self, keywords).all_into(OpenSearchOptions, options=options)
        self._connection, self._owned = connection_for(hosts, client, options)
        self._documents = ThreadDocuments(self._connection)
        self._groupings: LoopLocal[Grouping[Save, int]] = LoopLocal()

    @override
    async def store(
        self,
        record: Record,
        *,
        expected_parent: str | Unset | None = UNSET,
        rebased: Sequence[Record] = (),
    ) -> int:
        save = Save(record=record, expected_parent=expected_parent, rebased=rebased)
        if rebased:
            return await self._store_alone(save)
        grouping = self._groupings.get(lambda: Grouping(self._store_alone, self._store_together))
        return await grouping.send(save, key=record.thread_id)

    async def _store_alone(self, save: Save) -> int:
        thread = self._documents.remembered(save.record.thread_id)
        is_fresh = thread is None
        for attempt in range(_ATTEMPTS):
            if thread is None:
                thread, is_fresh = await self._documents.read(save.record.thread_id), True
            if save.mark in thread.marks:
                # The answer to an earlier attempt was lost.
                return await self._sequence_of(thread, save)
            try:
                change, gone = await self._change_of(thread, save)
            except (CheckpointConflictError, StaleChainError):
                if is_fresh:
                    raise
                thread = None
                continue
            written = await self._documents.commit(change)
            if written is not None:
                await self._documents.remove(save.record.thread_id, gone)
                return change.after.following - 1
            thread = None
            await _pause(attempt)
        raise self._busy(save.record.thread_id)

    async def _sequence_of(self, thread: Thread, save: Save) -> int:
        for row in reversed(await self._documents.rows(thread)):
            if row.revision == save.record.revision:
                return row.sequence
        # Another writer has removed it since.
        return thread.following - 1

    async def _store_together(self, saves: Sequence[Save]) -> list[int | None]:
        """Append to several threads; `None` for each record that needs a request of its own."""
        changes: list[Commit | None] = [self._ready_change(save) for save in saves]
        sent = [change for change in changes if change is not None]
        written = iter(await self._documents.commit_all(sent) if sent else [])
        return [
            change.after.following - 1 if change is not None and next(written) else None
            for change in changes
        ]

    def _ready_change(self, save: Save) -> Commit | None:
        """Return the change of a simple save if everything that it needs is remembered."""
        thread = self._documents.remembered(save.record.thread_id)
        pages = None if thread is None else self._documents.remembered_pages(thread)
        if thread is None or pages is None:
            return None
        try:
            return save.appended_to(thread, pages)
        except (CheckpointConflictError, StaleChainError):
            return None

    async def _change_of(self, thread: Thread, save: Save) -> tuple[Commit, list[str]]:
        """Return the change that stores a record, and the documents that it makes superfluous.

        Raises:
            CheckpointConflictError: See `store`.
            StaleChainError: See `store`.
        """
        change = None
        if not save.rebased:
            change = save.appended_to(thread, await self._documents.pages(thread))
        if change is not None:
            return change, []
        rows = await self._documents.rows(thread)
        check_parent(thread.thread_id, save.expected_parent, newest_name(rows))
        name = encode_text(save.record.checkpoint_id)
        removed = {row.revision for row in rows if row.checkpoint_id == name}
        heads = [read_head(thread.thread_id, row) for row in rows]
        check_replacement(heads, removed=removed, rebased=save.rebased, base=save.record.base)
        rewriting = Rewriting(thread, rows, removed, save.rebased)
        row = to_row(save.record, thread.following, save.token)
        payloads = {save.token: save.record.payload}
        return rewriting.change(save.mark, row, payloads), rewriting.gone

    @override
    async def retrieve(self, thread_id: str, checkpoint_id: str | None = None) -> Record | None:
        chain = await self._read(thread_id, checkpoint_id, lambda _, row: [row])
        return chain[0] if chain else None

    @override
    async def find(self, thread_id: str, checkpoint_id: str | None = None) -> RecordHead | None:
        thread = await self._documents.read(thread_id)
        row = row_of(await self._rows_for(thread, checkpoint_id), checkpoint_id)
        return None if row is None else check_name(read_head(thread_id, row), checkpoint_id)

    @override
    async def retrieve_chain(
        self, thread_id: str, checkpoint_id: str | None = None
    ) -> list[Record]:
        chain = await self._read(thread_id, checkpoint_id, links_of)
        if not chain:
            return []
        records = {record.revision: record for record in chain}
        return chain_of(records.get, check_name(chain[0], checkpoint_id))

    async def _read(
        self,
        thread_id: str,
        checkpoint_id: str | None,
        choose: Callable[[Sequence[Row], Row], list[Row]],
    ) -> list[Record]:
        """Return the records that `choose` returns for all rows and that of a checkpoint.

        If the thread is as this process saw it last, one request reads all of them.
        """
        thread = self._documents.remembered(thread_id)
        for _ in range(_ATTEMPTS):
            chosen = await self._chosen(thread, checkpoint_id, choose) if thread else []
            tokens = [row.token for row in chosen]
            fresh, payloads = await self._documents.read_with(thread_id, tokens)
            if thread is not None and fresh.place == thread.place:
                return [read_record(thread_id, row, payloads[row.token]) for row in chosen]
            if fresh.is_empty:
                return []
            thread = fresh
            chosen = await self._chosen(thread, checkpoint_id, choose)
            found = await self._documents.payloads(thread_id, [row.token for row in chosen])
            if None not in found.values():
                return [read_record(thread_id, row, found[row.token]) for row in chosen]
            # Otherwise a record was removed since, or it is damaged: the next turn shows it.
        raise self._busy(thread_id)

    async def _chosen(
        self,
        thread: Thread,
        checkpoint_id: str | None,
        choose: Callable[[Sequence[Row], Row], list[Row]],
    ) -> list[Row]:
        rows = await self._documents.rows(thread)
        row = row_of(rows, checkpoint_id)
        return [] if row is None else choose(rows, row)

    async def _rows_for(self, thread: Thread, checkpoint_id: str | None) -> Sequence[Row]:
        """Return the rows of a thread that may be that of a checkpoint."""
        if thread.rows and row_of(thread.rows, checkpoint_id) is not None:
            return thread.rows
        return await self._documents.rows(thread)

    @override
    async def list_checkpoints(
        self, thread_id: str, limit: int | None = 10, *, before: int | None = None
    ) -> list[RecordHead]:
        thread = await self._documents.read(thread_id)
        rows: Sequence[Row] = thread.rows
        if limit is None or before is not None or len(rows) < limit:
            rows = await self._documents.rows(thread)
        wanted = [row for row in reversed(rows) if before is None or row.sequence < before]
        return newest_first((read_head(thread_id, row) for row in wanted[:limit]), limit, before)

    @override
    async def sequences(self, thread_id: str) -> list[int]:
        rows = await self._documents.rows(await self._documents.read(thread_id))
        return [row.sequence for row in reversed(rows)]

    @override
    async def delete(
        self,
        thread_id: str,
        revisions: Collection[int] | None = None,
        *,
        rebased: Sequence[Record] = (),
    ) -> int:
        mark = new_token()
        for attempt in range(_ATTEMPTS):
            try:
                thread = await self._documents.read(thread_id)
                rows = await self._documents.rows(thread)
            except CheckpointCorruptError:
                if revisions is not None:
                    raise
                return await self._documents.discard(thread_id)
            if thread.is_empty:
                return 0
            removed = {row.revision for row in rows}
            if revisions is not None:
                removed &= set(revisions)
                heads = [read_head(thread_id, row) for row in rows]
                check_replacement(heads, removed=removed, rebased=rebased)
            if not removed and not rebased:
                return 0
            rewriting = Rewriting(thread, rows, removed, rebased)
            written = await self._documents.commit(rewriting.change(mark))
            if written is not None:
                emptied = written if written.is_empty else None
                await self._documents.remove(thread_id, rewriting.gone, emptied)
                return len(removed)
            await _pause(attempt)
        raise self._busy(thread_id)

    @override
    async def list_threads(
        self, limit: int = 100, *, prefix: str | None = None, after: str | None = None
    ) -> list[str]:
        check_range(prefix, after)
        return await self._documents.list_threads(limit, prefix or "", after)

    @override
    async def copy_thread(self, source: str, target: str, *, through: int | None = None) -> int:
        for attempt in range(_ATTEMPTS):
            existing = await self.find(target)
            if existing is not None:
                raise CheckpointConflictError(target, None, existing.checkpoint_id)
            thread = await self._documents.read(source)
            rows = await self._documents.rows(thread)
            chosen = [row for row in rows if through is None or row.sequence <= through]
            if not chosen:
                return 0
            count = await self._copied(thread, chosen, target, through)
            if count is not None:
                return count
            await _pause(attempt)
        raise self._busy(source)

    async def _copied(
        self, source: Thread, rows: Sequence[Row], target: str, through: int | None
    ) -> int | None:
        """Copy rows and their payloads; return how many, or `None` if a thread has changed."""
        before = await self._documents.read(target)
        new: list[Row] = []
        for some in _portions(rows):
            found = await self._documents.payloads(source.thread_id, [row.token for row in some])
            if None in found.values():
                fresh = await self._documents.read(source.thread_id)
                if fresh.place != source.place:
                    await self._documents.remove(target, [row.token for row in new])
                    return None
            records = [read_record(source.thread_id, row, found[row.token]) for row in some]
            tokens = [new_token() for _ in some]
            new += [
                to_row(copied(record, target, through), record.sequence, token)
                for record, token in zip(records, tokens, strict=True)
            ]
            payloads = (record.payload for record in records)
            await self._documents.write_payloads(target, dict(zip(tokens, payloads, strict=True)))
        after, pages = before.rewritten(new)
        change = Commit(before=before, after=after.marked(new_token()), pages=pages)
        if await self._documents.commit(change) is None:
            await self._documents.remove(target, [*(row.token for row in new), *pages])
            return None
        return len(new)

    @override
    async def _heads_of(self, threads: Sequence[str]) -> list[RecordHead]:
        return [
            read_head(thread.thread_id, row)
            for thread in await self._documents.read_all(threads)
            for row in await self._documents.rows(thread)
        ]

    @override
    async def reclaim(self) -> None:
        path = f"/{self._connection.index(CHECKPOINTS)}/_forcemerge"
        params = {"only_expunge_deletes": "true"}
        try:
            await self._connection.with_index(
                CHECKPOINTS,
                lambda: self._connection.request("POST", path, params=params, again=True),
            )
        except BackendError as error:
            # The server merges by itself, sooner or later.
            emit("opensearch.not_merged", error=error)

    @override
    async def open(self) -> None:
        await self._connection.ensure(CHECKPOINTS)

    def _busy(self, thread_id: str) -> BackendUnavailableError:
        return BackendUnavailableError(
            f"opensearch {self._connection.place}: thread {quote(thread_id)} kept changing; try "
            "again"
        )


def _portions(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Return the rows in portions whose payloads fit into one request."""
    portion: list[Row] = []
    size = 0
    for row in rows:
        if portion and (size + row.stored_size > _COPIED_BYTES or len(portion) == _COPIED_RECORDS):
            yield portion
            portion, size = [], 0
        portion.append(row)
        size += row.stored_size
    if portion:
        yield portion


async def _pause(attempt: int) -> None:
    """Wait a random time, so that writers of one thread do not meet again."""
    longest = min(_PAUSE * 2.0**attempt, _LONGEST_PAUSE)
    await asyncio.sleep(random.uniform(0, longest))  # noqa: S311 - no secret


class OpenSearchCheckpointerKeywords(
    OpenSearchKeywords, CheckpointerOptions[StateT], Generic[StateT], total=False
):
    """The keyword arguments of `OpenSearchCheckpointer` beside its own parameters."""


class OpenSearchCheckpointer(DeltaCheckpointer[StateT]):
    """Checkpoints in an OpenSearch cluster.

    Args:
        hosts: See `OpenSearchConnection`.
        client: A client of opensearch-py, or an `OpenSearchConnection`, to use instead; the
            checkpointer does not close it.
        options: How to connect, and the prefix of the indexes; ignored with a connection.
        **keywords: The options of `DeltaCheckpointer`, and the fields of `OpenSearchOptions` by
            name, in place of `options`.

    Raises:
        ConfigurationError: An option is invalid.
    """

    @checked
    def __init__(
        self,
        hosts: str | None = None,
        *,
        client: Client | OpenSearchConnection | None = None,
        options: OpenSearchOptions | None = None,
        **keywords: Unpack[OpenSearchCheckpointerKeywords[StateT]],
    ) -> None:
        named = Keywords(self, keywords)
        options = named.into(OpenSearchOptions, options=options)
        storage = OpenSearchDeltaStorage(hosts, client=client, options=options)
        super().__init__(storage, **named.rest)
