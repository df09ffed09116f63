"""The jobs that wait for extraction, in the store: they outlive the process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import Any, Final

from locus_memory._internal.offload import aside
from locus_memory._internal.recent import RecentlyUsed
from locus_memory._internal.running.lease import Lease
from locus_memory.errors import VersionConflictError
from locus_memory.memory.batch import insisting
from locus_memory.memory.extraction.thread import (
    Cursor,
    Fork,
    is_worth_reading,
    read_document,
    roles_and_texts,
)
from locus_memory.memory.layers.records import record_of, value_of
from locus_memory.memory.options import MemoryOptions
from locus_memory.memory.phrases.extractor import HeuristicExtractor
from locus_memory.memory.phrases.wording import is_staged
from locus_memory.memory.queue.jobs import DIGITS, Job, Outcome, numbered, sessions_of
from locus_memory.memory.queue.turns import transcribed
from locus_memory.memory.scope import Scope
from locus_memory.memory.secrets.detection import WITHHELD, answers_in, asks_at_end
from locus_memory.store.base import BaseStore, scan_all, write_together
from locus_memory.store.encoding import encode_namespace
from locus_memory.store.item import Delete, Put

__all__ = ["ExtractionQueue"]

_NEAR: Final = 9
"""How many messages back the one is looked for that the user answers, and what it may repeat."""

_REMEMBERED: Final = 1_024
"""The number of threads whose cursors are cached."""

_News = tuple[Cursor, list[dict[str, Any]], list[dict[str, Any]]]
"""New messages: the cursor behind them, their documents, and those of messages before them."""


class ExtractionQueue:
    """Jobs of all threads below one namespace, and the cursors of these threads.

    Args:
        store: The store, which the queue never closes.
        scope: The scope whose namespace has the queue.
        now: Returns the present moment, ISO 8601 in UTC.
        options: What of the messages is recorded, together with a new job.
        phrases: Reads the messages, if no model does: where they say nothing for it, they are no
            job.
    """

    def __init__(
        self,
        store: BaseStore,
        scope: Scope,
        now: Callable[[], str],
        options: MemoryOptions,
        phrases: HeuristicExtractor | None = None,
    ) -> None:
        self.store = store
        self.scope = scope
        self._now = now
        on, keeps = options.transcript, options.allow_secrets
        self._record = partial(transcribed, is_on=on, allow_secrets=keeps)
        self._phrases = phrases
        self._cursors = RecentlyUsed[tuple[Cursor, int]](_REMEMBERED)

    async def add(
        self,
        scope: Scope,
        thread: str,
        said: Sequence[Any],
        fork: Fork | None = None,
        agent: str | None = None,
        *,
        passes: bool = False,
        skips: int = 0,
    ) -> Job | None:
        """Queue the new messages of a conversation, and move the thread's cursor behind them.

        A thread without a cursor starts with that of the thread from which it was forked, as far
        as their messages are the same.

        Both are written together, with what `record` returns: atomically if the store has
        transactions. Without transactions, the job is written first. If its process is killed
        before it moves the cursor, a later call of `add` moves it.

        Args:
            scope: The scope of the memories.
            thread: The thread.
            said: Its conversation.
            fork: The source of a thread that was forked.
            agent: The agent, if it is known.
            passes: Whether what is new is off the record: only the cursor moves.
            skips: How many of the first messages may be another user's, if the scope has not seen
                the thread yet: they are passed.

        Returns:
            The job; `None` if there are no new messages to read.
        """

        async def look(cursor: Cursor, version: int) -> _News | None:
            if version == 0 and skips:
                cursor = replace(Cursor(place=skips).forked(said, skips), passed=True)
            elif version == 0 and fork is not None:
                cursor = (await self._stored(scope, fork.thread))[0].forked(said, fork.shared)
            start, before = cursor.unseen(said)
            if passes and start < len(said):
                return cursor.after(said, start, before, passed=True), [], []
            if passes or not is_worth_reading(said[start:]):
                return None
            near = start if cursor.passed else max(0, start - _NEAR)
            told = numbered(said[near:start], before + 1 - start + near)
            messages = numbered(said[start:], before + 1)
            return cursor.after(said, start, before), messages, told

        job = await self._moved(scope, thread, look, self._now(), agent, queues=not passes)
        return None if passes else job

    async def add_turns(
        self,
        scope: Scope,
        thread: str,
        turns: Sequence[dict[str, Any]],
        at: str,
        agent: str,
        *,
        queues: bool = True,
    ) -> Job | None:
        """Queue the turns of a conversation that are not yet known by their marks, as `add`.

        Args:
            scope: The scope of the memories.
            thread: The name of the conversation.
            turns: The documents of its messages, oldest first, each with the mark of its `turn`.
            at: The moment of all of them, ISO 8601 in UTC.
            agent: The agent.
            queues: Whether there is to be a job; otherwise, only what `record` returns is written.
        """

        async def look(cursor: Cursor, version: int) -> _News | None:
            del version
            moved, messages = cursor.taking(turns, reads=queues)
            if not messages:
                return None
            before = list(takewhile(lambda each: each["turn"] != messages[0]["turn"], turns))
            number = messages[0]["number"] - 1
            return moved, messages, [{**each, "number": number} for each in before[-_NEAR:]]

        return await self._moved(scope, thread, look, at, agent, queues=queues)

    @insisting
    async def _moved(
        self,
        scope: Scope,
        thread: str,
        look: Callable[[Cursor, int], Awaitable[_News | None]],
        at: str,
        agent: str | None = None,
        *,
        queues: bool = True,
    ) -> Job | None:
        """Move a thread's cursor behind new messages, together with a job of them.

        It asks again for the new messages while another writer is faster.
        """
        lane = scope.lane(thread)
        cursor, version = await self._cursor(scope, thread)
        found = await look(cursor, version)
        if found is None:
            return None
        behind, messages, before = found
        context = _context_of(before, messages)
        told = roles_and_texts([] if context is None else [context])
        asked = asks_at_end(told, asked=cursor.asked)
        behind = replace(behind, asked=asks_at_end(roles_and_texts(messages), asked=asked))
        if queues:
            behind, queues = await self._judged(behind, context, messages)
        job = Job(
            f"{lane}{behind.sequence:0{DIGITS}}",
            int(queues),
            scope.namespace,
            thread,
            messages,
            behind,
            queued_at=at,
            agent=agent,
            context=context,
            asked=asked,
            by_extractor=self._phrases is None,
        )
        # Until the write succeeds, the stored cursor is unknown.
        self._cursors.discard(lane)
        writes = [*await self._record(job), _cursor_put(job, version)]
        try:
            await write_together(self.store, [self._put(job, 0), *writes] if queues else writes)
        except VersionConflictError:
            await self._adopt(job)
            raise
        self._cursors.put(lane, (behind, version + 1))
        return job

    async def _judged(
        self, cursor: Cursor, context: dict[str, Any] | None, messages: Sequence[dict[str, Any]]
    ) -> tuple[Cursor, bool]:
        """Return the cursor behind messages, and whether there is anything to read in them.

        A model reads everything. Once a role is given in a thread, or a text handed in, phrases
        read no more than what a later message as a whole asks to remember, or to forget.
        """
        if self._phrases is None:
            return cursor, True
        size = sum(len(each["content"]) for each in messages)
        return await aside(size, self._judge, self._phrases, cursor, context, messages)

    @staticmethod
    def _judge(
        phrases: HeuristicExtractor,
        cursor: Cursor,
        context: dict[str, Any] | None,
        messages: Sequence[dict[str, Any]],
    ) -> tuple[Cursor, bool]:
        told = [read_document(each) for each in ([context] if context else []) + [*messages]]
        if is_staged(told):
            return replace(cursor, staged=True), False
        reads = phrases.only_asks if cursor.staged else phrases.may_state
        return cursor, reads(told)

    async def _cursor(self, scope: Scope, thread: str) -> tuple[Cursor, int]:
        """Return a thread's cursor and the store's version of it, 0 if there is none.

        The cursor that this process wrote last is good enough: if another process moved it
        since, the next write is refused, and this process reads it. Without transactions, a job
        would be written before that is found out.
        """
        is_safe = self.store.capabilities.transactions
        known = self._cursors.get(scope.lane(thread)) if is_safe else None
        return await self._stored(scope, thread) if known is None else known

    async def _stored(self, scope: Scope, thread: str) -> tuple[Cursor, int]:
        item = await self.store.get_item(scope.cursors, thread)
        return (Cursor(), 0) if item is None else (record_of(Cursor, item.value), item.version)

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

    async def jobs(self, prefix: str | None = None) -> AsyncIterator[Job]:
        """Yield the jobs whose keys begin so, in order; `None`: all."""
        async for item in scan_all(self.store, self.scope.queue, prefix=prefix):
            job = Job.from_item(item)
            if job is not None:
                yield job

    def reads(self, job: Job) -> bool:
        """Whether the extractor of this process may read a job, whoever queued it."""
        return self._phrases is None or not job.by_extractor

    async def waiting(self, lane: str) -> list[Job]:
        """Return the jobs of a thread, in order."""
        return [job async for job in self.jobs(lane) if job.lane == lane]

    async def unread(self, scope: Scope) -> set[tuple[str, int]]:
        """Return the thread and the number of each message of a scope that waits."""
        # A lane begins with the namespace of its scope.
        return {
            (job.thread, each["number"])
            async for job in self.jobs(encode_namespace(scope.namespace))
            if job.namespace == scope.namespace
            for each in job.messages
        }

    async def claim(self, jobs: Sequence[Job], lease: Lease) -> list[Job]:
        """Put the first job of each thread under a lease, as one more attempt.

        Returns:
            The jobs of the threads that no other process was faster to claim.
        """
        found: list[Job] = []
        for head, *rest in sessions_of(jobs):
            held = await self._replace(
                replace(head, lease=lease.to_value(), attempts=head.attempts + 1)
            )
            if held is not None:
                found += [held, *rest]
        return found

    async def give_back(self, jobs: Sequence[Job]) -> None:
        """Release claimed jobs whose attempt was interrupted."""
        for head, *_ in sessions_of(jobs):
            await self._replace(replace(head, lease=None, attempts=head.attempts - 1))

    @insisting
    async def complete(self, outcome: Outcome) -> bool:
        """Write the results of jobs, delete the jobs, and move the cursors behind them, at once.

        All of it is atomic if the store has transactions. Without transactions, the results are
        written first, and the first job of each thread is deleted after its others: as long as it
        exists, the work can be repeated.

        Returns:
            Whether it is written; `False`: another process has the jobs now, or they were erased.
        """
        if not await self.holds(outcome.jobs):
            return False
        planned = outcome.operations
        operations = [] if planned is None else [*await planned()]
        for session in sessions_of(outcome.jobs):
            operations += await self._settling(session[-1])
        operations += [
            Delete(namespace=self.scope.queue, key=job.key, if_version=job.version)
            for job in reversed(outcome.jobs)
        ]
        await write_together(self.store, operations)
        return True

    async def holds(self, jobs: Sequence[Job]) -> bool:
        """Return whether jobs are still this process's, and none was erased.

        Everything that an extractor makes of them is written after this was asked: the owner of
        the messages may have been forgotten while the extractor worked, or one of them.

        Args:
            jobs: The jobs; the first one of each thread was claimed.
        """
        there = {
            (job.key, job.version)
            for lane in {job.lane for job in jobs}
            for job in await self.waiting(lane)
        }
        return all((job.key, job.version) in there for job in jobs)

    async def fail(self, jobs: Sequence[Job], most: int) -> list[Job]:
        """Leave jobs for another attempt; that of the first one of a thread is counted already.

        Returns:
            The jobs that had the `most` attempts, which are deleted from the queue.
        """
        spent: list[Job] = []
        for session in sessions_of(jobs):
            # The first one, which has the lease, comes last: then others may claim them.
            for place, job in reversed(list(enumerate(session))):
                tried = replace(job, lease=None, attempts=job.attempts + (place > 0))
                if tried.attempts < most:
                    await self._replace(tried)
                else:
                    spent.insert(0, tried)
        return spent if await self.complete(Outcome(spent)) else []

    async def _settling(self, job: Job) -> list[Put]:
        """Return the move of the cursor behind a job whose process was killed before it did.

        Once the job is deleted, nothing else records that its messages were seen.
        """
        known = self._cursors.get(job.lane)
        if known is not None and known[0].sequence >= job.cursor.sequence:
            return []
        cursor, version = await self._stored(Scope(job.namespace), job.thread)
        if cursor.sequence >= job.cursor.sequence:
            return []
        return [*await self._record(job), _cursor_put(job, version)]

    async def _replace(self, job: Job) -> Job | None:
        try:
            await write_together(self.store, [self._put(job, job.version)])
        except VersionConflictError:
            return None
        return replace(job, version=job.version + 1)

    async def _adopt(self, wanted: Job) -> None:
        """Move the cursor behind a job that is already queued, unless it was moved already.

        If it is the wanted job itself, and another process moved the cursor elsewhere, the
        messages are in other jobs: it is deleted again.
        """
        item = await self.store.get_item(self.scope.queue, wanted.key)
        job = None if item is None else Job.from_item(item)
        if job is None:
            return
        cursor, _ = await self._stored(Scope(job.namespace), job.thread)
        is_own = job.version == wanted.version and job.messages == wanted.messages
        is_elsewhere = cursor.sequence >= wanted.cursor.sequence and cursor != wanted.cursor
        with suppress(VersionConflictError):
            if is_own and is_elsewhere:
                await self.store.delete(self.scope.queue, job.key, if_version=job.version)
            else:
                await write_together(self.store, await self._settling(job))

    def _put(self, job: Job, version: int) -> Put:
        value = value_of(job)
        return Put(
            namespace=self.scope.queue, key=job.key, value=value, if_version=version, text=""
        )


def _context_of(
    told: Sequence[dict[str, Any]], new: Sequence[dict[str, Any]]
) -> dict[str, Any] | None:
    """Return the message that the new ones answer, if it is not new itself.

    That is the assistant's last message with a text before the first new message of the user. Its
    text is left out if it repeats an answer that may be a secret.

    Args:
        told: The documents of the messages right before the new ones.
        new: The documents of the new messages.
    """
    roles = [each["role"] for each in new]
    said = [*told, *new[: roles.index("user")]] if "user" in roles else []
    while said and not (said[-1]["role"] == "assistant" and said[-1]["content"].strip()):
        said.pop()
    if not 0 < len(said) <= len(told):
        return None
    is_repeated = answers_in(roles_and_texts(said))[-1]
    return {**said[-1], "content": WITHHELD} if is_repeated else said[-1]


def _cursor_put(job: Job, version: int) -> Put:
    """Return the put of a thread's cursor behind a job."""
    value, space = value_of(job.cursor), Scope(job.namespace).cursors
    return Put(namespace=space, key=job.thread, value=value, if_version=version, text="")
