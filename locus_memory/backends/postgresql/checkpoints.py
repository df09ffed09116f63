"""Checkpoints in PostgreSQL: a save is one statement, and so is the load of a chain.

Whatever writes to a thread locks its row first. A save does so in the statement that appends
the record; only one that replaces another, or that was refused, takes a transaction. When
many are saved at the same moment, those of several threads share a round trip.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple, Unpack

from typing_extensions import override

from locus_memory.backends.postgresql.connection import (
    Connection,
    ConnectionOptions,
    PostgreSQLPool,
    pool_for,
)
from locus_memory.backends.postgresql.driver import Pool, UniqueViolationError
from locus_memory.backends.postgresql.filters import compile_filter
from locus_memory.backends.postgresql.grouping import Grouping
from locus_memory.backends.postgresql.records import (
    COLUMNS,
    HEAD,
    check_name,
    clamped,
    digest_of,
    read_head,
    read_record,
    read_thread,
    to_columns,
    to_row,
)
from locus_memory.checkpoint.base import UNSET, Unset
from locus_memory.checkpoint.chain import CheckpointerOptions, DeltaCheckpointer
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.checkpoint.storage import (
    DeltaStorage,
    StaleChainError,
    chain_of,
    check_parent,
    check_range,
    check_replacement,
)
from locus_memory.errors import BackendError, CheckpointConflictError
from locus_memory.events import emit
from locus_memory.store.encoding import encode_text, prefix_upper_bound
from locus_memory.store.filters import Condition

__all__ = ["PostgreSQLCheckpointer", "PostgreSQLDeltaStorage"]

_THREAD: Final = "SELECT id FROM {threads} WHERE digest = $1"

_INSERT: Final = f"""
INSERT INTO {{checkpoints}} (thread, {COLUMNS})
SELECT id, $2, $3::text, $4::bigint, $5::bigint, $6::integer, $7::float8, $8::text::json,
  $9::bigint, $10::bigint, $11::bytea
FROM thread RETURNING sequence, $1
"""  # noqa: S608 - constants only, here and below

# The part `thread` locks the thread's row, and looks at what others may have changed while it
# waited for it: the newest checkpoint, and whether records were removed since the statement
# began, so that the base it sees may be gone. Looking the thread's number up first leaves the
# planner nothing but the indexes, however little it knows of new tables.
_APPEND: Final = f"""
WITH known AS (SELECT id, removals FROM {{threads}} WHERE digest = $1),
thread AS (
  UPDATE {{threads}} SET newest = $2
  WHERE digest = $1 AND ($12::boolean OR newest = $13::bytea)
    AND removals = (SELECT removals FROM known)
    AND ($5::bigint IS NULL OR EXISTS (
      SELECT 1 FROM {{checkpoints}} WHERE thread = (SELECT id FROM known) AND revision = $5))
    AND NOT EXISTS (
      SELECT 1 FROM {{checkpoints}} WHERE thread = (SELECT id FROM known) AND digest = $2)
  RETURNING id)
{_INSERT}
"""  # noqa: S608

# What is no delta may be the first of its thread.
_BEGIN: Final = f"""
WITH known AS (SELECT id, removals FROM {{threads}} WHERE digest = $1),
thread AS (
  INSERT INTO {{threads}} AS t (digest, thread_id, newest) SELECT $1, $13, $2
  ON CONFLICT (digest) DO UPDATE SET newest = EXCLUDED.newest
  WHERE $12::boolean AND t.removals = (SELECT removals FROM known)
    AND NOT EXISTS (
      SELECT 1 FROM {{checkpoints}} WHERE thread = (SELECT id FROM known) AND digest = $2)
  RETURNING id)
{_INSERT}
"""  # noqa: S608

# Appends that share a transaction leave out a thread whose row somebody else has locked: or all
# of them would wait for it.
_FREE: Final = """
WITH free AS (SELECT FROM {threads} WHERE digest = $1 FOR UPDATE SKIP LOCKED),
known AS"""

_TOGETHER: Final = {
    _APPEND: _APPEND.replace("\nWITH known AS", _FREE).replace(
        "  WHERE digest = $1 AND", "  WHERE EXISTS (SELECT FROM free) AND digest = $1 AND"
    ),
    _BEGIN: _BEGIN.replace("\nWITH known AS", _FREE).replace(
        "SELECT $1, $13, $2",
        "SELECT $1, $13, $2 WHERE EXISTS (SELECT FROM free) OR NOT EXISTS (SELECT FROM known)",
    ),
}
"""What does as much for one of several."""

_APPEND_LOCKED: Final = f"""
WITH thread AS (UPDATE {{threads}} SET newest = $2 WHERE id = $1 RETURNING id)
{_INSERT}
"""  # noqa: S608

_CLAIM: Final = """
INSERT INTO {threads} AS t (digest, thread_id) VALUES ($1, $2)
ON CONFLICT (digest) DO UPDATE SET removals = t.removals + 1
RETURNING id
"""

_LOCK: Final = "UPDATE {threads} SET removals = removals + 1 WHERE digest = $1 RETURNING id"

_OVERWRITE: Final = """
UPDATE {checkpoints} AS c
SET base = n.base, level = n.level, size = n.size, seal = n.seal, payload = n.payload
FROM unnest($2::bigint[], $3::bigint[], $4::integer[], $5::bigint[], $6::bigint[], $7::bytea[])
  AS n (revision, base, level, size, seal, payload)
WHERE c.thread = $1 AND c.revision = n.revision
"""

_REMOVE_NAMED: Final = "DELETE FROM {checkpoints} WHERE thread = $1 AND digest = $2"

_REMOVE: Final = """
WITH gone AS (
  DELETE FROM {checkpoints} WHERE thread = $1 AND revision = ANY ($2::bigint[]) RETURNING 1)
SELECT count(*) FROM gone
"""

_REMOVE_ALL: Final = """
WITH gone AS (DELETE FROM {checkpoints} WHERE thread = $1 RETURNING 1)
SELECT count(*) FROM gone
"""

_RENEW: Final = """
UPDATE {threads} SET newest = (
  SELECT digest FROM {checkpoints} WHERE thread = $1 ORDER BY sequence DESC LIMIT 1)
WHERE id = $1 RETURNING newest
"""

_REMOVE_THREAD: Final = "DELETE FROM {threads} WHERE id = $1"

_FIND_NEWEST: Final = f"""
SELECT {HEAD} FROM {{checkpoints}} WHERE thread = ({_THREAD}) ORDER BY sequence DESC LIMIT 1
"""  # noqa: S608

_FIND_NAMED: Final = f"""
SELECT {HEAD} FROM {{checkpoints}} WHERE thread = ({_THREAD}) AND digest = $2
"""  # noqa: S608

_LIST: Final = f"""
SELECT {HEAD} FROM {{checkpoints}} WHERE thread = ({_THREAD}) AND sequence < $2
ORDER BY sequence DESC LIMIT $3
"""  # noqa: S608

# A base is older than what builds on it; so the search ends even where links run in a circle.
# `LATERAL` and `LIMIT` make it look each base up by its index, whatever the planner believes.
_CHAIN: Final = f"""
WITH RECURSIVE chain AS (
  (SELECT * FROM {{checkpoints}} WHERE thread = ({_THREAD}) %s)
  UNION ALL
  SELECT found.* FROM chain CROSS JOIN LATERAL (
    SELECT * FROM {{checkpoints}} AS c
    WHERE c.thread = chain.thread AND c.revision = chain.base LIMIT 1) AS found
  WHERE found.sequence < chain.sequence)
SELECT {HEAD}, payload FROM chain ORDER BY sequence DESC
"""  # noqa: S608

_CHAIN_OF_NEWEST: Final = _CHAIN % "ORDER BY sequence DESC LIMIT 1"

_CHAIN_OF_NAMED: Final = _CHAIN % "AND digest = $2"

# Each row's metadata is parsed once, however often a filter asks for it.
_MATCHING: Final = f"""
SELECT {HEAD}, thread_id
FROM {{checkpoints}} AS c JOIN {{threads}} AS t ON t.id = c.thread
CROSS JOIN LATERAL (SELECT c.metadata::jsonb AS document OFFSET 0) AS parsed
WHERE %s ORDER BY sequence DESC LIMIT $1
"""  # noqa: S608

_THREADS: Final = """
SELECT thread_id FROM {threads}
WHERE left(thread_id, 500) >= left($1, 500) AND thread_id > $1
  AND left(thread_id, 500) >= left($2, 500) AND thread_id >= $2
  AND ($3::text IS NULL OR (left(thread_id, 500) <= left($3, 500) AND thread_id < $3))
ORDER BY left(thread_id, 500), thread_id LIMIT $4
"""

# A thread that is not there, or has no such record, has no newest one to begin a copy with.
_COPY: Final = f"""
WITH source AS (
  SELECT * FROM {{checkpoints}} WHERE thread = ({_THREAD}) AND sequence <= $4),
target AS (
  INSERT INTO {{threads}} (digest, thread_id, newest)
  SELECT $2, $3, digest FROM source ORDER BY sequence DESC LIMIT 1
  ON CONFLICT DO NOTHING RETURNING id),
copied AS (
  INSERT INTO {{checkpoints}} (thread, {COLUMNS})
  SELECT target.id, {COLUMNS} FROM source, target ORDER BY sequence RETURNING 1)
SELECT count(*) FROM copied
"""  # noqa: S608

_VACUUM: Final = "VACUUM {threads}, {checkpoints}"

_NO_BOUND: Final = 2**63 - 1


class _Append(NamedTuple):
    """An append that takes one statement: the statement, and its arguments."""

    statement: str
    values: tuple[Any, ...]


class PostgreSQLDeltaStorage(DeltaStorage):
    """Records in a PostgreSQL database, safe with many tasks, event loops and processes.

    Args:
        database: See `PostgreSQLPool`.
        pool: A pool to share, of asyncpg's or ours; it is not closed here.
        options: See `PostgreSQLPool`; ignored where `pool` is one of ours.
    """

    def __init__(
        self,
        database: str | None = None,
        *,
        pool: Pool | PostgreSQLPool | None = None,
        **options: Unpack[ConnectionOptions],
    ) -> None:
        self._pool, self._owned = pool_for(database, pool, options)
        self._groupings: dict[asyncio.AbstractEventLoop, Grouping[_Append, int | None]] = {}

    def __repr__(self) -> str:
        return f"PostgreSQLDeltaStorage({self._pool!r})"

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
            sequence = await self._pool.transact(
                lambda c: self._make_room(c, record, expected_parent, rebased)
            )
        return sequence

    async def _append(self, record: Record, expected_parent: str | Unset | None) -> int | None:
        """Append in one statement; `None` if there is more to it than that."""
        thread = digest_of(record.thread_id)
        values = (thread, *to_row(record), expected_parent is UNSET)
        if record.base is None and not isinstance(expected_parent, str):
            append = _Append(_BEGIN, (*values, encode_text(record.thread_id)))
        else:
            parent = digest_of(expected_parent) if isinstance(expected_parent, str) else None
            append = _Append(_APPEND, (*values, parent))
        return await self._grouping().send(append, key=thread, kind=append.statement)

    def _grouping(self) -> Grouping[_Append, int | None]:
        """Return what groups the appends of this event loop."""
        loop = asyncio.get_running_loop()
        grouping = self._groupings.get(loop)
        if grouping is None:
            for ended in [each for each in list(self._groupings) if each.is_closed()]:
                self._groupings.pop(ended, None)
            grouping = self._groupings[loop] = Grouping(self._alone, self._together)
        return grouping

    async def _alone(self, append: _Append) -> int | None:
        try:
            sequence: int | None = await self._pool.fetchval(append.statement, *append.values)
        except BackendError as error:
            if isinstance(error.__cause__, UniqueViolationError):
                # Another save of the same name was a moment faster.
                return None
            raise
        return sequence

    async def _together(self, appends: Sequence[_Append]) -> list[int | None]:
        """Append to several threads; `None` where it takes a statement of its own."""
        # New threads in one order, so that no two groups wait for each other.
        rows = sorted((append.values for append in appends), key=itemgetter(0))
        try:
            written = await self._pool.fetchmany(_TOGETHER[appends[0].statement], rows)
        except BackendError as error:
            if isinstance(error.__cause__, UniqueViolationError):
                return [None] * len(appends)
            raise
        sequences = {row[1]: int(row[0]) for row in written}
        return [sequences.get(append.values[0]) for append in appends]

    async def _make_room(
        self,
        connection: Connection,
        record: Record,
        expected_parent: str | Unset | None,
        rebased: Sequence[Record],
    ) -> int:
        """Append a record in place of the one of its name."""
        names = digest_of(record.thread_id), encode_text(record.thread_id)
        thread = await connection.fetchval(self._pool.sql(_CLAIM), *names)
        heads = await self._heads(connection, record.thread_id)
        check_parent(record.thread_id, expected_parent, heads[0].checkpoint_id if heads else None)
        if any(head.revision == record.revision for head in heads):
            raise StaleChainError
        removed = {head.revision for head in heads if head.checkpoint_id == record.checkpoint_id}
        check_replacement(heads, removed=removed, rebased=rebased, base=record.base)
        await self._overwrite(connection, thread, rebased)
        row = to_row(record)
        await connection.execute(self._pool.sql(_REMOVE_NAMED), thread, row[0])
        sequence = await connection.fetchval(self._pool.sql(_APPEND_LOCKED), thread, *row)
        return int(sequence)

    async def _heads(self, connection: Connection, thread_id: str) -> list[RecordHead]:
        """Return the heads of a thread whose row is locked, newest first."""
        bounds = digest_of(thread_id), _NO_BOUND, None
        rows = await connection.fetch(self._pool.sql(_LIST), *bounds)
        return [read_head(thread_id, row) for row in rows]

    async def _overwrite(
        self, connection: Connection, thread: int, rebased: Sequence[Record]
    ) -> None:
        if rebased:
            await connection.execute(self._pool.sql(_OVERWRITE), thread, *to_columns(rebased))

    @override
    async def retrieve(self, thread_id: str, checkpoint_id: str | None = None) -> Record | None:
        chain = await self.retrieve_chain(thread_id, checkpoint_id)
        return chain[-1] if chain else None

    @override
    async def find(self, thread_id: str, checkpoint_id: str | None = None) -> RecordHead | None:
        if checkpoint_id is None:
            row = await self._pool.fetchrow(_FIND_NEWEST, digest_of(thread_id))
            return None if row is None else read_head(thread_id, row)
        names = digest_of(thread_id), digest_of(checkpoint_id)
        row = await self._pool.fetchrow(_FIND_NAMED, *names)
        return None if row is None else check_name(read_head(thread_id, row), checkpoint_id)

    @override
    async def retrieve_chain(
        self, thread_id: str, checkpoint_id: str | None = None
    ) -> list[Record]:
        if checkpoint_id is None:
            rows = await self._pool.fetch(_CHAIN_OF_NEWEST, digest_of(thread_id))
        else:
            names = digest_of(thread_id), digest_of(checkpoint_id)
            rows = await self._pool.fetch(_CHAIN_OF_NAMED, *names)
        if not rows:
            return []
        records = {row[1]: read_record(thread_id, row) for row in rows}
        newest = records[rows[0][1]]
        return chain_of(
            records.get, newest if checkpoint_id is None else check_name(newest, checkpoint_id)
        )

    @override
    async def list_checkpoints(
        self, thread_id: str, limit: int | None = 10, *, before: int | None = None
    ) -> list[RecordHead]:
        bounds = (
            _NO_BOUND if before is None else clamped(before),
            None if limit is None else clamped(limit),
        )
        rows = await self._pool.fetch(_LIST, digest_of(thread_id), *bounds)
        return [read_head(thread_id, row) for row in rows]

    @override
    async def delete(
        self,
        thread_id: str,
        revisions: Collection[int] | None = None,
        *,
        rebased: Sequence[Record] = (),
    ) -> int:
        async def work(connection: Connection) -> int:
            thread = await connection.fetchval(self._pool.sql(_LOCK), digest_of(thread_id))
            if thread is None:
                return 0
            if revisions is None:
                count = await connection.fetchval(self._pool.sql(_REMOVE_ALL), thread)
            else:
                heads = await self._heads(connection, thread_id)
                check_replacement(heads, removed=revisions, rebased=rebased)
                await self._overwrite(connection, thread, rebased)
                gone = thread, list(revisions)
                count = await connection.fetchval(self._pool.sql(_REMOVE), *gone)
            if await connection.fetchval(self._pool.sql(_RENEW), thread) is None:
                await connection.execute(self._pool.sql(_REMOVE_THREAD), thread)
            return int(count)

        return await self._pool.transact(work)

    @override
    async def list_threads(
        self, limit: int = 100, *, prefix: str | None = None, after: str | None = None
    ) -> list[str]:
        check_range(prefix, after)
        start = encode_text(prefix or "")
        bounds = encode_text(after or ""), start, prefix_upper_bound(start), clamped(limit)
        return [read_thread(row[0]) for row in await self._pool.fetch(_THREADS, *bounds)]

    @override
    async def copy_thread(self, source: str, target: str, *, through: int | None = None) -> int:
        bound = _NO_BOUND if through is None else clamped(through)
        names = digest_of(source), digest_of(target), encode_text(target)
        count: int = await self._pool.fetchval(_COPY, *names, bound)
        if count == 0:
            existing = await self.find(target)
            if existing is not None:
                raise CheckpointConflictError(target, None, existing.checkpoint_id)
        return count

    @override
    async def query_by_metadata(self, condition: Condition, limit: int) -> list[RecordHead]:
        matching, bound = compile_filter(condition, metadata="document", value="NULL", first=2)
        rows = await self._pool.fetch(_MATCHING % matching, clamped(limit), *bound)
        return [read_head(read_thread(row[10]), row) for row in rows]

    @override
    async def reclaim(self) -> None:
        # Of a table that is not ours the server does no more than warn.
        try:
            await self._pool.execute(_VACUUM)
        except BackendError as error:
            # The server does it by itself, sooner or later.
            emit("postgresql.not_vacuumed", error=error)

    @override
    async def open(self) -> None:
        await self._pool.open()

    @override
    async def close(self) -> None:
        if self._owned:
            await self._pool.close()


class PostgreSQLCheckpointer(DeltaCheckpointer):
    """Checkpoints in a PostgreSQL database.

    Args:
        database: See `PostgreSQLPool`.
        pool: A pool to share, of asyncpg's or ours; it is not closed here.
        pool_size: See `PostgreSQLPool`.
        schema: See `PostgreSQLPool`.
        table_prefix: See `PostgreSQLPool`.
        statement_cache_size: See `PostgreSQLPool`.
        pooler: See `PostgreSQLPool`.
        connect_timeout: See `PostgreSQLPool`.
        acquire_timeout: See `PostgreSQLPool`.
        command_timeout: See `PostgreSQLPool`.
        options: See `DeltaCheckpointer`.
    """

    def __init__(
        self,
        database: str | None = None,
        *,
        pool: Pool | PostgreSQLPool | None = None,
        pool_size: int = 16,
        schema: str = "public",
        table_prefix: str = "locus_",
        statement_cache_size: int = 256,
        pooler: bool = False,
        connect_timeout: float = 10.0,
        acquire_timeout: float = 30.0,
        command_timeout: float | None = 60.0,
        **options: Unpack[CheckpointerOptions],
    ) -> None:
        storage = PostgreSQLDeltaStorage(
            database,
            pool=pool,
            pool_size=pool_size,
            schema=schema,
            table_prefix=table_prefix,
            statement_cache_size=statement_cache_size,
            pooler=pooler,
            connect_timeout=connect_timeout,
            acquire_timeout=acquire_timeout,
            command_timeout=command_timeout,
        )
        super().__init__(storage, **options)
