"""Threads whose records are a list in one document, which is replaced under a condition.

A database that has no more than documents under names, and writes one on the condition that it is
still the one that was read, keeps a thread like this: the document is a list of rows, one for each
record, and says where their payloads are. Each change of a thread is one write of its document: it
happens whole or not at all. A writer who was second is refused, reads again and checks again.

- **Payloads first.** What a document names is written before it, under a new name, and never
  changed. A writer that is killed in between leaves what nothing refers to.
- **Lost answers.** A document has the marks of its last writes. A write whose answer is lost, and
  whose condition fails when it is sent again, finds its own mark if it had its effect.
- **A read of several documents** reads the list again if one is missing: its record was removed
  meanwhile.

What is remembered of a thread is only a guess: a write that it refuses is checked once more against
what is there.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence
from functools import partial
from secrets import token_urlsafe
from typing import ClassVar, Final, Generic

from typing_extensions import override

from locus_memory._internal.quoting import quote
from locus_memory._internal.recent import RecentlyUsed
from locus_memory.backends.base import ConnectionT, OverConnection
from locus_memory.backends.loops import Locks, pause
from locus_memory.backends.record_lists.rows import (
    Change,
    ChooseRows,
    ListT,
    Row,
    links_of,
    read_head,
    removed,
    row_of,
    saved,
)
from locus_memory.backends.record_rows import chain_from
from locus_memory.checkpoint.base import UNSET, Unset
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.checkpoint.storage import DeltaStorage, StaleChainError, copied
from locus_memory.errors import (
    BackendUnavailableError,
    CheckpointConflictError,
    CheckpointCorruptError,
)

__all__ = ["ATTEMPTS", "ListStorage"]

ATTEMPTS: Final = 100
"""How often a change starts again because another writer was first."""


class ListStorage(OverConnection[ConnectionT], DeltaStorage, Generic[ConnectionT, ListT]):
    """A storage whose threads are lists in documents.

    A database says how a list is read and written, and where the payloads are.

    Attributes:
        provider: Its name in messages.
    """

    provider: ClassVar[str]
    _known: RecentlyUsed[ListT]

    def __init__(self, known: RecentlyUsed[ListT]) -> None:
        self._known = known
        self._locks = Locks()

    @abstractmethod
    async def _load(
        self, thread_id: str, known: ListT | None = None, *, least: int | None = None
    ) -> ListT:
        """Return the list of a thread.

        Args:
            thread_id: The thread.
            known: A list that may be out of date, and is to be returned whole; `None`: read it.
            least: How many of the newest rows are enough; `None`: all are needed.
        """

    @abstractmethod
    async def _commit(self, before: ListT, change: Change[ListT], mark: str) -> bool:
        """Write a list in place of another, with its new payloads; return whether it is written.

        Args:
            before: The list that the change is made from; if another one is there, nothing is
                changed.
            change: The change.
            mark: The mark of the write.
        """

    @abstractmethod
    async def _records(self, thread_id: str, choose: ChooseRows) -> list[Record]:
        """Return the records of the rows that `choose` returns, as of one moment."""

    @abstractmethod
    async def _discard(self, thread_id: str) -> int:
        """Delete the document of a thread that cannot be read; return whether there was one."""

    @override
    async def store(
        self,
        record: Record,
        *,
        expected_parent: str | Unset | None = UNSET,
        rebased: Sequence[Record] = (),
    ) -> int:
        return await self._change(
            record.thread_id, lambda before: saved(before, record, expected_parent, rebased)
        )

    @override
    async def delete(
        self,
        thread_id: str,
        revisions: Collection[int] | None = None,
        *,
        rebased: Sequence[Record] = (),
    ) -> int:
        try:
            return await self._change(thread_id, lambda before: removed(before, revisions, rebased))
        except CheckpointCorruptError:
            if revisions is not None:
                raise
            self._known.discard(thread_id)
            return await self._discard(thread_id)

    async def _change(self, thread_id: str, plan: Callable[[ListT], Change[ListT] | None]) -> int:
        """Change a thread once, however many writers there are; return the result of `plan`."""
        mark = token_urlsafe(6)
        async with self._locks.of(thread_id):
            known = self._known.get(thread_id)
            for attempt in range(ATTEMPTS):
                before = await self._load(thread_id, known)
                change = None
                try:
                    change = plan(before)
                except (StaleChainError, CheckpointConflictError):
                    if known is None:
                        raise
                if change is not None:
                    if await self._commit(before, change, mark):
                        return change.result
                    await pause(attempt)
                elif known is None:
                    return 0
                known = None
        raise self._busy(thread_id)

    @override
    async def retrieve(self, thread_id: str, checkpoint_id: str | None = None) -> Record | None:
        found = await self._records(thread_id, partial(_only, checkpoint_id=checkpoint_id))
        return found[0] if found else None

    @override
    async def find(self, thread_id: str, checkpoint_id: str | None = None) -> RecordHead | None:
        least = 1 if checkpoint_id is None else None
        row = row_of((await self._load(thread_id, least=least)).rows, checkpoint_id)
        return None if row is None else read_head(thread_id, row)

    @override
    async def retrieve_chain(
        self, thread_id: str, checkpoint_id: str | None = None
    ) -> list[Record]:
        choose = partial(links_of, checkpoint_id=checkpoint_id)
        return chain_from(await self._records(thread_id, choose), checkpoint_id)

    @override
    async def list_checkpoints(
        self, thread_id: str, limit: int | None = 10, *, before: int | None = None
    ) -> list[RecordHead]:
        read = await self._load(thread_id, least=limit if before is None else None)
        wanted = [row for row in read.rows[::-1] if before is None or row.sequence < before]
        return [read_head(thread_id, row) for row in wanted[:limit]]

    @override
    async def sequences(self, thread_id: str) -> list[int]:
        return [row.sequence for row in (await self._load(thread_id)).rows[::-1]]

    @override
    async def copy_thread(self, source: str, target: str, *, through: int | None = None) -> int:
        def choose(rows: list[Row]) -> list[Row]:
            return [row for row in rows if through is None or row.sequence <= through]

        for attempt in range(ATTEMPTS):
            before = await self._load(target)
            if before.newest is not None:
                raise CheckpointConflictError(target, None, before.newest)
            records = [
                copied(each, target, through) for each in await self._records(source, choose)
            ]
            if not records:
                return 0
            after = before.rewritten([before.row(each, each.sequence) for each in records])
            if await self._commit(before, Change(after, len(records)), token_urlsafe(6)):
                return len(records)
            await pause(attempt)
        raise self._busy(target)

    def _busy(self, thread_id: str) -> BackendUnavailableError:
        return BackendUnavailableError(
            f"{self.provider} {self.place}: thread {quote(thread_id)} kept changing while it was "
            "used; try again"
        )


def _only(rows: Sequence[Row], checkpoint_id: str | None) -> list[Row]:
    row = row_of(rows, checkpoint_id)
    return [] if row is None else [row]
