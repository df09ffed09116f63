"""The checkpoints and the threads that a rule deletes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from locus_memory._internal.running.paging import paged
from locus_memory.checkpoint.base import BaseCheckpointer, CheckpointInfo
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.checkpoint.pending import beside, holder_of
from locus_memory.checkpoint.storage import StaleChainError
from locus_memory.errors import CheckpointError, EncryptionError
from locus_memory.events import emit
from locus_memory.memory.forgetting.threads import view_thread
from locus_memory.retention.report import Retained
from locus_memory.retention.rules import RetentionRule, ThreadRule, moment_before
from locus_memory.store.filters import matches, parse_filter

__all__ = ["retain_threads"]

_PAGE: Final = 500
_DAMAGE: Final = (CheckpointError, EncryptionError)


@dataclass(frozen=True, slots=True)
class _Thread:
    """A thread that a rule decides about.

    Attributes:
        name: Its id.
        newest: Its newest checkpoint, when the rule was chosen.
        users: Its users; empty unless the rule needs them.
    """

    name: str
    newest: CheckpointInfo
    users: frozenset[str]


async def retain_threads(
    checkpointer: BaseCheckpointer,
    rules: Sequence[RetentionRule],
    now: datetime,
    *,
    dry_run: bool,
) -> AsyncIterator[Retained]:
    """Apply rules to the threads of a checkpointer, and yield the result of each thread.

    A checkpoint that is saved meanwhile stays. A thread that cannot be read stays, and an event
    reports it.

    Args:
        checkpointer: The checkpointer.
        rules: All rules; the first one for threads that matches a thread decides.
        now: The present moment.
        dry_run: Only report.
    """
    # A rule that prunes may delete what made it the first that matches.
    pruned = set[str | None]()
    for place, rule in enumerate(rules):
        if not isinstance(rule, ThreadRule):
            continue
        work = _Work(checkpointer, place, rule, now, dry_run=dry_run)
        earlier = [each for each in rules[:place] if isinstance(each, ThreadRule)]
        async for each in work.results(earlier, pruned):
            if each.deleted:
                pruned.add(each.thread_id)
            yield each


async def _chosen(
    checkpointer: BaseCheckpointer,
    place: int,
    rules: Sequence[ThreadRule],
    others: Collection[str | None],
) -> AsyncIterator[_Thread | Retained]:
    """Yield the threads that the last of the rules decides about, and those that are damaged."""
    names = paged(
        lambda after: checkpointer.list_threads(_PAGE, prefix=rules[-1].prefix, after=after)
    )
    async for name in names:
        try:
            found = None if name in others else await _match(checkpointer, name, rules)
        except _DAMAGE as error:
            yield _skipped(place, name, error)
            continue
        if found is not None:
            yield found


async def _match(
    checkpointer: BaseCheckpointer, name: str, rules: Sequence[ThreadRule]
) -> _Thread | None:
    """Return a thread if the last of the rules is the first that matches it.

    Pending writes of LangGraph are none: they stay with their checkpoints, and go with them. Those
    without, which a call that was killed leaves, name no user and are of any rule for their name.
    """
    infos = await checkpointer.list_with_metadata(name, 1)
    holder = holder_of(name)
    if not infos or (holder and await checkpointer.exists(holder)):
        return None
    users: frozenset[str] = frozenset()
    if any(rule.needs_users for rule in rules):
        users = (await view_thread(checkpointer, name)).users
    hits = [
        name.startswith(rule.prefix) and (bool(holder) or _is_for(rule, infos[0].metadata, users))
        for rule in rules
    ]
    return _Thread(name, infos[0], users) if hits[-1] and not any(hits[:-1]) else None


def _is_for(rule: ThreadRule, metadata: Mapping[str, Any], users: frozenset[str]) -> bool:
    is_theirs = rule.user_id is None or rule.user_id in users
    return is_theirs and matches(parse_filter(rule.metadata), None, metadata)


def _newest_of_users(threads: Sequence[_Thread], count: int) -> set[str]:
    """Return the threads that are among the newest of one of their users."""
    kept: set[str] = set()
    seen: dict[str, int] = {}
    for thread in sorted(threads, key=lambda each: (each.newest.created_at, each.name))[::-1]:
        for user in thread.users:
            seen[user] = seen.get(user, 0) + 1
            if seen[user] <= count:
                kept.add(thread.name)
    return kept


def _skipped(place: int, name: str, error: Exception) -> Retained:
    emit("retention.skipped", error=error, thread_id=name)
    return Retained(rule=place, thread_id=name, problem=str(error))


class _Work:
    """What a rule does with the threads that it decides about."""

    def __init__(
        self,
        checkpointer: BaseCheckpointer,
        place: int,
        rule: ThreadRule,
        now: datetime,
        *,
        dry_run: bool,
    ) -> None:
        self._checkpointer = checkpointer
        self._place = place
        self._rule = rule
        self._before = moment_before(rule.older_than, now)
        self._idle_before = moment_before(rule.idle_for, now)
        self._deletes = rule.prunes or rule.deletes_threads
        self._dry_run = dry_run

    async def results(
        self, earlier: Sequence[ThreadRule], others: Collection[str | None]
    ) -> AsyncIterator[Retained]:
        """Apply the rule to all threads, but for those of others; yield the result of each."""
        # Which threads of a user are the newest is known once all are read.
        threads = list[_Thread]()
        async for found in _chosen(self._checkpointer, self._place, [*earlier, self._rule], others):
            if isinstance(found, Retained):
                yield found
            elif self._rule.keep_threads is None or holder_of(found.name):
                for each in await self._retain_both(found):
                    yield each
            else:
                threads.append(found)
        kept = _newest_of_users(threads, self._rule.keep_threads or 0)
        for thread in threads:
            is_kept = not thread.users or thread.name in kept
            for each in await self._retain_both(thread, is_kept=is_kept):
                yield each

    async def _retain_both(self, thread: _Thread, *, is_kept: bool = False) -> list[Retained]:
        """Delete a thread or prune it, and its pending writes; return the result of each.

        Args:
            thread: The thread.
            is_kept: Whether `keep_threads` keeps it.
        """
        try:
            if holder_of(thread.name):
                return [await self._retain_orphans(thread)]
            done = await self._retain(thread, is_kept=is_kept)
        except _DAMAGE as error:
            return [_skipped(self._place, thread.name, error)]
        writes = beside(thread.name)
        if not (writes and self._deletes):
            return [done]
        try:
            return [done, *await self._retain_writes(writes, thread.name, done)]
        except _DAMAGE as error:
            return [done, _skipped(self._place, writes, error)]

    async def _retain(self, thread: _Thread, *, is_kept: bool) -> Retained:
        total = await self._count(thread.name)
        if self._rule.deletes_threads and not is_kept and self._is_over(thread, self._idle_before):
            deleted = total if self._dry_run else await self._delete(thread)
        else:
            deleted = await self._prune(thread.name) if self._rule.prunes else 0
        return await self._retained(thread.name, total, deleted)

    async def _retained(self, name: str, total: int, deleted: int) -> Retained:
        kept = total - deleted if self._dry_run else await self._count(name)
        return Retained(rule=self._place, thread_id=name, deleted=deleted, kept=kept)

    @staticmethod
    def _is_over(thread: _Thread, before: datetime | None) -> bool:
        return before is None or thread.newest.created_at < before

    async def _retain_orphans(self, thread: _Thread) -> Retained:
        """Delete pending writes without checkpoints, if all of them are over all limits of age.

        A rule that keeps the last checkpoints of each thread deletes none.
        """
        total, limits = await self._count(thread.name), (self._idle_before, self._before)
        is_over = all(self._is_over(thread, each) for each in limits)
        deletes = self._rule.deletes_threads or self._before is not None
        deleted = total if is_over and deletes else 0
        if deleted and not self._dry_run:
            deleted = await self._delete(thread)
        return await self._retained(thread.name, total, deleted)

    async def _retain_writes(self, name: str, holder: str, done: Retained) -> list[Retained]:
        """Delete the pending writes, if any, of checkpoints that are gone, or that would be."""
        heads = await self._infos(name)
        if not heads:
            return []
        stay = {each.checkpoint_id: each.created_at for each in await self._infos(holder)}
        if self._dry_run and done.deleted:
            gone = await self._expendable(holder) if done.kept else await self._infos(holder)
            stay = {key: stay[key] for key in stay.keys() - {each.checkpoint_id for each in gone}}
        # LangGraph may save a checkpoint after its writes: those that came last stay.
        newest = max(stay.values(), default=None)
        stays = [
            each.metadata.get("of") in stay or (newest is not None and each.created_at > newest)
            for each in heads
        ]
        deleted = stays.count(False)
        if not self._dry_run and not any(stays):
            deleted = await self._delete(_Thread(name, heads[0], frozenset()))
        elif not self._dry_run and deleted:
            last = max(place for place, is_kept in enumerate(stays) if is_kept)
            oldest = heads[last].created_at
            await self._checkpointer.prune(name, keep_last=last + 1, older_than=oldest)
            for place, each in enumerate(heads):
                if not stays[place] and (place < last or each.created_at >= oldest):
                    await self._checkpointer.delete(name, each.checkpoint_id)
        return [await self._retained(name, len(heads), deleted)]

    async def _count(self, name: str) -> int:
        stats = await self._checkpointer.get_storage_stats(name)
        return stats["total_checkpoints"]

    async def _delete(self, thread: _Thread) -> int:
        """Delete a thread as a whole, unless it was saved meanwhile.

        A checkpoint that is saved in the moment of the deletion stays.
        """
        if not isinstance(self._checkpointer, DeltaCheckpointer):
            count = await self._count(thread.name)
            is_same = await self._checkpointer.list_with_metadata(thread.name, 1) == [thread.newest]
            return count if is_same and await self._checkpointer.delete(thread.name) else 0
        storage = self._checkpointer.storage
        heads = await storage.list_checkpoints(thread.name, None)
        if not heads or heads[0].revision != thread.newest.revision:
            return 0
        try:
            # Of a state that was saved since, the base would be lost: then nothing is deleted.
            return await storage.delete(thread.name, {head.revision for head in heads})
        except StaleChainError:
            return 0

    async def _prune(self, name: str) -> int:
        if self._dry_run:
            return len(await self._expendable(name))
        return await self._checkpointer.prune(
            name, keep_last=self._rule.keep_last, older_than=self._before
        )

    async def _expendable(self, name: str) -> list[CheckpointInfo]:
        """Return the checkpoints that a prune would delete."""
        over = (await self._infos(name))[self._rule.keep_last or 1 :]
        return [each for each in over if self._before is None or each.created_at < self._before]

    async def _infos(self, name: str) -> list[CheckpointInfo]:
        """Return all checkpoints of a thread, the newest first."""
        found = paged(
            lambda before: self._checkpointer.list_with_metadata(name, _PAGE, before=before),
            lambda info: info.checkpoint_id,
        )
        return [info async for info in found]
