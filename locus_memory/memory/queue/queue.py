"""The jobs that wait for extraction, in the store: they outlive the process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile
from typing import Any, Final

from locus_memory._internal.recent import RecentlyUsed
from locus_memory.errors import VersionConflictError
from locus_memory.memory.extraction.thread import (
    Cursor,
    Fork,
    MarkedTurn,
    context_of,
    document,
    is_worth_reading,
    roles_and_texts,
)
from locus_memory.memory.queue.jobs import DIGITS, Job, News, Outcome, Waiting, sessions_of
from locus_memory.memory.queue.lease import Lease
from locus_memory.memory.scope import Scope
from locus_memory.memory.secrets.answers import WITHHELD, answers_in
from locus_memory.store.base import BaseStore, scan_all, write_together
from locus_memory.store.encoding import encode_namespace
from locus_memory.store.item import Delete, Put

__all__ = ["ExtractionQueue"]

_ATTEMPTS: Final = 100
_NEAR: Final = 8
"""How many messages back a secret is looked for that an answer of the assistant repeats."""

_REMEMBERED: Final = 1_024
"""The number of threads whose cursors are cached."""


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
        record: Callable[[Job], Awaitable[Sequence[Put]]] | None = None,
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

        async def news(cursor: Cursor, version: int) -> News | None:
            if version == 0 and fork is not None:
                cursor = (await self._cursor(scope, fork.thread))[0].forked(said, fork.shared)
            start, before = cursor.unseen(said)
            if not is_worth_reading(said[start:]):
                return None
            messages = _numbered(said[start:], before + 1)
            place = None if cursor.passed else context_of(said, start)
            context = None
            if place is not None:
                near = range(max(0, place - _NEAR), place + 1)
                told = _numbered([said[n] for n in near], before + 1 - start + near[0])
                context = _withheld(told)
            return News.of(cursor, cursor.after(said, start, before), messages, context)

        return await self._queued(scope, thread, news, self._now(), agent)

    async def pass_by(self, scope: Scope, thread: str, said: Sequence[Any]) -> None:
        """Move a thread's cursor behind messages that are off the record; nothing is queued."""
        for _ in range(_ATTEMPTS):
            cursor, version = await self._stored(scope, thread)
            start, before = cursor.unseen(said)
            if start == len(said):
                return
            self._cursors.discard(scope.lane(thread))
            moved = cursor.after(said, start, before, passed=True)
            with suppress(VersionConflictError):
                await write_together(self._store, [_cursor_put(scope, thread, moved, version)])
                return
        raise VersionConflictError(0, 1)

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

        async def news(cursor: Cursor, version: int) -> News | None:
            del version
            taken = cursor.taking(turns)
            if taken is None:
                return None
            moved, messages = taken
            return News.of(cursor, moved, messages, _before(turns, messages[0]))

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
            found = News.of(cursor, moved, messages)
            job = self._job_of(scope, thread, found, at=at)
            self._cursors.discard(scope.lane(thread))
            with suppress(VersionConflictError):
                await write_together(
                    self._store,
                    [
                        *await self._recorded(job),
                        _cursor_put(scope, job.thread, job.cursor, version),
                    ],
                )
                return len(moved.marks) - len(cursor.marks)
        raise VersionConflictError(0, 1)

    async def _queued(
        self,
        scope: Scope,
        thread: str,
        news: Callable[[Cursor, int], Awaitable[News | None]],
        at: str,
        agent: str | None,
    ) -> Job | None:
        """Write a job of the new messages; asks again for them while another writer is faster."""
        for _ in range(_ATTEMPTS):
            cursor, version = await self._cursor(scope, thread)
            found = await news(cursor, version)
            if found is None:
                return None
            job = self._job_of(scope, thread, found, at=at, agent=agent)
            # Until the write succeeds, the stored cursor is unknown.
            self._cursors.discard(scope.lane(thread))
            try:
                await write_together(
                    self._store,
                    [
                        self._put(job, 0),
                        *await self._recorded(job),
                        _cursor_put(scope, job.thread, job.cursor, version),
                    ],
                )
            except VersionConflictError:
                await self._adopt(scope, job, version)
            else:
                self._cursors.put(scope.lane(thread), (found.cursor, version + 1))
                return job
        raise VersionConflictError(0, 1)

    @staticmethod
    def _job_of(scope: Scope, thread: str, news: News, *, at: str, agent: str | None = None) -> Job:
        return Job(
            f"{scope.lane(thread)}{news.cursor.sequence:0{DIGITS}}",
            1,
            scope.namespace,
            thread,
            news.messages,
            news.cursor,
            queued_at=at,
            agent=agent,
            context=news.context,
            asked=news.asked,
        )

    async def _recorded(self, job: Job) -> Sequence[Put]:
        return () if self._record is None else await self._record(job)

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

    async def read_of(
        self, scope: Scope, thread: str, said: Sequence[Any], fork: Fork | None = None
    ) -> tuple[int, int]:
        """Return how many messages of a conversation extraction has read.

        Args:
            scope: The scope of the memories.
            thread: The thread.
            said: Its conversation.
            fork: As for `add`.

        Returns:
            How many of the first messages wait no more, and the number of the one before them.
        """
        cursor, version = await self._stored(scope, thread)
        if version == 0 and fork is not None:
            cursor = (await self._stored(scope, fork.thread))[0].forked(said, fork.shared)
        start, count = cursor.unseen(said)
        before = count - start
        jobs = await self.waiting(scope.lane(thread))
        if fork is not None:
            jobs += [
                job
                for job in await self.waiting(scope.lane(fork.thread))
                if job.messages[0]["number"] <= before + fork.shared
            ]
        read = min([count, *(job.messages[0]["number"] - 1 for job in jobs)])
        return max(0, read - before), before

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
            job = Job.from_item(item)
            each.keys[item.key] = 0 if job is None else job.characters
            each.queued_at = None if job is None else job.queued_at
        return found

    async def claim(
        self, sessions: Sequence[Sequence[Job]], lane: str, lease: Lease, now: float
    ) -> list[Job]:
        """Put the first job of each session under a lease, as one more attempt.

        Args:
            sessions: The jobs of each thread.
            lane: The thread without which nothing is claimed.
            lease: The lease.
            now: Seconds since the epoch.

        Returns:
            The jobs of the sessions that no other process has.
        """
        found: dict[str, list[Job]] = {}
        for head, *rest in sorted(sessions, key=lambda session: session[0].lane != lane):
            claimed = replace(head, lease=lease.to_value(), attempts=head.attempts + 1)
            held = None if Lease.holds(head.lease, now) else await self._replace(claimed)
            if held is not None:
                found[head.lane] = [held, *rest]
            elif head.lane == lane:
                break
        return [job for session in sessions for job in found.get(session[0].lane, ())]

    async def give_back(self, jobs: Sequence[Job]) -> None:
        """Release claimed jobs whose attempt was interrupted."""
        for head, *_ in sessions_of(jobs):
            await self._replace(replace(head, lease=None, attempts=head.attempts - 1))

    async def finish(self, jobs: Sequence[Job]) -> None:
        """Delete jobs from the queue, once the cursors of their threads are behind them all."""
        for session in sessions_of(jobs):
            await self._settle(session[-1])
        await self._store.delete_batch([(self._namespace, job.key) for job in jobs])

    async def complete(self, outcome: Outcome) -> bool:
        """Write the results of jobs, delete the jobs, and move the cursors behind them, at once.

        All of it is atomic if the store has transactions. Without transactions, the results are
        written first, and the first job of the last thread is deleted last: as long as it exists,
        the work can be repeated.

        Returns:
            Whether it is written; `False`: another process has the jobs now, or they were erased.
        """
        sessions = sessions_of(outcome.jobs)
        for _ in range(_ATTEMPTS):
            held = await self._held(outcome.jobs)
            if held is None:
                return False
            operations = [*await outcome.operations()]
            for session in sessions:
                operations += await self._settling(session[-1])
            for session in sessions:
                operations += self._deletions(session, held)
            try:
                await write_together(self._store, operations)
            except VersionConflictError:
                for session in sessions:
                    self._cursors.discard(session[0].lane)
            else:
                return True
        raise VersionConflictError(0, 1)

    def _deletions(self, session: Sequence[Job], held: Mapping[str, int]) -> list[Delete]:
        """Return the deletions of a thread's jobs: its first one, which was claimed, comes last."""
        head, *rest = [Delete(namespace=self._namespace, key=job.key) for job in session]
        if self._store.capabilities.transactions:
            rest = [replace(each, if_version=held[each.key]) for each in rest]
        return [*reversed(rest), replace(head, if_version=session[0].version)]

    async def holds(self, jobs: Sequence[Job]) -> bool:
        """Return whether jobs are still this process's, and none was erased.

        Everything that an extractor makes of them is written after this was asked: the owner of
        the messages may have been forgotten while the extractor worked, or one of them.

        Args:
            jobs: The jobs; the first one of each thread was claimed.
        """
        return await self._held(jobs) is not None

    async def _held(self, jobs: Sequence[Job]) -> dict[str, int] | None:
        """Return the stored versions of jobs; `None` if one is gone, or a claimed one changed."""
        held: dict[str, int] = {}
        for session in sessions_of(jobs):
            there = {job.key: job.version for job in await self.waiting(session[0].lane)}
            if there.get(session[0].key) != session[0].version:
                return None
            held |= there
        return held if all(job.key in held for job in jobs) else None

    async def fail(self, jobs: Sequence[Job], most: int) -> list[Job]:
        """Leave jobs for another attempt; that of the first one of a thread is counted already.

        Returns:
            The jobs that had the `most` attempts, which are deleted from the queue.
        """
        tried = [
            job if place == 0 else replace(job, attempts=job.attempts + 1)
            for session in sessions_of(jobs)
            for place, job in enumerate(session)
        ]
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
                return [
                    *await self._recorded(job),
                    _cursor_put(scope, job.thread, job.cursor, version),
                ]
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
                    self._store,
                    [
                        *await self._recorded(job),
                        _cursor_put(scope, job.thread, job.cursor, version),
                    ],
                )

    def _is_doubled(self, job: Job, wanted: Job, cursor: Cursor) -> bool:
        is_own = job.version == wanted.version and job.messages == wanted.messages
        is_past = cursor.sequence >= wanted.cursor.sequence and cursor != wanted.cursor
        return self._record is not None and is_own and is_past

    def _put(self, job: Job, version: int) -> Put:
        value = job.to_value()
        return Put(namespace=self._namespace, key=job.key, value=value, if_version=version, text="")


def _numbered(messages: Sequence[Any], first: int) -> list[dict[str, Any]]:
    """Return the documents of messages with their numbers in the thread."""
    return [{**document(each), "number": number} for number, each in enumerate(messages, first)]


def _before(turns: Sequence[MarkedTurn], new: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the assistant's message in front of the first new one of ingested turns, if any."""
    earlier = takewhile(
        lambda turn: turn.mark != new["turn"], turns if new["role"] == "user" else ()
    )
    told = [each for turn in earlier for each in turn.messages]
    while told and told[-1]["role"] != "assistant":
        told.pop()
    return {**_withheld(told[-_NEAR:]), "number": new["number"] - 1} if told else None


def _withheld(told: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the last message, without its text if it repeats an answer that may be a secret."""
    is_repeated = answers_in(roles_and_texts(told))[-1]
    return {**told[-1], "content": WITHHELD} if is_repeated else told[-1]


def _cursor_put(scope: Scope, thread: str, cursor: Cursor, version: int) -> Put:
    value = cursor.to_value()
    return Put(namespace=scope.cursors, key=thread, value=value, if_version=version, text="")
