"""Checkpoints in SQLite: a save is one statement, and so is the load of a chain."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, Literal, TypeVar, Unpack

from typing_extensions import override

from locus_memory._internal.options import checked
from locus_memory.backends.base import OverConnection
from locus_memory.backends.record_rows import chain_from, check_name, clamped, fork_text
from locus_memory.backends.sqlite.connection.connection import SQLiteDatabase
from locus_memory.backends.sqlite.connection.opening import MEMORY
from locus_memory.backends.sqlite.records import (
    HEAD,
    blaming,
    read_head,
    read_record,
    read_thread,
    to_row,
)
from locus_memory.backends.sqlite.search.filters import compile_filter
from locus_memory.checkpoint.base import UNSET, StateT, Unset
from locus_memory.checkpoint.chain import CheckpointerOptions, DeltaCheckpointer
from locus_memory.checkpoint.record import Record, RecordHead, moved
from locus_memory.checkpoint.storage import (
    DeltaStorage,
    check_range,
    check_replacement,
    check_room,
)
from locus_memory.errors import (
    CheckpointConflictError,
)
from locus_memory.store.encoding import encode_text, prefix_upper_bound
from locus_memory.store.filters import Condition

__all__ = ["SQLiteCheckpointer", "SQLiteDeltaStorage"]

T = TypeVar("T")

_THREAD: Final = "SELECT id FROM threads WHERE thread_id = ?"

_ADD_THREAD: Final = "INSERT INTO threads (thread_id) VALUES (?) ON CONFLICT DO NOTHING"

_APPEND: Final = """
INSERT INTO checkpoints
  (thread, checkpoint_id, revision, base, level, created_at, metadata, size, seal, forked_from,
   payload)
SELECT id, :name, :revision, :base, :level, :created_at, :metadata, :size, :seal, :forked_from,
  :payload
FROM threads
WHERE thread_id = :thread
  AND (:base IS NULL OR EXISTS (
    SELECT 1 FROM checkpoints WHERE thread = threads.id AND revision = :base))
  AND (:unchecked OR :parent IS (
    SELECT checkpoint_id FROM checkpoints WHERE thread = threads.id
    ORDER BY sequence DESC LIMIT 1))
"""

_OVERWRITE: Final = """
UPDATE checkpoints
SET base = :base, level = :level, size = :size, seal = :seal, forked_from = :forked_from,
  payload = :payload
WHERE thread = (SELECT id FROM threads WHERE thread_id = :thread) AND revision = :revision
"""

_REMOVE: Final = "DELETE FROM checkpoints WHERE thread = ? AND revision = ?"

_COUNT: Final = "SELECT count(*) FROM checkpoints WHERE thread = ?"

_REMOVE_THREAD: Final = "DELETE FROM threads WHERE id = ?"

_REMOVE_EMPTY_THREAD: Final = """
DELETE FROM threads WHERE id = :thread
  AND NOT EXISTS (SELECT 1 FROM checkpoints WHERE thread = :thread)
"""

_NEWEST: Final = f"thread = ({_THREAD}) ORDER BY sequence DESC LIMIT 1"
_NAMED: Final = f"thread = ({_THREAD}) AND checkpoint_id = ?"

_FIND: Final = f"SELECT {HEAD} FROM checkpoints WHERE %s"  # noqa: S608 - constants only, as below

_LIST: Final = f"""
SELECT {HEAD} FROM checkpoints WHERE thread = ({_THREAD}) AND sequence < ?
ORDER BY sequence DESC LIMIT ?
"""  # noqa: S608

_SEQUENCES: Final = f"""
SELECT sequence FROM checkpoints WHERE thread = ({_THREAD}) ORDER BY sequence DESC
"""  # noqa: S608

_CHAIN: Final = f"""
WITH RECURSIVE chain (thread, sequence, base) AS (
  SELECT * FROM (SELECT thread, sequence, base FROM checkpoints WHERE %s)
  UNION
  SELECT c.thread, c.sequence, c.base
  FROM chain JOIN checkpoints AS c ON c.thread = chain.thread AND c.revision = chain.base)
SELECT {HEAD}, payload FROM checkpoints WHERE sequence IN (SELECT sequence FROM chain)
ORDER BY sequence DESC
"""  # noqa: S608

_MATCHING: Final = f"""
SELECT {HEAD}, CAST(thread_id AS BLOB)
FROM checkpoints JOIN threads ON threads.id = checkpoints.thread
WHERE %s ORDER BY sequence DESC LIMIT :most
"""  # noqa: S608

_THREADS: Final = """
SELECT CAST(thread_id AS BLOB) FROM threads
WHERE thread_id > :after AND thread_id >= :prefix AND (:bound IS NULL OR thread_id < :bound)
ORDER BY thread_id LIMIT :limit
"""

# A XOR transfers a seal with its record to another thread; see `record.moved`. The first byte of a
# payload tells whether its seal is of an earlier version, which does not cover the thread.
_COPY: Final = """
INSERT INTO checkpoints
  (thread, checkpoint_id, revision, base, level, created_at, metadata, size, seal, forked_from,
   payload)
SELECT
  :target, checkpoint_id, revision, base, level, created_at, metadata, size,
  CASE substr(payload, 1, 1) WHEN x'01' THEN seal ELSE (seal | mask) - (seal & mask) END,
  CASE sequence WHEN :fork THEN :forked_from ELSE forked_from END,
  payload
FROM (
  SELECT *, CASE sequence WHEN :fork THEN :fork_mask ELSE :mask END AS mask
  FROM checkpoints WHERE thread = :source AND sequence <= :through)
ORDER BY sequence
"""

_FIND_SEQUENCE: Final = f"""
SELECT {HEAD} FROM checkpoints WHERE thread = ({_THREAD}) AND sequence = ?
"""  # noqa: S608


_PAGES: Final = 2000
"""How many pages are given back in one transaction, so that other writers do not wait long."""


class SQLiteDeltaStorage(OverConnection[SQLiteDatabase], DeltaStorage):
    """Records in a SQLite file, safe for many tasks and processes.

    Args:
        path: The file, or `":memory:"`; created at its first use.
        database: A database to share, which the storage does not close; the rest is ignored then.
        busy_timeout: See `SQLiteDatabase`.
        synchronous: See `SQLiteDatabase`.
    """

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
    async def store(
        self,
        record: Record,
        *,
        expected_parent: str | Unset | None = UNSET,
        rebased: Sequence[Record] = (),
    ) -> int:
        row = to_row(record)
        row["unchecked"] = expected_parent is UNSET
        row["parent"] = encode_text(expected_parent) if isinstance(expected_parent, str) else None

        def work(connection: sqlite3.Connection) -> int:
            sequence = None if rebased else _append(connection, row)
            if sequence is not None:
                return sequence
            thread = _add_thread(connection, row["thread"])
            heads = _heads(connection, record.thread_id, None, None)
            check_room(heads, record, expected_parent, rebased)
            _overwrite(connection, rebased)
            connection.execute(
                "DELETE FROM checkpoints WHERE thread = ? AND checkpoint_id = ?",
                (thread, row["name"]),
            )
            return connection.execute(_APPEND, {**row, "unchecked": True}).lastrowid or 0

        return await self._connection.write(work)

    @override
    async def retrieve(self, thread_id: str, checkpoint_id: str | None = None) -> Record | None:
        chain = await self.retrieve_chain(thread_id, checkpoint_id)
        return chain[-1] if chain else None

    @override
    async def find(self, thread_id: str, checkpoint_id: str | None = None) -> RecordHead | None:
        with blaming(thread_id, checkpoint_id):
            return await self._connection.read(lambda c: _find(c, thread_id, checkpoint_id))

    @override
    async def retrieve_chain(
        self, thread_id: str, checkpoint_id: str | None = None
    ) -> list[Record]:
        return await self.with_chain(thread_id, checkpoint_id, list)

    @override
    async def with_chain(
        self, thread_id: str, checkpoint_id: str | None, work: Callable[[list[Record]], T]
    ) -> T:
        with blaming(thread_id, checkpoint_id):
            return await self._connection.read(lambda c: work(_chain(c, thread_id, checkpoint_id)))

    @override
    async def list_checkpoints(
        self, thread_id: str, limit: int | None = 10, *, before: int | None = None
    ) -> list[RecordHead]:
        with blaming(thread_id, None):
            return await self._connection.read(lambda c: _heads(c, thread_id, limit, before))

    @override
    async def sequences(self, thread_id: str) -> list[int]:
        name = (encode_text(thread_id),)
        with blaming(thread_id, None):
            return await self._connection.read(
                lambda c: [row[0] for row in c.execute(_SEQUENCES, name)]
            )

    @override
    async def delete(
        self,
        thread_id: str,
        revisions: Collection[int] | None = None,
        *,
        rebased: Sequence[Record] = (),
    ) -> int:
        def work(connection: sqlite3.Connection) -> int:
            found = connection.execute(_THREAD, (encode_text(thread_id),)).fetchone()
            if found is None:
                return 0
            if revisions is None:
                count = int(connection.execute(_COUNT, found).fetchone()[0])
                connection.execute(_REMOVE_THREAD, found)
                return count
            heads = _heads(connection, thread_id, None, None)
            check_replacement(heads, removed=revisions, rebased=rebased)
            _overwrite(connection, rebased)
            pairs = ((found[0], revision) for revision in revisions)
            count = connection.executemany(_REMOVE, pairs).rowcount
            connection.execute(_REMOVE_EMPTY_THREAD, {"thread": found[0]})
            return count

        return await self._connection.write(work)

    @override
    async def list_threads(
        self, limit: int = 100, *, prefix: str | None = None, after: str | None = None
    ) -> list[str]:
        check_range(prefix, after)
        start = encode_text(prefix or "")
        bounds = {
            "after": encode_text(after or ""),
            "prefix": start,
            "bound": prefix_upper_bound(start),
            "limit": clamped(limit),
        }
        rows = await self._connection.read(lambda c: c.execute(_THREADS, bounds).fetchall())
        return [read_thread(row[0]) for row in rows]

    @override
    async def copy_thread(self, source: str, target: str, *, through: int | None = None) -> int:
        def work(connection: sqlite3.Connection) -> int:
            existing = _find(connection, target, None)
            if existing is not None:
                raise CheckpointConflictError(target, None, existing.checkpoint_id)
            bounds = {
                "source": _add_thread(connection, encode_text(source)),
                "target": _add_thread(connection, encode_text(target)),
                "through": clamped(through),
                **_seals_of_copies(connection, source, target, through),
            }
            return connection.execute(_COPY, bounds).rowcount

        return await self._connection.write(work)

    @override
    async def query_by_metadata(self, condition: Condition, limit: int) -> list[RecordHead]:
        matching, bound = compile_filter(condition, metadata="checkpoints.metadata", value="NULL")

        def work(connection: sqlite3.Connection) -> list[RecordHead]:
            parameters = {**bound, "most": clamped(limit)}
            try:
                rows = connection.execute(_MATCHING % matching, parameters).fetchall()
            except sqlite3.OperationalError:
                # Some metadata may not even be JSON: name its record.
                for row in connection.execute(_MATCHING % "1", {"most": -1}):
                    read_head(read_thread(row[-1]), row)
                raise
            return [read_head(read_thread(row[-1]), row) for row in rows]

        return await self._connection.read(work)

    @override
    async def reclaim(self) -> None:
        while await self._connection.write(_give_pages_back):
            pass
        await self._connection.empty_log()


def _seals_of_copies(
    connection: sqlite3.Connection, source: str, target: str, through: int | None
) -> dict[str, Any]:
    """Return the parameters of `_COPY` for the fork point and for the change of the seals."""
    mask = moved(source, target, None, None)
    known: dict[str, Any] = {"mask": mask, "fork": None, "fork_mask": mask, "forked_from": None}
    if through is None:
        return known
    row = connection.execute(_FIND_SEQUENCE, (encode_text(source), clamped(through))).fetchone()
    if row is not None:
        head = read_head(source, row)
        origin = source, head.checkpoint_id
        known["fork"], known["forked_from"] = head.sequence, fork_text(origin)
        known["fork_mask"] = moved(source, target, head.forked_from, origin)
    return known


def _append(connection: sqlite3.Connection, row: dict[str, Any]) -> int | None:
    """Append in one statement; `None` if one statement is not enough."""
    try:
        cursor = connection.execute(_APPEND, row)
    except sqlite3.IntegrityError:
        return None
    return cursor.lastrowid if cursor.rowcount else None


def _overwrite(connection: sqlite3.Connection, rebased: Sequence[Record]) -> None:
    connection.executemany(_OVERWRITE, map(to_row, rebased))


def _add_thread(connection: sqlite3.Connection, thread: str) -> int:
    connection.execute(_ADD_THREAD, (thread,))
    return int(connection.execute(_THREAD, (thread,)).fetchone()[0])


def _give_pages_back(connection: sqlite3.Connection) -> bool:
    """Return some free pages to the system; returns whether more are left."""

    def free() -> int:
        return int(connection.execute("PRAGMA freelist_count").fetchone()[0])

    before = free()
    # The statement frees one page per step, and the driver makes one step.
    for _ in range(min(before, _PAGES)):
        connection.execute("PRAGMA incremental_vacuum(1)")
    return 0 < free() < before


def _selected(
    connection: sqlite3.Connection, statement: str, thread_id: str, checkpoint_id: str | None
) -> sqlite3.Cursor:
    """Run a statement on a checkpoint, the newest for `None`."""
    if checkpoint_id is None:
        return connection.execute(statement % _NEWEST, (encode_text(thread_id),))
    names = encode_text(thread_id), encode_text(checkpoint_id)
    return connection.execute(statement % _NAMED, names)


def _find(
    connection: sqlite3.Connection, thread_id: str, checkpoint_id: str | None
) -> RecordHead | None:
    row = _selected(connection, _FIND, thread_id, checkpoint_id).fetchone()
    if row is None:
        return None
    head = read_head(thread_id, row)
    return head if checkpoint_id is None else check_name(head, checkpoint_id)


def _chain(
    connection: sqlite3.Connection, thread_id: str, checkpoint_id: str | None
) -> list[Record]:
    rows = _selected(connection, _CHAIN, thread_id, checkpoint_id)
    return chain_from([read_record(thread_id, row) for row in rows], checkpoint_id)


def _heads(
    connection: sqlite3.Connection, thread_id: str, limit: int | None, before: int | None
) -> list[RecordHead]:
    bounds = (
        encode_text(thread_id),
        clamped(before),
        clamped(limit),
    )
    rows = connection.execute(_LIST, bounds).fetchall()
    return [read_head(thread_id, row) for row in rows]


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
