"""Checkpoints in OpenSearch: a save is one bulk request, and no verb waits for a refresh.

`threads.py` describes the documents of a thread, and the changes of them.
"""

from __future__ import annotations

import heapq
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, Generic, Unpack

from typing_extensions import override

from locus_memory._internal.options import Keywords, checked
from locus_memory._internal.recent import RecentlyUsed
from locus_memory.backends.opensearch.connection.connection import (
    Item,
    OpenSearchConnection,
)
from locus_memory.backends.opensearch.connection.driver import Client
from locus_memory.backends.opensearch.options import OpenSearchKeywords, OpenSearchOptions
from locus_memory.backends.opensearch.schema import CHECKPOINTS
from locus_memory.backends.opensearch.threads import (
    DIGEST,
    LONGEST_KEY,
    Thread,
    digest_of,
    document,
    payload_of,
    read_page,
    read_thread,
    removal,
    written,
)
from locus_memory.backends.record_lists.rows import (
    Change,
    ChooseRows,
    Row,
    read_head,
    read_record,
)
from locus_memory.backends.record_lists.storage import ATTEMPTS, ListStorage
from locus_memory.backends.record_rows import thread_name
from locus_memory.checkpoint.base import StateT
from locus_memory.checkpoint.chain import CheckpointerOptions, DeltaCheckpointer
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.checkpoint.storage import check_range
from locus_memory.errors import BackendError, CheckpointCorruptError
from locus_memory.events import emit
from locus_memory.store.listing import keys_in_range

__all__ = ["OpenSearchCheckpointer", "OpenSearchDeltaStorage"]

_MARKS: Final = 8
"""How many writes a document remembers."""

_REMEMBERED: Final = 2000
"""How many threads and pages are remembered; each is some kilobytes."""

_PAGE: Final = 1000
"""The number of threads of one search."""

_LONGEST_PREFIX: Final = 200
"""The most characters of a prefix query; 2.19 takes about 1,000 bytes."""

_CONFLICT: Final = 409
_NOT_FOUND: Final = 404


class OpenSearchDeltaStorage(ListStorage[OpenSearchConnection, Thread]):
    """Records in an OpenSearch cluster, safe for many tasks, event loops and processes.

    Args:
        hosts: See `OpenSearchConnection`.
        client: A client, or a connection to share, which the storage does not close.
        options: How to connect, and the prefix of the indexes; ignored with a connection.
        **keywords: The fields of `OpenSearchOptions` by name, in place of `options`.

    Raises:
        ConfigurationError: An option is invalid.
    """

    provider = "opensearch"
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
        super().__init__(RecentlyUsed(_REMEMBERED, lambda thread: 1 + len(thread.older)))

    @override
    async def _load(
        self, thread_id: str, known: Thread | None = None, *, least: int | None = None
    ) -> Thread:
        thread = known or await self._read(thread_id)
        is_enough = least is not None and len(thread.tail) >= least
        return thread if is_enough else await self._whole(thread)

    @override
    async def _commit(self, before: Thread, change: Change[Thread], mark: str) -> bool:
        # An error is raised only if nothing is written, or all of it.
        thread_id = before.thread_id
        after = replace(change.after, marks=(*before.marks, mark)[-_MARKS:])
        *others, last = await self._send(written(before, after))
        if last["status"] == _CONFLICT:
            # The answer of an earlier attempt may have been lost.
            fresh = await self._whole(await self._read(thread_id))
            if mark not in fresh.marks:
                await self._remove(after, after.tokens() - before.tokens() - fresh.tokens())
                return False
            after = fresh
        elif error := self._connection.refusal(last):
            raise error
        else:
            after = after.as_written((last["_seq_no"], last["_primary_term"]))
        for error in filter(None, map(self._connection.refusal, others)):
            # What the document names was not written.
            if after.marks[-1] == mark:
                undone = replace(before, following=after.following, marks=after.marks)
                await self._send(written(after, undone))
            raise error
        self._known.put(thread_id, after)
        if change.removes:
            await self._remove(after, before.tokens() - after.tokens(), itself=after.is_empty)
        return True

    async def _remove(self, thread: Thread, tokens: Iterable[str], *, itself: bool = False) -> None:
        """Delete documents that a thread does not name; what cannot be deleted is left.

        Args:
            thread: The thread.
            tokens: The tokens of the documents.
            itself: Whether its own document is one of them: it has no records.
        """
        operations = [removal(thread, token) for token in tokens]
        if itself:
            self._known.discard(thread.thread_id)
            operations.append(removal(thread))
        try:
            for item in await self._send(operations):
                error = self._connection.refusal(item)
                if error is not None and item["status"] not in {_CONFLICT, _NOT_FOUND}:
                    emit("opensearch.not_removed", error=error, thread_id=thread.thread_id)
        except BackendError as error:
            emit("opensearch.not_removed", error=error, thread_id=thread.thread_id)

    async def _send(self, operations: Iterable[bytes]) -> list[Item]:
        return await self._connection.bulk(list(operations), CHECKPOINTS, again=True)

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
        if thread.tag is None:
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
        for _ in range(ATTEMPTS):
            missing = thread.missing()
            if not missing:
                return thread
            # The thread is read last: if it is unchanged then, the pages were there before.
            *found, last = await self._fetch(thread_id, [*missing, ""])
            fresh = self._seen(thread_id, last)
            if fresh.tag == thread.tag:
                read = zip(missing, found, strict=True)
                pages = {token: read_page(thread_id, each) for token, each in read}
                fresh = replace(fresh, older={**fresh.older, **pages})
                self._known.put(thread_id, fresh)
            thread = fresh
        raise self._busy(thread_id)

    @override
    async def _records(self, thread_id: str, choose: ChooseRows) -> list[Record]:
        # If the thread is as this process saw it last, one request reads all of it.
        thread = self._known.get(thread_id)
        for _ in range(ATTEMPTS):
            chosen: Sequence[Row] = []
            if thread is not None:
                thread = await self._whole(thread)
                chosen = choose(thread.rows)
            # The list is read last: if it is unchanged then, the payloads were there before.
            *found, last = await self._fetch(thread_id, [*(row.place for row in chosen), ""])
            fresh = self._seen(thread_id, last)
            if fresh.is_empty:
                return []
            if thread is not None and fresh.tag == thread.tag:
                pairs = zip(chosen, found, strict=True)
                return [
                    read_record(thread_id, row, payload_of(each.get("_source")))
                    for row, each in pairs
                ]
            thread = fresh
        raise self._busy(thread_id)

    @override
    async def _discard(self, thread_id: str) -> int:
        thread, names = Thread(thread_id=thread_id), [""]
        # Found before its own document is deleted: another save may make that anew.
        async for hits in self._named({"term": {"_routing": digest_of(thread_id)}}):
            names += [each["_id"][DIGEST:] for each in hits]
        *_, item = await self._send(removal(thread, each) for each in sorted(set(names))[::-1])
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
            found.update(keys_in_range(names, prefix, after))
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
            "sort": [{"thread": "asc"}, {"_seq_no": "asc"}],
            "query": {"bool": {"filter": filters}},
        }
        return await self._hits(body, cursor)

    async def _hits(self, body: dict[str, Any], cursor: list[Any] | None) -> list[Any]:
        """Return the hits of a search after a place in its order."""
        after = {} if cursor is None else {"search_after": cursor}
        answer = await self._connection.on(
            CHECKPOINTS,
            "_search",
            {"track_total_hits": False, **body, **after},
            params={"allow_partial_search_results": "false"},
        )
        hits: list[Any] = answer["hits"]["hits"]
        return hits

    @override
    async def _heads_of(self, threads: Sequence[str]) -> list[RecordHead]:
        names = [document(digest_of(thread_id)) for thread_id in threads]
        found = await self._connection.mget(names, CHECKPOINTS)
        read = [read_thread(name, each) for name, each in zip(threads, found, strict=True)]
        return [
            read_head(thread.thread_id, row)
            for thread in read
            for row in (await self._whole(thread)).rows
        ]

    async def _named(self, query: dict[str, Any]) -> AsyncIterator[list[Any]]:
        """Yield the hits of a query by page, with the names of the documents alone."""
        await self._connection.refresh(CHECKPOINTS)
        body = {"size": _PAGE, "_source": False, "sort": [{"_seq_no": "asc"}], "query": query}
        cursor: list[Any] | None = None
        while hits := await self._hits(body, cursor):
            yield hits
            cursor = hits[-1]["sort"]

    async def _remove_unnamed(self) -> None:
        """Delete the documents that no thread names: a process was killed before it deleted them.

        A document may also be new, of a save that did not write the thread's own yet. So the
        thread's own is written first: the save is refused then, and sends all of it again.
        """
        async for hits in self._named({"bool": {"must_not": [{"exists": {"field": "thread"}}]}}):
            found: dict[str, set[str]] = {}
            for each in hits:
                found.setdefault(each["_id"][:DIGEST], set()).add(each["_id"][DIGEST:])
            threads = await self._connection.mget(list(map(document, found)), CHECKPOINTS)
            for (digest, tokens), answer in zip(found.items(), threads, strict=True):
                await self._remove_others(digest, answer, tokens - {""})

    async def _remove_others(self, digest: str, answer: Item, tokens: set[str]) -> None:
        """Delete those of the documents of a thread that it does not name."""
        try:
            thread = await self._whole(read_thread(None, answer))
        except CheckpointCorruptError:
            # `vacuum` tells of it.
            return
        others = tokens - thread.tokens()
        if not others or digest_of(thread.thread_id) != digest:
            return
        (last,) = await self._send(written(thread, thread))
        if self._connection.refusal(last) is None:
            thread = thread.as_written((last["_seq_no"], last["_primary_term"]))
            self._known.put(thread.thread_id, thread)
            await self._remove(thread, others, itself=thread.is_empty)

    @override
    async def reclaim(self) -> None:
        await self._remove_unnamed()
        params = {"only_expunge_deletes": "true"}
        try:
            await self._connection.on(CHECKPOINTS, "_forcemerge", params=params)
        except BackendError as error:
            # The server merges by itself, sooner or later.
            emit("opensearch.not_merged", error=error)

    @override
    async def open(self) -> None:
        await self._connection.ensure(CHECKPOINTS)


def _name(source: Any) -> str:
    name: str = source["body"]["name"]
    return name


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
