"""Checkpoints in PostgreSQL: a save is one statement, and so is the load of a chain.

Every write to a thread locks its row first. A save does this in the statement that appends
the record; only one that replaces another, or that was refused, needs a transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Generic, Unpack

from typing_extensions import override

from locus_memory._internal.options import Keywords, checked
from locus_memory.backends.base import OverConnection
from locus_memory.backends.postgresql.connection.connection import (
    Connection,
    PostgreSQLPool,
)
from locus_memory.backends.postgresql.connection.driver import Pool, errors
from locus_memory.backends.postgresql.connection.standbys import reads
from locus_memory.backends.postgresql.options import (
    PostgreSQLKeywords,
    PostgreSQLOptions,
)
from locus_memory.backends.postgresql.records import (
    APPEND,
    APPEND_LOCKED,
    BEGIN,
    CHAIN_OF_NAMED,
    CHAIN_OF_NEWEST,
    CLAIM,
    COPY,
    FIND_NAMED,
    FIND_NEWEST,
    LIST,
    LOCK,
    MATCHING,
    OVERWRITE,
    REMOVE,
    REMOVE_ALL,
    REMOVE_NAMED,
    REMOVE_THREAD,
    RENEW,
    SEQUENCES,
    THREADS,
    VACUUM,
    name_of,
    read_head,
    read_record,
    read_thread,
    to_columns,
    to_mask,
    to_row,
)
from locus_memory.backends.postgresql.search.filters import Arguments
from locus_memory.backends.record_rows import (
    LARGEST,
    chain_from,
    check_name,
    clamped,
    digest_of,
    fork_text,
)
from locus_memory.checkpoint.base import UNSET, StateT, Unset
from locus_memory.checkpoint.chain import CheckpointerOptions, DeltaCheckpointer
from locus_memory.checkpoint.record import Record, RecordHead, moved
from locus_memory.checkpoint.storage import (
    DeltaStorage,
    check_range,
    check_replacement,
    check_room,
)
from locus_memory.errors import BackendError, CheckpointConflictError
from locus_memory.events import emit
from locus_memory.store.encoding import encode_text, prefix_upper_bound
from locus_memory.store.filters import Condition

__all__ = ["PostgreSQLCheckpointer", "PostgreSQLDeltaStorage"]


_read = reads(of_standbys=False)


class PostgreSQLDeltaStorage(OverConnection[PostgreSQLPool], DeltaStorage):
    """Records in a PostgreSQL database, safe for many tasks, event loops and processes.

    Args:
        database: See `PostgreSQLPool`.
        pool: A pool to share, of asyncpg or a `PostgreSQLPool`; the storage does not close it.
        options: How to connect, and where the tables are; ignored with a `PostgreSQLPool`.
        **keywords: The fields of `PostgreSQLOptions` by name, in place of `options`.
    """

    @checked
    def __init__(
        self,
        database: str | None = None,
        *,
        pool: Pool | PostgreSQLPool | None = None,
        options: PostgreSQLOptions | None = None,
        **keywords: Unpack[PostgreSQLKeywords],
    ) -> None:
        self._connect(PostgreSQLPool, PostgreSQLOptions, database, options, keywords, pool=pool)

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
            sequence = await self._connection.transact(
                lambda c: self._make_room(c, record, expected_parent, rebased)
            )
        return sequence

    async def _append(self, record: Record, expected_parent: str | Unset | None) -> int | None:
        """Append in one statement; `None` if one statement is not enough."""
        thread = digest_of(record.thread_id)
        values = (thread, *to_row(record), expected_parent is UNSET)
        last: bytes | str | None = None
        if record.base is None and not isinstance(expected_parent, str):
            statement, last = BEGIN, encode_text(record.thread_id)
        elif isinstance(expected_parent, str):
            statement, last = APPEND, name_of(expected_parent)[0]
        else:
            statement = APPEND
        try:
            sequence: int | None = await self._connection.fetchval(statement, *values, last)
        except BackendError as error:
            if isinstance(error.__cause__, errors.UniqueViolationError):
                # Another save of the same name was faster.
                return None
            raise
        return sequence

    async def _make_room(
        self,
        connection: Connection,
        record: Record,
        expected_parent: str | Unset | None,
        rebased: Sequence[Record],
    ) -> int:
        """Append a record that replaces the one of its name."""
        names = digest_of(record.thread_id), encode_text(record.thread_id)
        thread = await connection.fetchval(self._connection.sql(CLAIM), *names)
        heads = await self._heads(connection, record.thread_id)
        check_room(heads, record, expected_parent, rebased)
        await self._overwrite(connection, thread, rebased)
        row = to_row(record)
        await connection.execute(self._connection.sql(REMOVE_NAMED), thread, row[0])
        sequence = await connection.fetchval(self._connection.sql(APPEND_LOCKED), thread, *row)
        return int(sequence)

    async def _heads(self, connection: Connection, thread_id: str) -> list[RecordHead]:
        """Return the heads of a thread whose row is locked, newest first."""
        bounds = digest_of(thread_id), LARGEST, LARGEST
        rows = await connection.fetch(self._connection.sql(LIST), *bounds)
        return [read_head(thread_id, row) for row in rows]

    async def _overwrite(
        self, connection: Connection, thread: int, rebased: Sequence[Record]
    ) -> None:
        if rebased:
            await connection.execute(self._connection.sql(OVERWRITE), thread, *to_columns(rebased))

    @override
    async def retrieve(self, thread_id: str, checkpoint_id: str | None = None) -> Record | None:
        chain = await self.retrieve_chain(thread_id, checkpoint_id)
        return chain[-1] if chain else None

    @override
    @_read
    async def find(self, thread_id: str, checkpoint_id: str | None = None) -> RecordHead | None:
        if checkpoint_id is None:
            row = await self._connection.fetchrow(FIND_NEWEST, digest_of(thread_id))
            return None if row is None else read_head(thread_id, row)
        names = digest_of(thread_id), name_of(checkpoint_id)[0]
        row = await self._connection.fetchrow(FIND_NAMED, *names)
        return None if row is None else check_name(read_head(thread_id, row), checkpoint_id)

    @override
    @_read
    async def retrieve_chain(
        self, thread_id: str, checkpoint_id: str | None = None
    ) -> list[Record]:
        if checkpoint_id is None:
            rows = await self._connection.fetch(CHAIN_OF_NEWEST, digest_of(thread_id))
        else:
            names = digest_of(thread_id), name_of(checkpoint_id)[0]
            rows = await self._connection.fetch(CHAIN_OF_NAMED, *names)
        return chain_from([read_record(thread_id, row) for row in rows], checkpoint_id)

    @override
    @_read
    async def list_checkpoints(
        self, thread_id: str, limit: int | None = 10, *, before: int | None = None
    ) -> list[RecordHead]:
        bounds = (
            clamped(before),
            clamped(limit),
        )
        rows = await self._connection.fetch(LIST, digest_of(thread_id), *bounds)
        return [read_head(thread_id, row) for row in rows]

    @override
    @_read
    async def sequences(self, thread_id: str) -> list[int]:
        rows = await self._connection.fetch(SEQUENCES, digest_of(thread_id))
        return [row["sequence"] for row in rows]

    @override
    async def delete(
        self,
        thread_id: str,
        revisions: Collection[int] | None = None,
        *,
        rebased: Sequence[Record] = (),
    ) -> int:
        async def work(connection: Connection) -> int:
            thread = await connection.fetchval(self._connection.sql(LOCK), digest_of(thread_id))
            if thread is None:
                return 0
            if revisions is None:
                count = await connection.fetchval(self._connection.sql(REMOVE_ALL), thread)
            else:
                heads = await self._heads(connection, thread_id)
                check_replacement(heads, removed=revisions, rebased=rebased)
                await self._overwrite(connection, thread, rebased)
                gone = thread, list(revisions)
                count = await connection.fetchval(self._connection.sql(REMOVE), *gone)
            if await connection.fetchval(self._connection.sql(RENEW), thread) is None:
                await connection.execute(self._connection.sql(REMOVE_THREAD), thread)
            return int(count)

        return await self._connection.transact(work)

    @override
    @_read
    async def list_threads(
        self, limit: int = 100, *, prefix: str | None = None, after: str | None = None
    ) -> list[str]:
        check_range(prefix, after)
        start = encode_text(prefix or "")
        bounds = encode_text(after or ""), start, prefix_upper_bound(start), clamped(limit)
        return [read_thread(row[0]) for row in await self._connection.fetch(THREADS, *bounds)]

    @override
    async def copy_thread(self, source: str, target: str, *, through: int | None = None) -> int:
        bound = clamped(through)
        names = digest_of(source), digest_of(target), encode_text(target)
        seals = await self._seals_of_copies(source, target, through)
        count: int = await self._connection.fetchval(COPY, *names, bound, *seals)
        if count == 0:
            existing = await self.find(target)
            if existing is not None:
                raise CheckpointConflictError(target, None, existing.checkpoint_id)
        return count

    async def _seals_of_copies(
        self, source: str, target: str, through: int | None
    ) -> tuple[int, int | None, int, str | None]:
        """Return the parameters of `COPY` for the fork point and for the change of the seals.

        A record's fork point never changes, since only its base and the columns derived from it
        do: it is the same when `COPY` runs.
        """
        mask = to_mask(moved(source, target, None, None))
        rows = []
        if through is not None:
            bounds = clamped(through + 1), 1
            rows = await self._connection.fetch(LIST, digest_of(source), *bounds)
        head = read_head(source, rows[0]) if rows else None
        if head is None or head.sequence != through:
            return mask, None, mask, None
        origin = source, head.checkpoint_id
        change = to_mask(moved(source, target, head.forked_from, origin))
        return mask, head.sequence, change, fork_text(origin)

    @override
    @_read
    async def query_by_metadata(self, condition: Condition, limit: int) -> list[RecordHead]:
        arguments = Arguments()
        arguments.bind(clamped(limit), "bigint")
        matching = arguments.compile(condition, metadata="document", value=None)
        rows = await self._connection.fetch(MATCHING % matching, *arguments.values)
        return [read_head(read_thread(row[11]), row) for row in rows]

    @override
    async def reclaim(self) -> None:
        # For a table of another owner, the server only warns.
        try:
            await self._connection.execute(VACUUM)
        except BackendError as error:
            # The server vacuums by itself, sooner or later.
            emit("postgresql.not_vacuumed", error=error)


class PostgreSQLCheckpointerKeywords(
    PostgreSQLKeywords, CheckpointerOptions[StateT], Generic[StateT], total=False
):
    """The keyword arguments of `PostgreSQLCheckpointer` beside its own parameters."""


class PostgreSQLCheckpointer(DeltaCheckpointer[StateT]):
    """Checkpoints in a PostgreSQL database.

    Args:
        database: See `PostgreSQLPool`.
        pool: A pool to share, of asyncpg or a `PostgreSQLPool`; the checkpointer does not close it.
        options: How to connect, and where the tables are; ignored with a `PostgreSQLPool`.
        **keywords: The options of `DeltaCheckpointer`, and the fields of `PostgreSQLOptions` by
            name, in place of `options`.
    """

    @checked
    def __init__(
        self,
        database: str | None = None,
        *,
        pool: Pool | PostgreSQLPool | None = None,
        options: PostgreSQLOptions | None = None,
        **keywords: Unpack[PostgreSQLCheckpointerKeywords[StateT]],
    ) -> None:
        named = Keywords(self, keywords)
        options = named.into(PostgreSQLOptions, options=options)
        storage = PostgreSQLDeltaStorage(database, pool=pool, options=options)
        super().__init__(storage, **named.rest)
