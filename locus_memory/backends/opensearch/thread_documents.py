"""Reads and writes of the documents of threads, which `threads.py` describes."""

from __future__ import annotations

import heapq
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Generic, TypeVar

import orjson

from locus_memory.backends.opensearch.connection.connection import Item, OpenSearchConnection
from locus_memory.backends.opensearch.records import Row, digest_of, payload_line, payload_of
from locus_memory.backends.opensearch.schema import CHECKPOINTS
from locus_memory.backends.opensearch.threads import (
    LONGEST_KEY,
    Page,
    Thread,
    read_page,
    read_thread,
)
from locus_memory.backends.record_rows import thread_name
from locus_memory.errors import BackendError, CheckpointCorruptError, LocusMemoryError
from locus_memory.events import emit

__all__ = ["Commit", "ThreadDocuments"]

V = TypeVar("V")

_THREADS: Final = 1000
_PAGES: Final = 1000
"""How many threads and pages are remembered; each is some kilobytes."""

_TOGETHER: Final = 200
"""Documents of one read."""

_PAGE: Final = 1000
"""The number of threads of one search."""

_LONGEST_PREFIX: Final = 200
"""The most characters of a prefix query; 2.19 takes about 1,000 bytes."""

_CONFLICT: Final = 409
_NOT_FOUND: Final = 404


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A change of a thread.

    Attributes:
        before: The thread as it was read.
        after: The thread as it will be; its last mark is that of the change.
        payloads: The new payloads by their tokens.
        pages: The new pages by their tokens.
    """

    before: Thread
    after: Thread
    payloads: Mapping[str, bytes] = field(default_factory=dict)
    pages: Mapping[str, Page] = field(default_factory=dict)

    @property
    def mark(self) -> str:
        """The mark of the change."""
        return self.after.marks[-1]

    def lines(self) -> Iterator[bytes]:
        """Return the lines of the bulk request, the document of the thread last."""
        digest = digest_of(self.after.thread_id)
        for token, payload in self.payloads.items():
            yield _action("index", digest, token)
            yield payload_line(payload)
        for token, page in self.pages.items():
            yield _action("index", digest, token)
            yield page.line()
        kind = "create" if self.before.place is None else "index"
        yield _action(kind, digest, place=self.before.place)
        yield self.after.line()

    @property
    def size(self) -> int:
        """The number of its operations."""
        return len(self.payloads) + len(self.pages) + 1


class _Recent(Generic[V]):
    """The values that were used last, by name; any thread may call."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[str, V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, name: str) -> V | None:
        """Return a value if it is remembered."""
        with self._lock:
            if name in self._values:
                self._values.move_to_end(name)
            return self._values.get(name)

    def put(self, name: str, value: V) -> None:
        """Remember a value."""
        with self._lock:
            self._values[name] = value
            self._values.move_to_end(name)
            if len(self._values) > self._most:
                self._values.popitem(last=False)

    def drop(self, name: str) -> None:
        """Forget a value."""
        with self._lock:
            self._values.pop(name, None)


class ThreadDocuments:
    """The documents of threads in one index.

    Args:
        connection: The connection to the cluster.
    """

    def __init__(self, connection: OpenSearchConnection) -> None:
        self._connection = connection
        self._threads: _Recent[Thread] = _Recent(_THREADS)
        self._pages: _Recent[Page] = _Recent(_PAGES)

    def remembered(self, thread_id: str) -> Thread | None:
        """Return the thread as this process saw it last; a write finds out if it has changed."""
        return self._threads.get(thread_id)

    async def read(self, thread_id: str) -> Thread:
        """Return a thread as it is now.

        Raises:
            CheckpointCorruptError: Its document is damaged.
            BackendError: See `locus_memory.errors`.
        """
        (found,) = await self._fetch(thread_id, [""])
        return self._seen(thread_id, found)

    async def read_all(self, thread_ids: Sequence[str]) -> list[Thread]:
        """Return threads as they are now.

        Raises:
            CheckpointCorruptError: The document of one is damaged.
            BackendError: See `locus_memory.errors`.
        """
        found = await self._fetch_named([(thread_id, "") for thread_id in thread_ids])
        return [read_thread(name, each) for name, each in zip(thread_ids, found, strict=True)]

    async def read_with(
        self, thread_id: str, tokens: Sequence[str]
    ) -> tuple[Thread, dict[str, bytes | None]]:
        """Return a thread as it is now, and payloads by their tokens, in one request.

        Raises:
            CheckpointCorruptError: Its document is damaged.
            BackendError: See `locus_memory.errors`.
        """
        found, *rest = await self._fetch(thread_id, ["", *tokens])
        payloads = dict(zip(tokens, map(_payload, rest), strict=True))
        return self._seen(thread_id, found), payloads

    async def payloads(self, thread_id: str, tokens: Sequence[str]) -> dict[str, bytes | None]:
        """Return payloads by their tokens; `None`: there is no document, or it is damaged.

        Raises:
            BackendError: See `locus_memory.errors`.
        """
        found = await self._fetch(thread_id, tokens)
        return dict(zip(tokens, map(_payload, found), strict=True))

    def _seen(self, thread_id: str, found: Any) -> Thread:
        thread = read_thread(thread_id, found)
        if thread.place is None:
            self._threads.drop(thread_id)
        else:
            self._threads.put(thread_id, thread)
        return thread

    def remembered_pages(self, thread: Thread) -> list[Page] | None:
        """Return the pages of a thread, oldest first, if all of them are remembered."""
        found = [self._pages.get(token) for token, _ in thread.pages]
        pages = [page for page in found if page is not None]
        return pages if len(pages) == len(found) else None

    async def pages(self, thread: Thread) -> list[Page]:
        """Return the pages of a thread, oldest first.

        Raises:
            CheckpointCorruptError: A page is damaged or missing.
            BackendError: See `locus_memory.errors`.
        """
        pages = {token: self._pages.get(token) for token, _ in thread.pages}
        missing = [token for token, page in pages.items() if page is None]
        for token, found in zip(missing, await self._fetch(thread.thread_id, missing), strict=True):
            pages[token] = page = read_page(thread.thread_id, found)
            self._pages.put(token, page)
        return [page for page in pages.values() if page is not None]

    async def rows(self, thread: Thread) -> list[Row]:
        """Return all rows of a thread, oldest first.

        Raises:
            CheckpointCorruptError: A page is damaged, or missing although the thread has it.
            BackendError: See `locus_memory.errors`.
        """
        for _ in range(_TOGETHER):
            try:
                pages = await self.pages(thread)
            except CheckpointCorruptError:
                # A write may have replaced the page since the thread was read.
                fresh = await self.read(thread.thread_id)
                if fresh.place == thread.place:
                    raise
                thread = fresh
            else:
                return [*(row for page in pages for row in page.rows), *thread.rows]
        raise CheckpointCorruptError(thread.thread_id, None, "its pages kept changing")

    async def _fetch(self, thread_id: str, tokens: Sequence[str]) -> list[Any]:
        return await self._fetch_named([(thread_id, token) for token in tokens])

    async def _fetch_named(self, names: Sequence[tuple[str, str]]) -> list[Any]:
        """Return the server's answers for documents by thread and token, in order."""
        found: list[Any] = []
        for start in range(0, len(names), _TOGETHER):
            wanted = [_document(digest_of(t), token) for t, token in names[start:][:_TOGETHER]]
            work = partial(self._connection.mget, wanted, CHECKPOINTS)
            found += await self._connection.with_index(CHECKPOINTS, work)
        return found

    async def list_threads(self, limit: int, prefix: str, after: str | None) -> list[str]:
        """Return thread ids in code point order; see `DeltaStorage.list_threads`.

        Raises:
            CheckpointCorruptError: The name of a thread is damaged.
            BackendError: See `locus_memory.errors`.
        """
        await self._connection.with_index(
            CHECKPOINTS, partial(self._connection.refresh, CHECKPOINTS)
        )
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
            names = await self._names_of(hits)
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
            "_source": False,
            "track_total_hits": False,
            "sort": [{"thread": "asc"}, {"_seq_no": "asc"}],
            "query": {"bool": {"filter": filters}},
            **({} if cursor is None else {"search_after": cursor}),
        }
        path = f"/{self._connection.index(CHECKPOINTS)}/_search"
        params = {"allow_partial_search_results": "false"}
        work = partial(self._connection.request, "POST", path, body, params=params, again=True)
        answer = await self._connection.with_index(CHECKPOINTS, work)
        hits: list[Any] = answer["hits"]["hits"]
        return hits

    async def _names_of(self, hits: Sequence[Any]) -> list[str]:
        """Return the names of the threads of a search; those of long ones are read."""
        keys = [str(hit["sort"][0]) for hit in hits]
        names = [key for key in keys if len(key) < LONGEST_KEY]
        long = [h["_id"] for h, key in zip(hits, keys, strict=True) if len(key) >= LONGEST_KEY]
        if long:
            wanted = [{"_id": digest, "routing": digest} for digest in long]
            work = partial(self._connection.mget, wanted, CHECKPOINTS)
            found = await self._connection.with_index(CHECKPOINTS, work)
            names += [_name_of(each) for each in found if each["found"]]
        return names

    async def write_payloads(self, thread_id: str, payloads: Mapping[str, bytes]) -> None:
        """Write payloads by their tokens, which a later change names.

        Raises:
            BackendError: See `locus_memory.errors`.
        """
        digest = digest_of(thread_id)
        lines: list[bytes] = []
        for token, payload in payloads.items():
            lines += [_action("index", digest, token), payload_line(payload)]
        for item in await self._send(lines):
            if "error" in item:
                raise self._connection.refusal(item)

    async def commit(self, change: Commit) -> Thread | None:
        """Write a change, and return the thread; `None`: somebody else has changed it.

        Raises:
            BackendError: See `locus_memory.errors`; nothing is written, or all of it.
        """
        ((thread, items),) = await self._write([change])
        if thread is not None:
            return thread
        if items[-1]["status"] != _CONFLICT:
            raise self._connection.refusal(items[-1])
        # The answer of an earlier attempt may have been lost.
        fresh = await self.read(change.after.thread_id)
        return fresh if change.mark in fresh.marks else None

    async def commit_all(self, changes: Sequence[Commit]) -> list[Thread | None]:
        """Write changes of distinct threads in one request.

        Returns:
            The thread for each, or `None` for a change that `commit` has to write or to refuse.

        Raises:
            BackendError: See `locus_memory.errors`.
        """
        return [thread for thread, _ in await self._write(changes)]

    async def _write(self, changes: Sequence[Commit]) -> list[tuple[Thread | None, list[Item]]]:
        lines = [line for change in changes for line in change.lines()]
        items = iter(await self._send(lines))
        return [
            await self._written(change, [next(items) for _ in range(change.size)])
            for change in changes
        ]

    async def _send(self, lines: Sequence[bytes]) -> list[Item]:
        return await self._connection.with_index(
            CHECKPOINTS, lambda: self._connection.bulk(lines, CHECKPOINTS, again=True)
        )

    async def _written(self, change: Commit, items: list[Item]) -> tuple[Thread | None, list[Item]]:
        *others, last = items
        if "error" in last:
            self._threads.drop(change.after.thread_id)
            return None, items
        thread = replace(change.after, place=(last["_seq_no"], last["_primary_term"]))
        for item in others:
            if "error" in item:
                await self._undo(thread, change.before)
                raise self._connection.refusal(item)
        self._threads.put(thread.thread_id, thread)
        for token, page in change.pages.items():
            self._pages.put(token, page)
        return thread, items

    async def _undo(self, written: Thread, before: Thread) -> None:
        """Write the document of a thread as it was, since what it names was not written."""
        self._threads.drop(written.thread_id)
        restored = replace(before, following=written.following)
        await self._send(list(Commit(before=written, after=restored).lines()))

    async def discard(self, thread_id: str) -> int:
        """Delete the document of a damaged thread, and return how many there were.

        Its other documents stay, since nothing tells which they are.

        Raises:
            BackendError: See `locus_memory.errors`.
        """
        self._threads.drop(thread_id)
        (item,) = await self._send([_action("delete", digest_of(thread_id))])
        if "error" in item:
            raise self._connection.refusal(item)
        return int(item["result"] == "deleted")

    async def remove(
        self, thread_id: str, tokens: Iterable[str], emptied: Thread | None = None
    ) -> None:
        """Delete documents that no thread names any more; what cannot be deleted is left.

        Args:
            thread_id: The thread.
            tokens: Payloads and pages.
            emptied: The thread, if its own document can go because it has no records.
        """
        digest = digest_of(thread_id)
        lines = [_action("delete", digest, token) for token in tokens]
        if emptied is not None:
            lines.append(_action("delete", digest, place=emptied.place))
        try:
            items = await self._send(lines) if lines else []
        except BackendError as error:
            emit("opensearch.not_removed", error=error, thread_id=thread_id)
            return
        for item in items:
            if item["status"] not in {_CONFLICT, _NOT_FOUND} and "error" in item:
                refusal: LocusMemoryError = self._connection.refusal(item)
                emit("opensearch.not_removed", error=refusal, thread_id=thread_id)


def _name_of(found: Any) -> str:
    name = thread_name(found.get("_source"), lambda source: source["body"]["name"])
    return read_thread(name, found).thread_id


def _payload(found: Any) -> bytes | None:
    return payload_of(found.get("_source"))


def _document(digest: str, token: str) -> dict[str, Any]:
    """Return the name of a document of a thread; the token of the thread's own is empty."""
    return {"_id": digest + token, "routing": digest}


def _action(
    kind: str, digest: str, token: str = "", *, place: tuple[int, int] | None = None
) -> bytes:
    """Return the action line of an operation, on the condition that the document is unchanged."""
    condition = {} if place is None else {"if_seq_no": place[0], "if_primary_term": place[1]}
    return orjson.dumps({kind: {**_document(digest, token), **condition}})
