"""Checkpoints in OpenSearch: a save is one bulk request, and no verb waits for a refresh.

`threads.py` describes the documents of a thread, and the changes of them.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Generic, Unpack
from weakref import WeakValueDictionary

from typing_extensions import override

from locus_memory._internal.options import Keywords, checked
from locus_memory._internal.quoting import quote
from locus_memory._internal.recent import RecentlyUsed
from locus_memory.backends.base import OverConnection
from locus_memory.backends.loops import LoopLocal
from locus_memory.backends.opensearch.connection.connection import (
    Item,
    OpenSearchConnection,
)
from locus_memory.backends.opensearch.connection.driver import Client
from locus_memory.backends.opensearch.options import OpenSearchKeywords, OpenSearchOptions
from locus_memory.backends.opensearch.schema import CHECKPOINTS
from locus_memory.backends.opensearch.threads import (
    LONGEST_KEY,
    Change,
    Row,
    Thread,
    digest_of,
    document,
    links_of,
    new_token,
    payload_of,
    read_head,
    read_page,
    read_record,
    read_thread,
    removal,
    removed,
    row_of,
    saved,
    to_row,
)
from locus_memory.backends.record_rows import chain_from, check_name, thread_name
from locus_memory.checkpoint.base import UNSET, StateT, Unset
from locus_memory.checkpoint.chain import CheckpointerOptions, DeltaCheckpointer
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.checkpoint.storage import (
    DeltaStorage,
    StaleChainError,
    check_range,
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

__all__ = ["OpenSearchCheckpointer", "OpenSearchDeltaStorage"]

_ATTEMPTS: Final = 64
"""How often a write is tried while other writers keep changing the thread."""

_PAUSE: Final = 0.005
_LONGEST_PAUSE: Final = 0.2
"""Seconds before the second attempt, and before the later ones at most."""

_REMEMBERED: Final = 2000
"""How many threads and pages are remembered; each is some kilobytes."""

_PAGE: Final = 1000
"""The number of threads of one search."""

_LONGEST_PREFIX: Final = 200
"""The most characters of a prefix query; 2.19 takes about 1,000 bytes."""

_CONFLICT: Final = 409
_NOT_FOUND: Final = 404


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
        self._connect(
            OpenSearchConnection, OpenSearchOptions, hosts, options, keywords, client=client
        )
        # The threads as this process saw them last, with the pages that it read.
        self._known: RecentlyUsed[Thread] = RecentlyUsed(
            _REMEMBERED, lambda thread: 1 + len(thread.older)
        )
        self._locks: LoopLocal[WeakValueDictionary[str, asyncio.Lock]] = LoopLocal()

    @override
    async def store(
        self,
        record: Record,
        *,
        expected_parent: str | Unset | None = UNSET,
        rebased: Sequence[Record] = (),
    ) -> int:
        save = partial(
            saved,
            record=record,
            token=new_token(),
            expected_parent=expected_parent,
            rebased=rebased,
        )
        return await self._change(record.thread_id, save)

    async def _change(self, thread_id: str, plan: Callable[[Thread], Change | None]) -> int:
        """Change a thread in one step; return the result of the change.

        Args:
            thread_id: The thread.
            plan: Returns the change of a thread, `None` for no change, or raises. It is called
                again if another writer was first, and counts only for the thread as it is now.
        """
        mark = new_token()
        # The saves of a thread by this process would only disturb each other.
        async with self._locks.get(WeakValueDictionary).setdefault(thread_id, asyncio.Lock()):
            known = self._known.get(thread_id)
            for attempt in range(_ATTEMPTS):
                thread = await self._whole(known or await self._read(thread_id))
                try:
                    change = plan(thread)
                except (CheckpointConflictError, StaleChainError):
                    if known is None:
                        raise
                    change = None
                if change is not None and await self._commit(change.marked(mark)):
                    return change.result
                if change is None and known is None:
                    return 0
                if change is not None:
                    await _pause(attempt)
                known = None
        raise self._busy(thread_id)

    async def _commit(self, change: Change) -> bool:
        """Write a change; return whether the thread was still as it was read.

        Raises:
            BackendError: See `locus_memory.errors`; nothing is written, or all of it.
        """
        after, operations = change.after, list(change.operations())
        *others, last = await self._send(operations)
        if last["status"] == _CONFLICT:
            # The answer of an earlier attempt may have been lost.
            fresh = await self._read(after.thread_id)
            if after.marks[-1] not in fresh.marks:
                return False
            place = fresh.place
        elif error := self._connection.refusal(last):
            raise error
        else:
            place = last["_seq_no"], last["_primary_term"]
        after = replace(after, place=place)
        for error in filter(None, map(self._connection.refusal, others)):
            # What the document names was not written.
            before = replace(change.before, following=after.following, marks=after.marks)
            await self._send(list(Change(before=after, after=before).operations()))
            raise error
        self._known.put(after.thread_id, after)
        if change.removes:
            await self._remove(after, change.gone())
        return True

    async def _remove(self, thread: Thread, tokens: Iterable[str]) -> None:
        """Delete documents that the thread does not name any more; what cannot be deleted is left.

        The document of a thread without records is one of them.
        """
        operations = [removal(thread, token) for token in tokens]
        if thread.is_empty:
            self._known.discard(thread.thread_id)
            operations.append(removal(thread))
        try:
            for item in await self._send(operations):
                error = self._connection.refusal(item)
                if error is not None and item["status"] not in {_CONFLICT, _NOT_FOUND}:
                    emit("opensearch.not_removed", error=error, thread_id=thread.thread_id)
        except BackendError as error:
            emit("opensearch.not_removed", error=error, thread_id=thread.thread_id)

    async def _send(self, operations: Sequence[bytes]) -> list[Item]:
        return await self._connection.bulk(operations, CHECKPOINTS, again=True)

    async def _fetch(self, thread_id: str, tokens: Iterable[str]) -> list[Item]:
        """Return the server's answers for documents of a thread, in order."""
        digest = digest_of(thread_id)
        return await self._connection.mget([document(digest, each) for each in tokens], CHECKPOINTS)

    async def _read(self, thread_id: str) -> Thread:
        """Return a thread as it is now."""
        (found,) = await self._fetch(thread_id, [""])
        return self._seen(thread_id, found)

    def _seen(self, thread_id: str, found: Item) -> Thread:
        """Return the thread of an answer, with those of its pages that are remembered."""
        thread, known = read_thread(thread_id, found), self._known.get(thread_id)
        if thread.place is None:
            self._known.discard(thread_id)
            return thread
        if known is not None:
            tokens = dict(thread.pages)
            older = {token: page for token, page in known.older.items() if token in tokens}
            thread = replace(thread, older=older)
        self._known.put(thread_id, thread)
        return thread

    async def _whole(self, thread: Thread) -> Thread:
        """Return a thread, perhaps a newer one, with all of its pages."""
        thread_id = thread.thread_id
        for _ in range(_ATTEMPTS):
            missing = thread.missing()
            if not missing:
                return thread
            # The thread is read last: if it is unchanged then, the pages were there before.
            *found, last = await self._fetch(thread_id, [*missing, ""])
            fresh = self._seen(thread_id, last)
            if fresh.place == thread.place:
                read = zip(missing, found, strict=True)
                pages = {token: read_page(thread_id, token, each) for token, each in read}
                fresh = replace(fresh, older={**fresh.older, **pages})
                self._known.put(thread_id, fresh)
            thread = fresh
        raise self._busy(thread_id)

    @override
    async def retrieve(self, thread_id: str, checkpoint_id: str | None = None) -> Record | None:
        chain = await self._records(thread_id, checkpoint_id, lambda _, row: [row])
        return chain[0] if chain else None

    @override
    async def find(self, thread_id: str, checkpoint_id: str | None = None) -> RecordHead | None:
        thread = await self._read(thread_id)
        row = row_of(thread.rows, checkpoint_id)
        if row is None:
            row = row_of((await self._whole(thread)).all_rows, checkpoint_id)
        return None if row is None else check_name(read_head(thread_id, row), checkpoint_id)

    @override
    async def retrieve_chain(
        self, thread_id: str, checkpoint_id: str | None = None
    ) -> list[Record]:
        return chain_from(await self._records(thread_id, checkpoint_id, links_of), checkpoint_id)

    async def _records(
        self,
        thread_id: str,
        checkpoint_id: str | None,
        choose: Callable[[Sequence[Row], Row], list[Row]],
    ) -> list[Record]:
        """Return the records that `choose` returns for all rows and that of a checkpoint.

        If the thread is as this process saw it last, one request reads all of them.
        """
        thread = self._known.get(thread_id)
        for _ in range(_ATTEMPTS):
            chosen: list[Row] = []
            if thread is not None:
                thread = await self._whole(thread)
                rows = thread.all_rows
                row = row_of(rows, checkpoint_id)
                chosen = [] if row is None else choose(rows, row)
            # The thread is read last: if it is unchanged then, the payloads were there before.
            *found, last = await self._fetch(thread_id, [*(row.token for row in chosen), ""])
            fresh = self._seen(thread_id, last)
            if fresh.is_empty:
                return []
            if thread is not None and fresh.place == thread.place:
                read = zip(chosen, found, strict=True)
                return [
                    read_record(thread_id, row, payload_of(each.get("_source")))
                    for row, each in read
                ]
            thread = fresh
        raise self._busy(thread_id)

    @override
    async def list_checkpoints(
        self, thread_id: str, limit: int | None = 10, *, before: int | None = None
    ) -> list[RecordHead]:
        thread = await self._read(thread_id)
        rows: Sequence[Row] = thread.rows
        if limit is None or before is not None or len(rows) < limit:
            rows = (await self._whole(thread)).all_rows
        wanted = [row for row in reversed(rows) if before is None or row.sequence < before]
        return newest_first((read_head(thread_id, row) for row in wanted[:limit]), limit, before)

    @override
    async def sequences(self, thread_id: str) -> list[int]:
        thread = await self._whole(await self._read(thread_id))
        return [row.sequence for row in reversed(thread.all_rows)]

    @override
    async def delete(
        self,
        thread_id: str,
        revisions: Collection[int] | None = None,
        *,
        rebased: Sequence[Record] = (),
    ) -> int:
        remove = partial(removed, revisions=revisions, rebased=rebased)
        try:
            return await self._change(thread_id, remove)
        except CheckpointCorruptError:
            if revisions is not None:
                raise
            return await self._discard(Thread(thread_id=thread_id))

    async def _discard(self, thread: Thread) -> int:
        """Delete the document of a damaged thread, and return how many there were.

        Its other documents stay, since nothing tells which they are.
        """
        self._known.discard(thread.thread_id)
        (item,) = await self._send([removal(thread)])
        if error := self._connection.refusal(item):
            raise error
        return int(item["result"] == "deleted")

    @override
    async def list_threads(
        self, limit: int = 100, *, prefix: str | None = None, after: str | None = None
    ) -> list[str]:
        check_range(prefix, after)
        prefix = prefix or ""
        await self._connection.refresh(CHECKPOINTS)
        found: set[str] = set()
        # Older servers take no long texts in a range, but here they do.
        cursor: list[Any] | None = None
        if after is not None:
            ties = -1 if len(after) >= LONGEST_KEY else 2**63 - 1
            cursor = [after[:LONGEST_KEY], ties]
        # The names of one key come together, in any order.
        while limit and (len(found) < limit or len(cursor[0] if cursor else "") >= LONGEST_KEY):
            size = min(max(limit - len(found), 1), _PAGE)
            hits = await self._search(size, prefix, cursor)
            names = [thread_name(each.get("_source"), _name) for each in hits]
            found |= {n for n in names if n.startswith(prefix) and (after is None or n > after)}
            if len(hits) < size:
                break
            cursor = hits[-1]["sort"]
        return heapq.nsmallest(limit, found)

    async def _search(self, size: int, prefix: str, cursor: list[Any] | None) -> list[Any]:
        filters: list[Any] = [{"exists": {"field": "thread"}}]
        if prefix:
            filters.append({"prefix": {"thread": prefix[:_LONGEST_PREFIX]}})
        body = {
            "size": size,
            "_source": ["body.name"],
            "track_total_hits": False,
            "sort": [{"thread": "asc"}, {"_seq_no": "asc"}],
            "query": {"bool": {"filter": filters}},
            **({} if cursor is None else {"search_after": cursor}),
        }
        params = {"allow_partial_search_results": "false"}
        answer = await self._connection.on(CHECKPOINTS, "_search", body, params=params)
        hits: list[Any] = answer["hits"]["hits"]
        return hits

    @override
    async def copy_thread(self, source: str, target: str, *, through: int | None = None) -> int:
        def choose(rows: Sequence[Row], newest: Row) -> list[Row]:
            last = newest.sequence if through is None else through
            return [row for row in rows if row.sequence <= last]

        for attempt in range(_ATTEMPTS):
            before = await self._whole(await self._read(target))
            if not before.is_empty:
                raise CheckpointConflictError(target, None, before.newest)
            records = await self._records(source, None, choose)
            if not records:
                return 0
            new = {new_token(): copied(record, target, through) for record in records}
            after = before.rewritten(to_row(r, r.sequence, token) for token, r in new.items())
            payloads = {token: record.payload for token, record in new.items()}
            change = Change(before=before, after=after, payloads=payloads)
            if await self._commit(change.marked(new_token())):
                return len(records)
            await self._remove(after, [*new, *dict(after.pages)])
            await _pause(attempt)
        raise self._busy(target)

    @override
    async def _heads_of(self, threads: Sequence[str]) -> list[RecordHead]:
        names = [document(digest_of(thread_id)) for thread_id in threads]
        found = await self._connection.mget(names, CHECKPOINTS)
        read = [read_thread(name, each) for name, each in zip(threads, found, strict=True)]
        return [
            read_head(thread.thread_id, row)
            for thread in read
            for row in (await self._whole(thread)).all_rows
        ]

    @override
    async def reclaim(self) -> None:
        params = {"only_expunge_deletes": "true"}
        try:
            await self._connection.on(CHECKPOINTS, "_forcemerge", params=params)
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


def _name(source: Any) -> str:
    name: str = source["body"]["name"]
    return name


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
