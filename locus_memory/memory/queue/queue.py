"""The jobs that wait for extraction, in the store: they outlive the process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from locus_memory._internal.recent import RecentlyUsed
from locus_memory.errors import VersionConflictError
from locus_memory.events import emit
from locus_memory.memory.batch import write_together
from locus_memory.memory.extraction.thread import Cursor, Fork, document, is_worth_reading
from locus_memory.memory.queue.lease import Lease
from locus_memory.memory.scope import Scope
from locus_memory.store.base import BaseStore, scan_all
from locus_memory.store.item import Namespace, Put, StoreItem

__all__ = ["ExtractionQueue", "Job"]

_ATTEMPTS: Final = 100
_DIGITS: Final = 16
_REMEMBERED: Final = 1_024
"""The number of threads whose cursors are cached."""


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

    @property
    def lane(self) -> str:
        """The thread's part of the key."""
        return self.lane_of(self.key)

    @property
    def message_ids(self) -> list[str]:
        """The ids of the messages; without an id, the number in the thread, such as `#3`."""
        return [each["id"] or f"#{each['number']}" for each in self.messages]

    @staticmethod
    def lane_of(key: str) -> str:
        """Return the thread's part of a key."""
        return key[:-_DIGITS]

    def to_value(self) -> dict[str, Any]:
        """Return the job as plain JSON."""
        return {
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
            )
        except (KeyError, TypeError) as error:
            emit("memory.queue_unreadable", error=error)
            return None


class ExtractionQueue:
    """Jobs of all threads below one namespace, and the cursors of these threads.

    Args:
        store: The store, which the queue never closes.
        scope: The scope whose namespace has the queue.
        now: Returns the present moment, ISO 8601 in UTC.
    """

    def __init__(self, store: BaseStore, scope: Scope, now: Callable[[], str]) -> None:
        self._store = store
        self._now = now
        self._namespace = scope.queue
        self._cursors = RecentlyUsed[tuple[Cursor, int]](_REMEMBERED)

    async def add(
        self, scope: Scope, thread: str, said: Sequence[Any], fork: Fork | None = None
    ) -> Job | None:
        """Queue the new messages of a conversation, and move the thread's cursor behind them.

        A thread without a cursor starts with that of the thread from which it was forked, as far
        as their messages are the same.

        Both are written together: atomically if the store has transactions. Without transactions,
        the job is written first. If its process is killed before it moves the cursor, a later
        call of `add` moves it.

        Returns:
            The job; `None` if there are no new messages, and nothing was written.
        """
        for _ in range(_ATTEMPTS):
            cursor, version = await self._cursor(scope, thread)
            if version == 0 and fork is not None:
                cursor = (await self._cursor(scope, fork.thread))[0].forked(said, fork.shared)
            start, before = cursor.unseen(said)
            if not is_worth_reading(said[start:]):
                return None
            moved = cursor.after(said, start, before)
            messages = [
                {**document(message), "number": number}
                for number, message in enumerate(said[start:], before + 1)
            ]
            key = f"{scope.lane(thread)}{moved.sequence:0{_DIGITS}}"
            queued_at = self._now()
            job = Job(key, 1, scope.namespace, thread, messages, moved, queued_at=queued_at)
            # Until the write succeeds, the stored cursor is unknown.
            self._cursors.discard(scope.lane(thread))
            try:
                await write_together(
                    self._store, [self._put(job, 0), _cursor_put(scope, job, version)]
                )
            except VersionConflictError:
                await self._adopt(scope, key, version)
            else:
                self._cursors.put(scope.lane(thread), (moved, version + 1))
                return job
        raise VersionConflictError(0, 1)

    async def _cursor(self, scope: Scope, thread: str) -> tuple[Cursor, int]:
        """Return a thread's cursor and the store's version of it, 0 if there is none.

        The cursor that this process wrote last is good enough: if another process moved it
        since, the next write is refused, and this process reads it.
        """
        known = self._cursors.get(scope.lane(thread))
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

    async def names(self) -> list[str]:
        """Return the keys of all jobs of all threads."""
        return [item.key async for item in scan_all(self._store, self._namespace)]

    async def claim(self, job: Job, lease: Lease, now: float) -> Job | None:
        """Put a job under a lease, as one more attempt; `None`: another process has it."""
        if Lease.holds(job.lease, now):
            return None
        claimed = replace(job, lease=lease.to_value(), attempts=job.attempts + 1)
        return await self._replace(claimed)

    async def give_back(self, job: Job) -> None:
        """Release a claimed job whose attempt was interrupted."""
        await self._replace(replace(job, lease=None, attempts=job.attempts - 1))

    async def finish(self, jobs: Sequence[Job]) -> None:
        """Delete jobs of one thread from the queue, once its cursor is behind them all."""
        if jobs:
            await self._settle(jobs[-1])
        await self._store.delete_batch([(self._namespace, job.key) for job in jobs])

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
        scope = Scope(job.namespace)
        known = self._cursors.get(job.lane)
        if known is None or known[0].sequence < job.cursor.sequence:
            cursor, version = await self._stored(scope, job.thread)
            if cursor.sequence < job.cursor.sequence:
                with suppress(VersionConflictError):
                    await write_together(self._store, [_cursor_put(scope, job, version)])

    async def _replace(self, job: Job) -> Job | None:
        try:
            await write_together(self._store, [self._put(job, job.version)])
        except VersionConflictError:
            return None
        return replace(job, version=job.version + 1)

    async def _adopt(self, scope: Scope, key: str, version: int) -> None:
        """Move the cursor behind a job that is already queued, unless it was moved already."""
        item = await self._store.get_item(self._namespace, key)
        job = None if item is None else Job.from_item(item)
        if job is not None:
            with suppress(VersionConflictError):
                await write_together(self._store, [_cursor_put(scope, job, version)])

    def _put(self, job: Job, version: int) -> Put:
        value = job.to_value()
        return Put(namespace=self._namespace, key=job.key, value=value, if_version=version, text="")


def _cursor_put(scope: Scope, job: Job, version: int) -> Put:
    value = job.cursor.to_value()
    return Put(namespace=scope.cursors, key=job.thread, value=value, if_version=version, text="")
