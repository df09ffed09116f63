"""Checkpoints in memory: the reference for every other storage."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from typing_extensions import override

from locus_memory.checkpoint.base import UNSET, Unset
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

__all__ = ["InMemoryDeltaStorage"]


class _Log:
    """One thread: its records by checkpoint id, oldest first, and their ids by revision."""

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self.names: dict[int, str] = {}

    @property
    def newest(self) -> str | None:
        return next(reversed(self.records), None)

    def add(self, record: Record) -> None:
        self.records[record.checkpoint_id] = record
        self.names[record.revision] = record.checkpoint_id

    def find(self, checkpoint_id: str | None) -> Record | None:
        name = self.newest if checkpoint_id is None else checkpoint_id
        return None if name is None else self.records.get(name)

    def of_revision(self, revision: int) -> Record | None:
        return self.records.get(self.names.get(revision, ""))

    def remove(self, revision: int) -> bool:
        name = self.names.pop(revision, None)
        return name is not None and self.records.pop(name, None) is not None

    def overwrite(self, rebased: Sequence[Record]) -> None:
        for record in rebased:
            name = self.names[record.revision]
            self.records[name] = replace(record, sequence=self.records[name].sequence)


class InMemoryDeltaStorage(DeltaStorage):
    """A storage in a dict; every verb holds one lock and never awaits, so it is atomic."""

    persistent = False

    def __init__(self) -> None:
        self._threads: dict[str, _Log] = {}
        self._sequence = itertools.count(1)
        self._lock = threading.Lock()
        self._closed = False

    def __repr__(self) -> str:
        return "InMemoryDeltaStorage()"

    @override
    async def store(
        self,
        record: Record,
        *,
        expected_parent: str | Unset | None = UNSET,
        rebased: Sequence[Record] = (),
    ) -> int:
        with self._log(record.thread_id) as log:
            check_parent(record.thread_id, expected_parent, log.newest)
            replaced = log.records.get(record.checkpoint_id)
            if replaced is not None or rebased:
                removed = set() if replaced is None else {replaced.revision}
                heads = log.records.values()
                check_replacement(heads, removed=removed, rebased=rebased, base=record.base)
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
        with self._log(thread_id) as log:
            return log.find(checkpoint_id)

    @override
    async def retrieve_chain(
        self, thread_id: str, checkpoint_id: str | None = None
    ) -> list[Record]:
        with self._log(thread_id) as log:
            newest = log.find(checkpoint_id)
            return [] if newest is None else chain_of(log.of_revision, newest)

    @override
    async def list_checkpoints(
        self, thread_id: str, limit: int | None = 10, *, before: int | None = None
    ) -> list[RecordHead]:
        with self._log(thread_id) as log:
            return newest_first(log.records.values(), limit, before)

    @override
    async def delete(
        self,
        thread_id: str,
        revisions: Collection[int] | None = None,
        *,
        rebased: Sequence[Record] = (),
    ) -> int:
        with self._log(thread_id) as log:
            removed = list(log.names) if revisions is None else revisions
            check_replacement(log.records.values(), removed=removed, rebased=rebased)
            log.overwrite(rebased)
            count = sum([log.remove(revision) for revision in removed])
            if not log.records:
                self._threads.pop(thread_id, None)
            return count

    @override
    async def list_threads(
        self, limit: int = 100, *, prefix: str | None = None, after: str | None = None
    ) -> list[str]:
        with self._log(""):
            return page_of(self._threads, limit, prefix=prefix, after=after)

    @override
    async def open(self) -> None:
        with self._log(""):
            pass

    @override
    async def close(self) -> None:
        self._closed = True

    @contextmanager
    def _log(self, thread_id: str) -> Generator[_Log]:
        """Hold the lock and yield the log of a thread, an empty one if there is none."""
        with self._lock:
            if self._closed:
                raise BackendClosedError("the checkpointer is closed")
            yield self._threads.get(thread_id) or _Log()
