"""Checkpoints in SQLite: a save is one statement, and so is the load of a chain."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, Literal, TypeVar, Unpack

from typing_extensions import override

from locus_memory._internal.options import checked
from locus_memory.backends.record_rows import clamped
from locus_memory.backends.sql.storage import SQLDeltaStorage, Steps
from locus_memory.backends.sqlite import records
from locus_memory.backends.sqlite.connection.connection import SQLiteDatabase, translated
from locus_memory.backends.sqlite.connection.opening import MEMORY
from locus_memory.backends.sqlite.records import blaming
from locus_memory.backends.sqlite.search.filters import compile_filter
from locus_memory.checkpoint.base import UNSET, StateT, Unset
from locus_memory.checkpoint.chain import CheckpointerOptions, DeltaCheckpointer
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.errors import (
    CheckpointConflictError,
)
from locus_memory.store.encoding import encode_text
from locus_memory.store.filters import Condition

__all__ = ["SQLiteCheckpointer", "SQLiteDeltaStorage"]

T = TypeVar("T")

_PAGES: Final = 2000
"""How many pages are given back in one transaction, so that other writers do not wait long."""


class SQLiteDeltaStorage(SQLDeltaStorage[SQLiteDatabase]):
    """Records in a SQLite file, safe for many tasks and processes.

    Args:
        path: The file, or `":memory:"`; created at its first use.
        database: A database to share, which the storage does not close; the rest is ignored then.
        busy_timeout: See `SQLiteDatabase`.
        synchronous: See `SQLiteDatabase`.
    """

    _sql: ClassVar = records

    @checked
    def __init__(
        self,
        path: str | os.PathLike[str] = "./locus.db",
        *,
        database: SQLiteDatabase | None = None,
        busy_timeout: float = 30.0,
        synchronous: Literal["normal", "full"] = "normal",
    ) -> None:
        self._owned = database is None
        self._connection = database or SQLiteDatabase(
            path, busy_timeout=busy_timeout, synchronous=synchronous
        )
        self.persistent = self._connection.path != MEMORY

    @override
    async def _read(self, steps: Callable[[], Steps[T]], *blamed: str | None) -> T:
        def work(connection: sqlite3.Connection) -> T:
            return _taken(connection, steps())

        with blaming(*blamed):
            return await self._connection.read(work)

    @override
    async def _write(self, steps: Callable[[], Steps[T]]) -> T:
        return await self._connection.write(lambda c: _taken(c, steps()))

    @override
    async def _append(self, record: Record, expected_parent: str | Unset | None) -> int | None:
        row = {"thread": encode_text(record.thread_id), **records.to_row(record)}
        row["unchecked"] = expected_parent is UNSET
        row["parent"] = encode_text(expected_parent) if isinstance(expected_parent, str) else None

        def work(connection: sqlite3.Connection) -> int | None:
            try:
                cursor = connection.execute(records.APPEND, row)
            except sqlite3.IntegrityError:
                return None
            return cursor.lastrowid if cursor.rowcount else None

        return await self._connection.write(work)

    @override
    def _claimed(self, thread_id: str) -> Steps[str]:
        thread = encode_text(thread_id)
        yield records.CLAIM, {"thread": thread}
        return thread

    @override
    def _renewed(self, thread: str) -> Steps[None]:
        yield records.REMOVE_EMPTY_THREAD, {"thread": thread}

    @override
    async def with_chain(
        self, thread_id: str, checkpoint_id: str | None, work: Callable[[list[Record]], T]
    ) -> T:
        def steps() -> Steps[T]:
            return work((yield from self._chained(thread_id, checkpoint_id)))

        return await self._read(steps, thread_id, checkpoint_id)

    @override
    async def list_newest(self, thread_ids: Sequence[str], limit: int) -> list[list[RecordHead]]:
        def work(connection: sqlite3.Connection) -> list[list[RecordHead]]:
            found: list[list[RecordHead]] = []
            for name in thread_ids:
                with blaming(name), translated(self._connection.path):
                    found.append(_taken(connection, self._listed(name, limit)))
            return found

        return await self._connection.read(work)

    @override
    async def copy_thread(self, source: str, target: str, *, through: int | None = None) -> int:
        def steps() -> Steps[int]:
            existing = yield from self._found(target, None)
            if existing is not None:
                raise CheckpointConflictError(target, None, existing.checkpoint_id)
            yield from self._claimed(target)
            known = yield from self._moved(source, target, through)
            names = {"source": encode_text(source), "target": encode_text(target)}
            [[count]] = yield records.COPY, {**names, "through": clamped(through), **known}
            yield from self._renewed(encode_text(target))
            return int(count)

        return await self._write(steps)

    @override
    async def query_by_metadata(self, condition: Condition, limit: int) -> list[RecordHead]:
        matching, bound = compile_filter(condition, metadata="checkpoints.metadata", value="NULL")

        def work(connection: sqlite3.Connection) -> list[RecordHead]:
            parameters = {**bound, "most": clamped(limit)}
            try:
                rows = connection.execute(records.MATCHING % matching, parameters).fetchall()
            except sqlite3.OperationalError:
                # Some metadata may not even be JSON: name its record.
                for row in connection.execute(records.MATCHING % "1", {"most": -1}):
                    records.read_head(records.read_thread(row[-1]), row)
                raise
            return [records.read_head(records.read_thread(row[-1]), row) for row in rows]

        return await self._connection.read(work)

    @override
    async def reclaim(self) -> None:
        while await self._connection.write(_give_pages_back):
            pass
        await self._connection.empty_log()


def _taken(connection: sqlite3.Connection, steps: Steps[T], rows: Any = None) -> T:
    """Return what steps return; see `locus_memory.backends.sql.storage.taken`."""
    while True:
        try:
            template, binds = steps.send(rows)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return] # that of the steps
        if isinstance(binds, dict):
            cursor = connection.execute(template, binds)
            rows = cursor.fetchall() if cursor.description else [(cursor.rowcount,)]
        else:
            connection.executemany(template, binds)


def _give_pages_back(connection: sqlite3.Connection) -> bool:
    """Return some free pages to the system; returns whether more are left."""

    def free() -> int:
        return int(connection.execute("PRAGMA freelist_count").fetchone()[0])

    before = free()
    # The statement frees one page per step, and the driver makes one step.
    for _ in range(min(before, _PAGES)):
        connection.execute("PRAGMA incremental_vacuum(1)")
    return 0 < free() < before


class SQLiteCheckpointer(DeltaCheckpointer[StateT]):
    """Checkpoints in a SQLite file; the other options are those of `DeltaCheckpointer`.

    Args:
        path: The file, or `":memory:"`; created at its first use.
        database: A database to share, which the checkpointer does not close.
        busy_timeout: See `SQLiteDatabase`.
        synchronous: See `SQLiteDatabase`.
        options: See `DeltaCheckpointer`.
    """

    @checked
    def __init__(
        self,
        path: str | os.PathLike[str] = "./locus.db",
        *,
        database: SQLiteDatabase | None = None,
        busy_timeout: float = 30.0,
        synchronous: Literal["normal", "full"] = "normal",
        **options: Unpack[CheckpointerOptions[StateT]],
    ) -> None:
        storage = SQLiteDeltaStorage(
            path, database=database, busy_timeout=busy_timeout, synchronous=synchronous
        )
        super().__init__(storage, **options)
