"""The storage that a backend supplies for checkpoints: an ordered log of records per thread.

A storage knows nothing about states or deltas. It keeps records in its own order, and each of its
verbs is atomic. The engine in `chain.py` relies on nothing else.
"""

from __future__ import annotations

import asyncio
import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Final, TypeVar

from locus_memory.checkpoint.base import UNSET, Unset
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.errors import CheckpointConflictError
from locus_memory.store.filters import Condition, matches
from locus_memory.store.item import check_identifier

__all__ = [
    "INLINE_BYTES",
    "DeltaStorage",
    "StaleChainError",
    "chain_of",
    "check_parent",
    "check_range",
    "check_replacement",
    "check_room",
    "copied",
    "newest_first",
    "page_of",
]

T = TypeVar("T")

R = TypeVar("R", bound=RecordHead)

INLINE_BYTES: Final = 16 * 1024
"""The longest JSON that is processed on the event loop, in bytes; another thread costs more."""

_PAGE = 500


class StaleChainError(Exception):
    """The log changed since the caller read it, so the write would have broken a chain.

    It never reaches the caller of a checkpointer: the engine reads the thread again and retries.
    """


class DeltaStorage(ABC):
    """An ordered, append-mostly log of records for each thread.

    Every verb atomically keeps these invariants: a thread's checkpoint ids and revisions are
    unique, and the base of every record exists. The storage determines the order. Revisions are
    drawn from 2**63, so a storage need not check whether one is taken. A copy of a thread keeps its
    revisions, so a revision is unique within its thread only. Any number of tasks, and of event
    loops in their own threads, may call a storage concurrently: its data in memory is read and
    changed under a lock.
    """

    _threads_at_once: int = _PAGE
    """How many threads `query_by_metadata` reads before it goes on."""

    persistent: bool = True
    """Whether records outlive the process."""

    @property
    def place(self) -> str:
        """The place of the database, without a password: a path, or hosts and a name.

        It is empty for one in this process.
        """
        return ""

    @abstractmethod
    async def store(
        self,
        record: Record,
        *,
        expected_parent: str | Unset | None = UNSET,
        rebased: Sequence[Record] = (),
    ) -> int:
        """Append a record as the newest of its thread, in one round trip; all or nothing.

        A record of the same checkpoint id is removed.

        Args:
            record: The record to append; its `sequence` is ignored.
            expected_parent: The checkpoint id that must be the newest now (`None`: none).
            rebased: Records of the thread to overwrite, found by revision; order is kept.

        Returns:
            The new record's sequence, higher than any other of the thread.

        Raises:
            CheckpointConflictError: `expected_parent` is not the newest.
            StaleChainError: Its base or a rebased record no longer exists, or a record that is not
                rebased is a delta against the replaced one.
        """

    @abstractmethod
    async def retrieve(self, thread_id: str, checkpoint_id: str | None = None) -> Record | None:
        """Return one record, the newest by default."""

    @abstractmethod
    async def list_checkpoints(
        self, thread_id: str, limit: int | None = 10, *, before: int | None = None
    ) -> list[RecordHead]:
        """Return the heads of a thread's records, newest first.

        Args:
            thread_id: The thread.
            limit: At most this many; `None`: all.
            before: Only records with a lower sequence.
        """

    async def list_newest(self, thread_ids: Sequence[str], limit: int) -> list[list[RecordHead]]:
        """Return the heads of each thread's newest records, at most `limit`, newest first.

        Override it if one connection reads them all as fast as several.
        """
        return await asyncio.gather(*(self.list_checkpoints(name, limit) for name in thread_ids))

    @abstractmethod
    async def delete(
        self,
        thread_id: str,
        revisions: Collection[int] | None = None,
        *,
        rebased: Sequence[Record] = (),
    ) -> int:
        """Remove records, or the whole thread; all or nothing.

        Args:
            thread_id: The thread.
            revisions: The records; unknown ones are ignored. `None`: all records.
            rebased: Records to overwrite, found by revision; order is kept.

        Returns:
            How many were removed.

        Raises:
            StaleChainError: A rebased record no longer exists, or a record that stays would lose
                its base.
        """

    async def list_threads(
        self, limit: int = 100, *, prefix: str | None = None, after: str | None = None
    ) -> list[str]:
        """Return thread ids in ascending code point order.

        Raises:
            InvalidKeyError: A bound is not a string, or has a lone surrogate.
            CheckpointCorruptError: The id of a thread is damaged.
            NotImplementedError: The storage has four verbs alone; see `FourVerbStorage`.
        """
        del limit, prefix, after
        raise NotImplementedError(f"{type(self).__name__} does not list threads")

    async def find(self, thread_id: str, checkpoint_id: str | None = None) -> RecordHead | None:
        """Return the head of one record, the newest by default."""
        return await self.retrieve(thread_id, checkpoint_id)

    async def retrieve_chain(
        self, thread_id: str, checkpoint_id: str | None = None
    ) -> list[Record]:
        """Return the chain that a load needs, in one round trip: from the full record on.

        Returns:
            The chain, the requested record last, or `[]` if there is no such checkpoint.

        Raises:
            CheckpointCorruptError: A base is missing.
        """
        record = await self.retrieve(thread_id, checkpoint_id)
        if record is None:
            return []
        names = {
            head.revision: head.checkpoint_id
            for head in await self.list_checkpoints(thread_id, None)
        }
        chain = {record.revision: record}
        while (base := record.base) is not None:
            found = await self.retrieve(thread_id, names[base]) if base in names else None
            if found is None or found.revision in chain:
                raise record.corrupt("the record it builds on is missing")
            chain[found.revision] = record = found
        return list(chain.values())[::-1]

    async def with_chain(
        self, thread_id: str, checkpoint_id: str | None, work: Callable[[list[Record]], T]
    ) -> T:
        """Return the result of `work` for a chain, off the event loop if the chain is long.

        A storage with its own threads runs `work` in the thread that read the chain.
        """
        chain = await self.retrieve_chain(thread_id, checkpoint_id)
        if sum(record.size for record in chain) <= INLINE_BYTES:
            return work(chain)
        return await asyncio.to_thread(work, chain)

    async def copy_thread(self, source: str, target: str, *, through: int | None = None) -> int:
        """Copy a thread's records; return how many.

        Args:
            source: The thread to copy.
            target: The thread to create.
            through: Only the records up to this sequence, as in a fork. The copy of the record with
                this sequence names its source as `forked_from`. Any other copy keeps its
                `forked_from`.

        Raises:
            CheckpointConflictError: The target has records.
        """
        existing = await self.find(target)
        if existing is not None:
            raise CheckpointConflictError(target, None, existing.checkpoint_id)
        count = 0
        for head in reversed(await self.list_checkpoints(source, None)):
            if through is not None and head.sequence > through:
                break
            record = await self.retrieve(source, head.checkpoint_id)
            if record is not None:
                await self.store(copied(record, target, through))
                count += 1
        return count

    async def sequences(self, thread_id: str) -> list[int]:
        """Return the sequences of a thread's records, newest first, even if heads are damaged.

        It is called if a list cannot be read because one of its heads is damaged.
        """
        return [head.sequence for head in await self.list_checkpoints(thread_id, None)]

    async def query_by_metadata(self, condition: Condition, limit: int) -> list[RecordHead]:
        """Return the heads of all threads whose metadata matches, newest first."""
        found: list[RecordHead] = []
        after: str | None = None
        while threads := await self.list_threads(self._threads_at_once, after=after):
            heads = await self._heads_of(threads)
            found += [head for head in heads if matches(condition, None, head.metadata)]
            found = heapq.nlargest(limit, found, key=attrgetter("created_at", "sequence"))
            after = threads[-1]
        return found

    async def _heads_of(self, threads: Sequence[str]) -> list[RecordHead]:
        """Return all heads of some threads; override it if that takes fewer round trips."""
        return [head for name in threads for head in await self.list_checkpoints(name, None)]

    async def reclaim(self) -> None:
        """Return the space of removed records to the system."""

    async def open(self) -> None:
        """Connect and set up now, rather than on first use."""

    async def close(self) -> None:
        """Release the resources that this storage opened; calling it again is harmless."""


def copied(record: R, target: str, through: int | None) -> R:
    """Return the copy of a record in the thread `target`, as for `DeltaStorage.copy_thread`."""
    origin = record.forked_from
    if record.sequence == through:
        origin = (record.thread_id, record.checkpoint_id)
    return replace(record, thread_id=target, forked_from=origin)


def check_parent(thread_id: str, expected: str | Unset | None, newest: str | None) -> None:
    """Raise `CheckpointConflictError` unless `expected` is unset or names the newest."""
    if expected is not UNSET and expected != newest:
        raise CheckpointConflictError(thread_id, expected, newest)


def check_replacement(
    heads: Iterable[RecordHead],
    *,
    removed: Collection[int],
    rebased: Sequence[Record],
    base: int | None = None,
) -> None:
    """Raise `StaleChainError` unless the write keeps every base.

    Args:
        heads: The heads of the thread before the write.
        removed: The revisions that the write removes.
        rebased: The records that the write overwrites.
        base: The base of the record that the write appends.
    """
    after = {head.revision: head.base for head in heads if head.revision not in removed}
    for record in rebased:
        if record.revision not in after:
            raise StaleChainError
        after[record.revision] = record.base
    if any(link is not None and link not in after for link in (*after.values(), base)):
        raise StaleChainError


def check_room(
    heads: Sequence[RecordHead],
    record: Record,
    expected_parent: str | Unset | None,
    rebased: Sequence[Record],
) -> None:
    """Raise unless a record may be appended in place of the one of its name.

    Args:
        heads: The heads of the thread before the write, newest first.
        record: The record.
        expected_parent: See `DeltaStorage.store`.
        rebased: The records that the write overwrites.

    Raises:
        CheckpointConflictError: The newest checkpoint is another one than `expected_parent`.
        StaleChainError: The revision is taken, or a base would be missing.
    """
    check_parent(record.thread_id, expected_parent, heads[0].checkpoint_id if heads else None)
    if any(head.revision == record.revision for head in heads):
        raise StaleChainError
    removed = {head.revision for head in heads if head.checkpoint_id == record.checkpoint_id}
    check_replacement(heads, removed=removed, rebased=rebased, base=record.base)


def chain_of(find: Callable[[int], Record | None], newest: Record) -> list[Record]:
    """Return the chain of `newest`, the full record first; `find` returns a revision's record.

    Raises:
        CheckpointCorruptError: A base is missing, or the links form a circle.
    """
    chain = [newest]
    seen = {newest.revision}
    while (base := chain[-1].base) is not None:
        found = find(base)
        if found is None or base in seen:
            raise chain[-1].corrupt("the record it builds on is missing")
        seen.add(base)
        chain.append(found)
    return chain[::-1]


def check_range(prefix: str | None, after: str | None) -> None:
    """Raise `InvalidKeyError` unless both are strings that a thread id may begin with."""
    for bound, what in ((prefix, "a prefix"), (after, "a cursor")):
        if bound not in (None, ""):
            check_identifier(bound, what)


def newest_first(
    heads: Iterable[RecordHead], limit: int | None, before: int | None
) -> list[RecordHead]:
    """Return a page of heads, newest first; see `DeltaStorage.list_checkpoints`."""
    older = (head for head in heads if before is None or head.sequence < before)
    return sorted(older, key=lambda head: head.sequence, reverse=True)[:limit]


def page_of(
    names: Iterable[str], limit: int, *, prefix: str | None, after: str | None
) -> list[str]:
    """Return a page of thread ids in code point order; see `DeltaStorage.list_threads`.

    Raises:
        InvalidKeyError: As for `check_range`.
    """
    check_range(prefix, after)
    wanted = (
        name for name in names if name.startswith(prefix or "") and (after is None or name > after)
    )
    return heapq.nsmallest(limit, wanted)
