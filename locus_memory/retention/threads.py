"""The checkpoints and the threads that a rule deletes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from locus_memory._internal.running.paging import paged
from locus_memory.checkpoint.base import BaseCheckpointer, CheckpointInfo
from locus_memory.checkpoint.chain import DeltaCheckpointer
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
    for place, rule in enumerate(rules):
        if not isinstance(rule, ThreadRule):
            continue
        work = _Work(checkpointer, place, rule, now, dry_run=dry_run)
        earlier = [each for each in rules[:place] if isinstance(each, ThreadRule)]
        # Which threads of a user are the newest is known once all are read.
        threads: list[_Thread] = []
        async for found in _chosen(checkpointer, place, [*earlier, rule]):
            if isinstance(found, Retained):
                yield found
            elif rule.keep_threads is None:
                yield await work.retain(found)
            else:
                threads.append(found)
        kept = _newest_of_users(threads, rule.keep_threads or 0)
        for thread in threads:
            yield await work.retain(thread, is_kept=not thread.users or thread.name in kept)


async def _chosen(
    checkpointer: BaseCheckpointer, place: int, rules: Sequence[ThreadRule]
) -> AsyncIterator[_Thread | Retained]:
    """Yield the threads that the last of the rules decides about, and those that are damaged."""
    names = paged(
        lambda after: checkpointer.list_threads(_PAGE, prefix=rules[-1].prefix, after=after)
    )
    async for name in names:
        try:
            found = await _match(checkpointer, name, rules)
        except _DAMAGE as error:
            yield _skipped(place, name, error)
            continue
        if found is not None:
            yield found


async def _match(
    checkpointer: BaseCheckpointer, name: str, rules: Sequence[ThreadRule]
) -> _Thread | None:
    """Return a thread if the last of the rules is the first that matches it."""
    infos = await checkpointer.list_with_metadata(name, 1)
    if not infos:
        return None
    users: frozenset[str] = frozenset()
    if any(rule.needs_users for rule in rules):
        users = (await view_thread(checkpointer, name)).users
    hits = [_is_for(rule, name, infos[0].metadata, users) for rule in rules]
    return _Thread(name, infos[0], users) if hits[-1] and not any(hits[:-1]) else None


def _is_for(
    rule: ThreadRule, name: str, metadata: Mapping[str, Any], users: frozenset[str]
) -> bool:
    return (
        name.startswith(rule.prefix)
        and (rule.user_id is None or rule.user_id in users)
        and matches(parse_filter(rule.metadata), None, metadata)
    )


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
        self._dry_run = dry_run

    async def retain(self, thread: _Thread, *, is_kept: bool = False) -> Retained:
        """Delete a thread or prune it, and return the result.

        Args:
            thread: The thread.
            is_kept: Whether `keep_threads` keeps it.
        """
        try:
            total = await self._count(thread.name)
            before = self._idle_before
            is_idle = before is None or thread.newest.created_at < before
            if self._rule.deletes_threads and not is_kept and is_idle:
                deleted = total if self._dry_run else await self._delete(thread)
            else:
                deleted = await self._prune(thread.name) if self._rule.prunes else 0
        except _DAMAGE as error:
            return _skipped(self._place, thread.name, error)
        kept = total - deleted if self._dry_run else await self._count(thread.name)
        return Retained(rule=self._place, thread_id=thread.name, deleted=deleted, kept=kept)

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
        found = paged(
            lambda before: self._checkpointer.list_with_metadata(name, _PAGE, before=before),
            lambda info: info.checkpoint_id,
        )
        over = [info async for info in found][self._rule.keep_last or 1 :]
        return [each for each in over if self._before is None or each.created_at < self._before]
