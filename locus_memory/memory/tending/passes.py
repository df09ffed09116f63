"""A pass over a scope: its steps, and the right to make it: one at a time, of all processes.

Each write names the version it replaces or is done already, and depends on the stored records and
the moment of the pass alone. So a pass that ends after any write is finished by the next one of the
same moment, with the same result.

What is done to an episode or a fact depends on no other one, so it is done fifty at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any, Final

from pydantic import Field

from locus_memory._internal.running.lease import Lease
from locus_memory.chat.base import ChatModel
from locus_memory.conversation.tokens import as_token_counter, expected_tokens
from locus_memory.errors import VersionConflictError
from locus_memory.events import emit
from locus_memory.memory.layers.episodes import EpisodeBook, read_episode
from locus_memory.memory.layers.identity import adopt
from locus_memory.memory.layers.log import LOG_DAYS
from locus_memory.memory.layers.records import readable, record_of, value_of
from locus_memory.memory.ledger.ledger import Ledger
from locus_memory.memory.ledger.revision import read_memory
from locus_memory.memory.models import MemoryType, is_expired
from locus_memory.memory.moments import days_between, read_moment
from locus_memory.memory.options import MemoryOptions
from locus_memory.memory.scope import Scope, user_namespace
from locus_memory.memory.tending.condensing import condense, to_condense
from locus_memory.memory.tending.report import ConsolidationReport
from locus_memory.store.base import BaseStore, all_namespaces, write_together
from locus_memory.store.item import Namespace, Put, StoreItem

__all__ = ["LEASE", "Pass", "PassRecord", "is_over", "make_steps", "pages", "scopes_below"]

_KEY: Final = "pass"

LEASE: Final = 3_600.0
"""The seconds of a lease, which is renewed before a model is asked about the facts."""

_SHARE: Final = 4
"""Notes are condensed once they take more than this part of the budget of a block."""

_READ: Final = 1_000

_PAGE: Final = 50
"""After so many items, other tasks of the event loop get their turn."""

_LAYERS: Final = ("current", "vitals", "identity", "episodes")
"""Not the log: a pass would keep a scope alive that has nothing else."""

_TYPES: Final = frozenset(MemoryType)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRecord:
    """The record of the last pass over a scope. Moments are ISO 8601 in UTC.

    Attributes:
        ran_at: The moment of the last whole pass, or of the first look at the scope.
        facts_at: The last moment at which a model was asked about the facts.
        lease: The lease of the pass that is at work; `None`: there is none.
        version: The store's version of the record; 0: there is none.
    """

    ran_at: str | None = None
    facts_at: str | None = None
    lease: Mapping[str, Any] | None = None
    version: Annotated[int, Field(exclude=True)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """A pass over one scope.

    Attributes:
        store: The store, which this never closes.
        ledger: The ledger of the memories.
        options: The retention, and the budget of a block.
        clock: Returns seconds since the epoch.
        scope: The scope.
        now: The moment of the pass, in the format of `Ledger.now`.
        model: Condenses notes and tidies facts; `None`: neither is done.
        dry_run: Only report; nothing is written.
    """

    store: BaseStore
    ledger: Ledger
    options: MemoryOptions
    clock: Callable[[], float]
    scope: Scope
    now: str
    model: ChatModel | None
    dry_run: bool = False

    def before(self, days: float) -> datetime:
        """Return the moment so many days before this pass."""
        return datetime.fromisoformat(self.now) - timedelta(days=days)

    async def is_due(self) -> bool:
        """Return whether the last pass was a day ago; at the first look, the day begins.

        Raises:
            BackendError: The store failed.
        """
        record = await self.record()
        if record.version:
            return is_over(record.ran_at, self.now)
        await self.write(replace(record, ran_at=self.now))
        return False

    async def record(self) -> PassRecord:
        """Return the record of the scope; an empty one if there is none.

        Raises:
            BackendError: The store failed.
        """
        item = await self.store.get_item(self.scope.tending, _KEY)
        if item is None:
            return PassRecord()
        known = readable(partial(record_of, PassRecord), item.value, "tending")
        return replace(known or PassRecord(), version=item.version)

    async def write(
        self, record: PassRecord, *more: Put, lease: Lease | None = None
    ) -> PassRecord | None:
        """Write a record in place of its version, but in a dry run.

        Args:
            record: The record.
            more: Further writes, together with it.
            lease: The right to the pass, which is taken or prolonged; `None`: it is given back.

        Returns:
            The record as it is stored; `None`: another process was faster, or the scope was erased.

        Raises:
            BackendError: The store failed.
        """
        if self.dry_run:
            return record
        if lease is not None:
            lease.until = self.clock() + LEASE
        held = replace(record, lease=None if lease is None else lease.to_value())
        space, value = self.scope.tending, value_of(held)
        put = Put(namespace=space, key=_KEY, value=value, if_version=record.version, text="")
        try:
            await write_together(self.store, [put, *more])
        except VersionConflictError:
            return None
        return replace(held, version=record.version + 1)


def is_over(since: str | None, now: str) -> bool:
    """Return whether a day went by since a moment; `None`: long ago."""
    return since is None or days_between(since, now) >= 1.0


async def make_steps(work: Pass) -> ConsolidationReport:
    """Make the steps of a pass, but the one in which a model tidies the facts.

    Raises:
        BackendError: The store failed; another pass finishes this one.
    """
    days = work.options.retention
    oldest = work.before(days) if days else None
    if not work.dry_run:
        await adopt(work.store, work.ledger, work.scope)
    notes = 0 if oldest is None else await _prune_notes(work, oldest)
    expired = await _expire(work)
    if not work.dry_run:
        await EpisodeBook(work.store).drop_condensed(work.scope)
        await _condense(work)
    return ConsolidationReport(
        evicted=expired,
        pruned_episodes=notes,
        pruned_turns=0 if oldest is None else await _prune_turns(work, oldest),
        purged=await _prune_log(work, oldest),
    )


async def _expire(work: Pass) -> int:
    """Move facts that have expired to the history; returns how many."""
    count = 0
    async for items in pages(work.store, work.scope.current):
        for item in items:
            memory = read_memory(item)
            if memory is not None and is_expired(memory, work.now):
                count += work.dry_run or await work.ledger.expire(
                    work.scope, memory.type, memory.key, version=item.version, at=work.now
                )
    return count


async def _condense(work: Pass) -> None:
    """Condense the oldest notes, if they take too much of a block; a failure is an event."""
    room = work.options.memory_budget_tokens // _SHARE
    if work.model is None or not room:
        return
    book, count = EpisodeBook(work.store), work.options.token_counter or expected_tokens
    shown = await book.shown(work.scope, _READ)
    taken = to_condense(shown, room, as_token_counter(count))
    if not taken:
        return
    made = await condense(work.store, work.scope, work.model, taken, work.now)
    if made is not None:
        await book.condense(work.scope, made)
        emit("memory.condensed", sessions=len(made.condenses), notes=len(made.notes))


async def _prune_notes(work: Pass, oldest: datetime) -> int:
    """Erase the notes of sessions that ended before a moment; returns of how many sessions."""

    def is_old(item: StoreItem) -> bool:
        episode = read_episode(item)
        # An item under another key than its own is not this library's to change.
        is_own = episode is not None and episode.key == item.key
        ended = read_moment(episode.ended_at) if episode is not None and is_own else None
        return ended is not None and ended < oldest

    return await _prune(work, work.scope.episodes, is_old)


async def _prune_turns(work: Pass, oldest: datetime) -> int:
    """Erase the turns said before a moment; returns how many."""
    if not work.store.capabilities.list_namespaces:
        return 0
    root = work.scope.transcripts
    threads = [each async for each in all_namespaces(work.store, root) if each[:-1] == root]
    is_old = partial(_is_before, oldest, lambda turn: turn.metadata.get("date"))
    return sum([await _prune(work, thread, is_old, in_order=True) for thread in threads])


async def _prune_log(work: Pass, oldest: datetime | None) -> int:
    """Erase old entries of the log, and old records of runs; returns how many.

    Args:
        work: The pass.
        oldest: The moment before which words were said that a record may not show any more;
            `None`: there is none.
    """
    is_old = partial(_is_before, work.before(LOG_DAYS), partial(_part, "at"))

    def shows_old(item: StoreItem) -> bool | None:
        since = read_moment(_part("since", item))
        return is_old(item) or (oldest is not None and since is not None and since < oldest)

    gone = await _prune(work, work.scope.log, is_old, in_order=True)
    return gone + await _prune(work, work.scope.runs, shows_old)


async def _prune(
    work: Pass,
    space: Namespace,
    is_old: Callable[[StoreItem], bool | None],
    *,
    in_order: bool = False,
) -> int:
    """Erase the old items of a namespace; returns how many.

    Args:
        work: The pass, which counts them only if it is a dry run.
        space: The namespace.
        is_old: Returns whether an item is old; `None`: it is not, and has no moment of its own.
        in_order: Whether the oldest come first: then it ends behind one that is not old.
    """
    count = 0
    async for items in pages(work.store, space):
        found = [(item.key, is_old(item)) for item in items]
        old = [(space, key) for key, is_it in found if is_it]
        count += len(old)
        if not work.dry_run:
            await work.store.delete_batch(old)
        if in_order and any(is_it is False for _, is_it in found):
            break
    return count


def _is_before(oldest: datetime, at: Callable[[StoreItem], object], item: StoreItem) -> bool | None:
    """Return whether the moment of an item is before another one; one without is as its write."""
    moment = read_moment(at(item))
    if moment is None:
        return item.created_at < oldest or None
    return moment < oldest


def _part(name: str, item: StoreItem) -> Any:
    return item.value.get(name) if isinstance(item.value, dict) else None


async def pages(store: BaseStore, namespace: Namespace) -> AsyncIterator[list[StoreItem]]:
    """Yield the items of a namespace in key order, fifty at a time."""
    after: str | None = None
    while items := await store.scan(namespace, _PAGE, after=after):
        yield items
        after = items[-1].key
        # A store in memory never lets the event loop go on by itself.
        await asyncio.sleep(0)


async def scopes_below(store: BaseStore, prefix: Namespace, *, resolved: bool) -> list[Scope]:
    """Return the scopes below a prefix that have memories, in the order of their namespaces.

    Args:
        store: The store; if it cannot list namespaces, the prefix is the only scope.
        prefix: The prefix of a memory manager.
        resolved: Whether a function decides where the scopes are. Else they are the
            prefix and those of users.

    Raises:
        BackendError: The store failed.
    """
    if not store.capabilities.list_namespaces:
        return [Scope(prefix)]
    found: set[Namespace] = set()
    # Of a resolver, a scope that is named `transcript` must not look like turns of its parent.
    turns = () if resolved else (("transcript", "*"),)
    for suffix in (*((layer,) for layer in _LAYERS), *turns):
        spaces = all_namespaces(store, prefix, suffix=suffix)
        owners = {each[: -len(suffix)] async for each in spaces}
        found |= {each for each in owners if _is_scope(each, prefix, resolved=resolved)}
    return list(map(Scope, sorted(found)))


def _is_scope(owner: Namespace, prefix: Namespace, *, resolved: bool) -> bool:
    """Return whether a parent of a layer is a scope, not a part of one.

    The label of a thread or a key may be the name of a layer, such as a thread named `log`.
    """
    rest = owner[len(prefix) :]
    if not resolved:
        return owner == prefix or (bool(rest) and owner == user_namespace(prefix, rest[-1]))
    is_history = owner[-2:-1] == ("history",) and _TYPES.issuperset(owner[-1:])
    is_inside = len(owner) >= len(prefix)
    return is_inside and not is_history and owner[-1:] != ("transcript",)
