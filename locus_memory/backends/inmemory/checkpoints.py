"""Checkpoints in memory: the storage every other one is compared with."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Unpack

from typing_extensions import override

from locus_memory.checkpoint.base import UNSET, Unset
from locus_memory.checkpoint.chain import CheckpointerOptions, DeltaCheckpointer
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.checkpoint.storage import (
    DeltaStorage,
    StaleChainError,
    chain_of,
    check_parent,
    check_replacement,
    newest_first,
    page_of,
)
from locus_memory.errors import BackendClosedError

__all__ = ["InMemoryDeltaStorage", "MemoryCheckpointer"]


class _Log:
    """One thread: its records by checkpoint id, oldest first, and their names by revision."""

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self.names: dict[int, str] = {}

    @property
    def newest(self) -> str | None:
        return next(reversed(self.records), None)

    def add(self, record: Record) -> None:
        self.records[record.checkpoint_id] = record
        self.names[record.revision] = record.checkpoint_id

    def remove(self, revision: int) -> bool:
        name = self.names.pop(revision, None)
        return name is not None and self.records.pop(name, None) is not None

    def overwrite(self, rebased: Sequence[Record]) -> None:
        for record in rebased:
            name = self.names[record.revision]
            self.records[name] = replace(record, sequence=self.records[name].sequence)


class InMemoryDeltaStorage(DeltaStorage):
    """Records in a dict; every verb is one step of the event loop, so it is atomic."""

    persistent = False

    def __init__(self) -> None:
        self._threads: dict[str, _Log] = {}
        self._sequence = itertools.count(1)
        self._closed = False

    @override
    async def store(
        self,
        record: Record,
        *,
        expected_parent: str | Unset | None = UNSET,
        rebased: Sequence[Record] = (),
    ) -> int:
        log = self._log(record.thread_id)
        check_parent(record.thread_id, expected_parent, log.newest)
        replaced = log.records.get(record.checkpoint_id)
        if replaced is not None or rebased:
            removed = set() if replaced is None else {replaced.revision}
            check_replacement(
                log.records.values(), removed=removed, rebased=rebased, base=record.base
            )
        elif record.base is not None and record.base not in log.names:
            raise StaleChainError
        sequence = next(self._sequence)
        log.overwrite(rebased)
        if replaced is not None:
            log.remove(replaced.revision)
        log.add(replace(record, sequence=sequence))
        self._threads[record.thread_id] = log
        return sequence

    @override
    async def retrieve(self, thread_id: str, checkpoint_id: str | None = None) -> Record | None:
        log = self._log(thread_id)
        name = log.newest if checkpoint_id is None else checkpoint_id
        return None if name is None else log.records.get(name)

    @override
    async def retrieve_chain(
        self, thread_id: str, checkpoint_id: str | None = None
    ) -> list[Record]:
        newest = await self.retrieve(thread_id, checkpoint_id)
        if newest is None:
            return []
        log = self._log(thread_id)
        return chain_of(lambda revision: log.records.get(log.names.get(revision, "")), newest)

    @override
    async def list_checkpoints(
        self, thread_id: str, limit: int | None = 10, *, before: int | None = None
    ) -> list[RecordHead]:
        return newest_first(self._log(thread_id).records.values(), limit, before)

    @override
    async def delete(
        self,
        thread_id: str,
        revisions: Collection[int] | None = None,
        *,
        rebased: Sequence[Record] = (),
    ) -> int:
        log = self._log(thread_id)
        if revisions is None:
            self._threads.pop(thread_id, None)
            return len(log.records)
        check_replacement(log.records.values(), removed=revisions, rebased=rebased)
        log.overwrite(rebased)
        count = sum([log.remove(revision) for revision in revisions])
        if not log.records:
            self._threads.pop(thread_id, None)
        return count

    @override
    async def list_threads(
        self, limit: int = 100, *, prefix: str | None = None, after: str | None = None
    ) -> list[str]:
        self._log("")
        return page_of(self._threads, limit, prefix=prefix, after=after)

    @override
    async def close(self) -> None:
        self._closed = True

    def __repr__(self) -> str:
        return "InMemoryDeltaStorage()"

    def _log(self, thread_id: str) -> _Log:
        if self._closed:
            raise BackendClosedError("the checkpointer is closed")
        return self._threads.get(thread_id) or _Log()


class MemoryCheckpointer(DeltaCheckpointer):
    """Checkpoints in memory, gone with the process; the options are `DeltaCheckpointer`'s."""

    def __init__(self, **options: Unpack[CheckpointerOptions]) -> None:
        super().__init__(InMemoryDeltaStorage(), **options)
