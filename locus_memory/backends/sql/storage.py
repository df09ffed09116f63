"""Checkpoints as rows: each verb as steps, which an engine runs in its own way.

A step is a statement with its binds, or with a list of binds if it is to run once for each; it gets
rows, or one row with a count. So nothing here waits: a driver may block a thread or an event loop.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Collection, Generator, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any, ClassVar, Generic, TypeVar

from typing_extensions import override

from locus_memory.backends.base import ConnectionT, OverConnection
from locus_memory.backends.record_rows import chain_from, check_name, clamped, optional_text
from locus_memory.checkpoint.base import UNSET, Unset
from locus_memory.checkpoint.record import Record, RecordHead, moved
from locus_memory.checkpoint.storage import (
    DeltaStorage,
    check_range,
    check_replacement,
    check_room,
)
from locus_memory.store.encoding import encode_text, prefix_upper_bound

__all__ = ["Binds", "SQLDeltaStorage", "Steps", "taken"]

T = TypeVar("T")

Binds = dict[str, Any]
Steps = Generator[tuple[str, Binds | list[Binds]], list[Any], T]


async def taken(
    steps: Steps[T], ask: Callable[[str, Any], Awaitable[list[Any]]], rows: Any = None
) -> T:
    """Return what steps return, each of which is answered by `ask`."""
    while True:
        try:
            template, binds = steps.send(rows)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return] # that of the steps
        rows = await ask(template, binds)


class SQLDeltaStorage(OverConnection[ConnectionT], DeltaStorage, Generic[ConnectionT]):
    """Records as rows of two tables, of threads and of checkpoints.

    An engine has a module with its statements, and with the functions that make its binds and read
    its rows: `_sql`. It implements what is abstract here, and `copy_thread`.
    """

    _sql: ClassVar[ModuleType]

    @abstractmethod
    async def _read(self, steps: Callable[[], Steps[T]], *blamed: str | None) -> T:
        """Return what steps return that only read.

        Args:
            steps: The steps.
            blamed: The thread and perhaps the checkpoint that an error of damage names.
        """

    @abstractmethod
    async def _write(self, steps: Callable[[], Steps[T]]) -> T:
        """Return what the steps of one transaction return."""

    @abstractmethod
    async def _append(self, record: Record, expected_parent: str | Unset | None) -> int | None:
        """Append a record to its thread, and return its sequence; `None`: there is no room yet."""

    @abstractmethod
    def _claimed(self, thread_id: str) -> Steps[Any]:
        """Lock a thread, which is made if need be; return what names it in writes."""

    @abstractmethod
    def _renewed(self, thread: Any) -> Steps[None]:
        """Note the newest checkpoint of a thread, and remove the thread if it has none."""

    @override
    async def store(
        self,
        record: Record,
        *,
        expected_parent: str | Unset | None = UNSET,
        rebased: Sequence[Record] = (),
    ) -> int:
        sequence = None if rebased else await self._append(record, expected_parent)
        if sequence is None:
            sequence = await self._write(lambda: self._placed(record, expected_parent, rebased))
        return sequence

    def _placed(
        self, record: Record, expected_parent: str | Unset | None, rebased: Sequence[Record]
    ) -> Steps[int]:
        """Write a record in place of one with its name, and of the payloads built on that."""
        thread = yield from self._claimed(record.thread_id)
        heads = yield from self._listed(record.thread_id)
        check_room(heads, record, expected_parent, rebased)
        yield from self._overwritten(thread, rebased)
        name = self._sql.name_of(record.checkpoint_id)
        yield self._sql.REMOVE_NAMED, {"thread": thread, "name": name}
        yield self._sql.APPEND_LOCKED, {"thread": thread, **self._sql.to_row(record)}
        yield from self._renewed(thread)
        return next(iter((yield from self._listed(record.thread_id, 1)))).sequence

    def _overwritten(self, thread: Any, rebased: Sequence[Record]) -> Steps[None]:
        if rebased:
            rows = [{"thread": thread, **self._sql.to_rewrite(each)} for each in rebased]
            yield self._sql.OVERWRITE, rows

    @override
    async def retrieve(self, thread_id: str, checkpoint_id: str | None = None) -> Record | None:
        chain = await self.retrieve_chain(thread_id, checkpoint_id)
        return chain[-1] if chain else None

    def _wanted(
        self, statement: str, thread_id: str, checkpoint_id: str | None
    ) -> tuple[str, Binds]:
        """Return a statement for the newest or a named checkpoint, with its binds."""
        binds = {"thread": self._sql.thread_of(thread_id)}
        if checkpoint_id is None:
            return getattr(self._sql, f"{statement}_NEWEST"), binds
        binds["name"] = self._sql.name_of(checkpoint_id)
        return getattr(self._sql, f"{statement}_NAMED"), binds

    @override
    async def find(self, thread_id: str, checkpoint_id: str | None = None) -> RecordHead | None:
        return await self._read(
            lambda: self._found(thread_id, checkpoint_id), thread_id, checkpoint_id
        )

    def _found(self, thread_id: str, checkpoint_id: str | None) -> Steps[RecordHead | None]:
        rows = yield self._wanted("FIND", thread_id, checkpoint_id)
        return check_name(self._sql.read_head(thread_id, rows[0]), checkpoint_id) if rows else None

    @override
    async def retrieve_chain(
        self, thread_id: str, checkpoint_id: str | None = None
    ) -> list[Record]:
        return await self._read(
            lambda: self._chained(thread_id, checkpoint_id), thread_id, checkpoint_id
        )

    def _chained(self, thread_id: str, checkpoint_id: str | None) -> Steps[list[Record]]:
        rows = yield self._wanted("CHAIN_OF", thread_id, checkpoint_id)
        return chain_from([self._sql.read_record(thread_id, row) for row in rows], checkpoint_id)

    @override
    async def list_checkpoints(
        self, thread_id: str, limit: int | None = 10, *, before: int | None = None
    ) -> list[RecordHead]:
        return await self._read(lambda: self._listed(thread_id, limit, before), thread_id)

    def _listed(
        self, thread_id: str, limit: int | None = None, before: int | None = None
    ) -> Steps[list[RecordHead]]:
        thread = self._sql.thread_of(thread_id)
        binds = {"thread": thread, "before": clamped(before), "most": clamped(limit)}
        rows = yield self._sql.LIST, binds
        return [self._sql.read_head(thread_id, row) for row in rows]

    @override
    async def sequences(self, thread_id: str) -> list[int]:
        def steps() -> Steps[list[int]]:
            rows = yield self._sql.SEQUENCES, {"thread": self._sql.thread_of(thread_id)}
            return [int(row[0]) for row in rows]

        return await self._read(steps, thread_id)

    @override
    async def delete(
        self,
        thread_id: str,
        revisions: Collection[int] | None = None,
        *,
        rebased: Sequence[Record] = (),
    ) -> int:
        def steps() -> Steps[int]:
            locked = yield self._sql.LOCK, {"thread": self._sql.thread_of(thread_id)}
            if not locked:
                return 0
            thread = locked[0][0]
            if revisions is None:
                [[count]] = yield self._sql.REMOVE_ALL, {"thread": thread}
            else:
                heads = yield from self._listed(thread_id)
                check_replacement(heads, removed=revisions, rebased=rebased)
                yield from self._overwritten(thread, rebased)
                # The newest first: a base is older than its deltas.
                gone = [head.revision for head in heads if head.revision in revisions]
                if count := len(gone):
                    yield self._sql.REMOVE, [{"thread": thread, "revision": r} for r in gone]
            yield from self._renewed(thread)
            return int(count)

        return await self._write(steps)

    @override
    async def list_threads(
        self, limit: int = 100, *, prefix: str | None = None, after: str | None = None
    ) -> list[str]:
        check_range(prefix, after)
        start = encode_text(prefix or "")
        bounds = {
            "after": encode_text(after or ""),
            "start": start,
            "bound": prefix_upper_bound(start),
            "most": clamped(limit),
        }

        def steps() -> Steps[list[str]]:
            rows = yield self._sql.THREADS, bounds
            return [self._sql.read_thread(row[0]) for row in rows]

        return await self._read(steps)

    def _moved(self, source: str, target: str, through: int | None) -> Steps[Binds]:
        """Return what a copy on the server needs: seals change by a XOR, see `record.moved`.

        The record that a fork begins with, if there is one, notes where it comes from.
        """
        mask = moved(source, target, None, None)
        known: Binds = {"mask": mask, "fork": None, "fork_mask": mask, "forked_from": None}
        if through is not None:
            heads = yield from self._listed(source, 1, through + 1)
            if heads and heads[0].sequence == through:
                origin = source, heads[0].checkpoint_id
                first = replace(heads[0], forked_from=origin)
                known["fork"], known["forked_from"] = through, optional_text(first)
                known["fork_mask"] = moved(source, target, heads[0].forked_from, origin)
        return known
