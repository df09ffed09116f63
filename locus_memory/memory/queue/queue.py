"""The jobs that wait for extraction, in the store: they outlive the process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol, Self

from locus_memory._internal.recent import RecentlyUsed
from locus_memory.errors import VersionConflictError
from locus_memory.events import emit
from locus_memory.memory.extraction.thread import (
    Cursor,
    Fork,
    MarkedTurn,
    document,
    is_worth_reading,
)
from locus_memory.memory.queue.lease import Lease
from locus_memory.memory.scope import Scope
from locus_memory.store.base import BaseStore, scan_all, write_together
from locus_memory.store.encoding import encode_namespace
from locus_memory.store.item import Delete, Namespace, Put, StoreItem

__all__ = ["ExtractionQueue", "Job", "Outcome", "Waiting"]

_ATTEMPTS: Final = 100
_DIGITS: Final = 16
_REMEMBERED: Final = 1_024
"""The number of threads whose cursors are cached."""

_News = tuple[Cursor, list[dict[str, Any]]]
"""The cursor behind new messages, and their documents with their numbers."""


@dataclass(frozen=True, slots=True)
class Job:
    """New messages of one thread that wait for extraction.

    Attributes:
        key: Its key in the queue; the jobs of one lane are in the order of their keys.
        version: The store's version of it.
        namespace: The scope of the memories.
        thread: The thread.
        messages: A `document` of each message, with its `number` in the thread.
        cursor: The thread's cursor once this job was queued.
        attempts: How often it was tried.
        lease: The lease of the process that works on it, or `None`.
        queued_at: The moment it was queued, ISO 8601 in UTC; `None` if unknown.
        agent: The agent, if it is known.
        read: What was extracted from the messages already: the `current_key` of each memory, its
            salience, and the ids of the messages that state it; `None`: nothing was tried.
    """

    key: str
    version: int
    namespace: Namespace
    thread: str
    messages: list[dict[str, Any]]
    cursor: Cursor
    attempts: int = 0
    lease: Mapping[str, Any] | None = None
    queued_at: str | None = None
    agent: str | None = None
    read: Sequence[tuple[str, float, Sequence[str]]] | None = None

    @property
    def lane(self) -> str:
        """The thread's part of the key."""
        return self.lane_of(self.key)

    @property
    def message_ids(self) -> list[str]:
        """The ids of the messages; without an id, the number in the thread, such as `#3`."""
        return [each["id"] or f"#{each['number']}" for each in self.messages]

    @property
    def characters(self) -> int:
        """How many characters the user and the assistant said."""
        return sum(
            len(each["content"].strip())
            for each in self.messages
            if each["role"] in ("user", "assistant")
        )

    @staticmethod
    def lane_of(key: str) -> str:
        """Return the thread's part of a key."""
        return key[:-_DIGITS]

    def to_value(self) -> dict[str, Any]:
        """Return the job as plain JSON."""
        agent = {} if self.agent is None else {"agent": self.agent}
        read = {} if self.read is None else {"read": [[n, s, [*ids]] for n, s, ids in self.read]}
        return {
            **agent,
            **read,
            "namespace": list(self.namespace),
            "thread": self.thread,
            "messages": self.messages,
            "cursor": self.cursor.to_value(),
            "attempts": self.attempts,
            "lease": None if self.lease is None else dict(self.lease),
            "queued_at": self.queued_at,
        }

    @classmethod
    def from_item(cls, item: StoreItem) -> Self | None:
        """Return the job of an item, or `None` if it is not one of this library."""
        value = item.value
        try:
            return cls(
                item.key,
                item.version,
                tuple(value["namespace"]),
                value["thread"],
                value["messages"],
                Cursor.from_value(value["cursor"]),
                value["attempts"],
                value["lease"],
                value.get("queued_at"),
                value.get("agent"),
                value.get("read"),
            )
        except (KeyError, TypeError) as error:
            emit("memory.queue_unreadable", error=error)
            return None


@dataclass(slots=True)
class Waiting:
    """The jobs of one thread that wait, as far as their names and moments say.

    Attributes:
        keys: Their keys.
        queued_at: The moment of the last of them, ISO 8601 in UTC; `None` if unknown.
    """

    keys: set[str] = field(default_factory=set[str])
    queued_at: str | None = None


class Outcome(Protocol):
    """The results of jobs of one thread, which are written together with their deletion."""

    @property
    def jobs(self) -> Sequence[Job]:
        """The jobs that are done, oldest first."""
        ...

    async def operations(self) -> Sequence[Put | Delete]:
        """Return the writes, planned on what is stored now; called again if that changed."""
        ...

    def written(self) -> None:
        """Report the results, once they are written."""
        ...


class ExtractionQueue:
    """Jobs of all threads below one namespace, and the cursors of these threads.

    Args:
        store: The store, which the queue never closes.
        scope: The scope whose namespace has the queue.
        now: Returns the present moment, ISO 8601 in UTC.
        record: Returns what is written together with a new job, always the same for the same
            job; `None`: nothing.
    """

    def __init__(
        self,
        store: BaseStore,
        scope: Scope,
        now: Callable[[], str],
        record: Callable[[Job], Sequence[Put]] | None = None,
    ) -> None:
        self._store = store
        self._now = now
        self._record = record
        self._namespace = scope.queue
        self._cursors = RecentlyUsed[tuple[Cursor, int]](_REMEMBERED)

    async def add(
        self,
        scope: Scope,
        thread: str,
        said: Sequence[Any],
        fork: Fork | None = None,
        agent: str | None = None,
    ) -> Job | None:
        """Queue the new messages of a conversation, and move the thread's cursor behind them.

        A thread without a cursor starts with that of the thread from which it was forked, as far
        as their messages are the same.

        Both are written together, with what `record` returns: atomically if the store has
        transactions. Without transactions, the job is written first. If its process is killed
        before it moves the cursor, a later call of `add` moves it.

        Returns:
            The job; `None` if there are no new messages, and nothing was written.
        """

        async def news(cursor: Cursor, version: int) -> _News | None:
            if version == 0 and fork is not None:
                cursor = (await self._cursor(scope, fork.thread))[0].forked(said, fork.shared)
            start, before = cursor.unseen(said)
            if not is_worth_reading(said[start:]):
                return None
            messages = [
                {**document(message), "number": number}
                for number, message in enumerate(said[start:], before + 1)
            ]
            return cursor.after(said, start, before), messages

        return await self._queued(scope, thread, news, self._now(), agent)

    async def add_turns(
        self, scope: Scope, thread: str, turns: Sequence[MarkedTurn], at: str, agent: str
    ) -> Job | None:
        """Queue the turns of a conversation that are not yet known by their marks, as `add`.

        Args:
            scope: The scope of the memories.
            thread: The name of the conversation.
            turns: Turns of it, oldest first.
            at: The moment of all of them, ISO 8601 in UTC.
            agent: The agent.
        """

        async def news(cursor: Cursor, version: int) -> _News | None:
            del version
            return cursor.taking(turns)

        return await self._queued(scope, thread, news, at, agent)

    async def record_turns(
        self, scope: Scope, thread: str, turns: Sequence[MarkedTurn], at: str
    ) -> int:
        """Write what `record` returns for turns that are not yet known, without a job.

        Returns:
            How many turns were new.
        """
        for _ in range(_ATTEMPTS):
            cursor, version = await self._cursor(scope, thread)
            moved, messages = cursor.noting(turns)
            if moved == cursor:
                return 0
            job = Job("", 0, scope.namespace, thread, messages, moved, queued_at=at)
            self._cursors.discard(scope.lane(thread))
            with suppress(VersionConflictError):
                await write_together(
                    self._store, [*self._recorded(job), _cursor_put(scope, job, version)]
                )
                return len(moved.marks) - len(cursor.marks)
        raise VersionConflictError(0, 1)

    async def _queued(
        self,
        scope: Scope,
        thread: str,
        news: Callable[[Cursor, int], Awaitable[_News | None]],
        at: str,
        agent: str | None,
    ) -> Job | None:
        """Write a job of the new messages; asks again for them while another writer is faster."""
        for _ in range(_ATTEMPTS):
            cursor, version = await self._cursor(scope, thread)
            found = await news(cursor, version)
            if found is None:
                return None
            moved, messages = found
            key = f"{scope.lane(thread)}{moved.sequence:0{_DIGITS}}"
            job = Job(key, 1, scope.namespace, thread, messages, moved, queued_at=at, agent=agent)
            # Until the write succeeds, the stored cursor is unknown.
            self._cursors.discard(scope.lane(thread))
            try:
                await write_together(
                    self._store,
                    [self._put(job, 0), *self._recorded(job), _cursor_put(scope, job, version)],
                )
            except VersionConflictError:
                await self._adopt(scope, job, version)
            else:
                self._cursors.put(scope.lane(thread), (moved, version + 1))
                return job
        raise VersionConflictError(0, 1)

    def _recorded(self, job: Job) -> Sequence[Put]:
        return () if self._record is None else self._record(job)

    async def _cursor(self, scope: Scope, thread: str) -> tuple[Cursor, int]:
        """Return a thread's cursor and the store's version of it, 0 if there is none.

        The cursor that this process wrote last is good enough: if another process moved it
        since, the next write is refused, and this process reads it. Without transactions, a job
        would be written before that is found out.
        """
        is_safe = self._record is None or self._store.capabilities.transactions
        known = self._cursors.get(scope.lane(thread)) if is_safe else None
        if known is None:
            known = await self._stored(scope, thread)
        return known

    async def _stored(self, scope: Scope, thread: str) -> tuple[Cursor, int]:
        item = await self._store.get_item(scope.cursors, thread)
        return (Cursor(), 0) if item is None else (Cursor.from_value(item.value), item.version)

    async def waiting(self, lane: str) -> list[Job]:
        """Return the jobs of a thread, in order."""
        items = [item async for item in scan_all(self._store, self._namespace, prefix=lane)]
        return [job for job in map(Job.from_item, items) if job is not None]

    async def unread(self, scope: Scope) -> set[tuple[str, int]]:
        """Return the thread and the number of each message of a scope that waits."""
        found: set[tuple[str, int]] = set()
        # A lane begins with the namespace of its scope.
        start = encode_namespace(scope.namespace)
        async for item in scan_all(self._store, self._namespace, prefix=start):
            job = Job.from_item(item)
            if job is not None and job.namespace == scope.namespace:
                found.update((job.thread, each["number"]) for each in job.messages)
        return found

    async def lanes(self) -> dict[str, Waiting]:
        """Return the jobs of all threads, by their lanes."""
        found: dict[str, Waiting] = {}
        async for item in scan_all(self._store, self._namespace):
            each = found.setdefault(Job.lane_of(item.key), Waiting())
            each.keys.add(item.key)
            value = item.value
            each.queued_at = value.get("queued_at") if isinstance(value, Mapping) else None
        return found

    async def claim(self, job: Job, lease: Lease, now: float) -> Job | None:
        """Put a job under a lease, as one more attempt; `None`: another process has it."""
        if Lease.holds(job.lease, now):
            return None
        claimed = replace(job, lease=lease.to_value(), attempts=job.attempts + 1)
        return await self._replace(claimed)

    async def mark_read(self, job: Job, read: Sequence[tuple[str, float, Sequence[str]]]) -> None:
        """Record what was extracted from a job, unless another writer changed it meanwhile."""
        await self._replace(replace(job, read=read))

    async def give_back(self, job: Job) -> None:
        """Release a claimed job whose attempt was interrupted."""
        await self._replace(replace(job, lease=None, attempts=job.attempts - 1))

    async def finish(self, jobs: Sequence[Job]) -> None:
        """Delete jobs of one thread from the queue, once its cursor is behind them all."""
        if jobs:
            await self._settle(jobs[-1])
        await self._store.delete_batch([(self._namespace, job.key) for job in jobs])

    async def complete(self, outcome: Outcome) -> bool:
        """Write the results of jobs, delete the jobs, and move the cursor behind them, at once.

        All of it is atomic if the store has transactions. Without transactions, the results are
        written first, and the first job is deleted last: as long as it exists, the work can be
        repeated.

        Returns:
            Whether it is written; `False`: another process has the jobs now, or they were erased.
        """
        jobs = outcome.jobs
        for _ in range(_ATTEMPTS):
            held = await self._held(jobs)
            if held is None:
                return False
            head, *rest = [Delete(namespace=self._namespace, key=job.key) for job in jobs]
            if self._store.capabilities.transactions:
                rest = [replace(each, if_version=held[each.key]) for each in rest]
            operations = [
                *await outcome.operations(),
                *await self._settling(jobs[-1]),
                *reversed(rest),
                replace(head, if_version=jobs[0].version),
            ]
            try:
                await write_together(self._store, operations)
            except VersionConflictError:
                self._cursors.discard(jobs[0].lane)
            else:
                return True
        raise VersionConflictError(0, 1)

    async def holds(self, jobs: Sequence[Job]) -> bool:
        """Return whether jobs of one thread are still this process's, and none was erased.

        Everything that an extractor makes of them is written after this was asked: the owner of
        the messages may have been forgotten while the extractor worked, or one of them.

        Args:
            jobs: The jobs; the first one was claimed.
        """
        return await self._held(jobs) is not None

    async def _held(self, jobs: Sequence[Job]) -> dict[str, int] | None:
        """Return the stored versions of jobs; `None` if one is gone, or the first one changed."""
        there = {job.key: job.version for job in await self.waiting(jobs[0].lane)}
        is_held = there.get(jobs[0].key) == jobs[0].version
        return there if is_held and all(job.key in there for job in jobs) else None

    async def fail(self, jobs: Sequence[Job], most: int) -> list[Job]:
        """Leave jobs for another attempt; the attempt of the first is counted already.

        Returns:
            The jobs that had the `most` attempts, which are deleted from the queue.
        """
        head, *rest = jobs
        tried = [head, *(replace(job, attempts=job.attempts + 1) for job in rest)]
        for job in tried:
            if job.attempts < most:
                await self._replace(replace(job, lease=None))
        spent = [job for job in tried if job.attempts >= most]
        await self.finish(spent)
        return spent

    async def _settle(self, job: Job) -> None:
        """Move the cursor behind a job, if its process was killed before it did.

        Once the job is deleted, nothing else records that its messages were seen.
        """
        with suppress(VersionConflictError):
            await write_together(self._store, await self._settling(job))

    async def _settling(self, job: Job) -> list[Put]:
        scope = Scope(job.namespace)
        known = self._cursors.get(job.lane)
        if known is None or known[0].sequence < job.cursor.sequence:
            cursor, version = await self._stored(scope, job.thread)
            if cursor.sequence < job.cursor.sequence:
                return [*self._recorded(job), _cursor_put(scope, job, version)]
        return []

    async def _replace(self, job: Job) -> Job | None:
        try:
            await write_together(self._store, [self._put(job, job.version)])
        except VersionConflictError:
            return None
        return replace(job, version=job.version + 1)

    async def _adopt(self, scope: Scope, wanted: Job, version: int) -> None:
        """Move the cursor behind a job that is already queued, unless it was moved already.

        If it is the wanted job itself, and another process moved the cursor elsewhere, the
        messages are in other jobs: it is deleted again.
        """
        item = await self._store.get_item(self._namespace, wanted.key)
        job = None if item is None else Job.from_item(item)
        if item is None or job is None:
            return
        with suppress(VersionConflictError):
            if self._is_doubled(job, wanted, (await self._stored(scope, wanted.thread))[0]):
                await self._store.delete(self._namespace, job.key, if_version=item.version)
            else:
                await write_together(
                    self._store, [*self._recorded(job), _cursor_put(scope, job, version)]
                )

    def _is_doubled(self, job: Job, wanted: Job, cursor: Cursor) -> bool:
        is_own = job.version == wanted.version and job.messages == wanted.messages
        is_past = cursor.sequence >= wanted.cursor.sequence and cursor != wanted.cursor
        return self._record is not None and is_own and is_past

    def _put(self, job: Job, version: int) -> Put:
        value = job.to_value()
        return Put(namespace=self._namespace, key=job.key, value=value, if_version=version, text="")


def _cursor_put(scope: Scope, job: Job, version: int) -> Put:
    value = job.cursor.to_value()
    return Put(namespace=scope.cursors, key=job.thread, value=value, if_version=version, text="")
